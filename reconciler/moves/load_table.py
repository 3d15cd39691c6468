"""All partitions of a cluster as arrays, and the problem of bringing loads into their bands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from reconciler.errors import Finding, UsageError
from reconciler.model.cluster import ClusterState, Place, Replicas, TopicState
from reconciler.model.moves import LOAD_FIELDS, LoadAim, LoadKind
from reconciler.moves.differences import MoveDiff
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from reconciler.placement.loads.problem import Flags, Floats, Ints, LoadProblem

_NEXT = 10
"""How many shares of a load outside its band one share of the load named before it weighs."""

_UNSEEN = ("sizes-unseen", "groups-unseen")
"""The rules of the notes that say why amounts are unknown."""

_BELOW = 0.95
"""How far below a limit of --over a disk is to come, so that it is not above it again at once."""


class Bands(NamedTuple):
    """The shares of brokers of loads, which are outside, and when: below or above (K, B each)."""

    outside: Flags
    shares: Floats
    floor: Ints
    ceiling: Ints

    def use(self, problem: LoadProblem) -> LoadProblem:
        """Return a problem with the bands at whose ends a balance acts, instead of its aims."""
        return replace(problem, low=self.floor, high=self.ceiling)


class LoadTable:
    """Partitions and what each carries. `rows` are the live ones, or those of their diffs.

    `places` names the partitions, `movable` says which may move, and `ids` are the brokers.
    """

    def __init__(
        self,
        entry: ClusterEntry,
        diffs: Sequence[MoveDiff],
        state: ClusterState,
        aim: LoadAim,
        able: frozenset[int],
    ) -> None:
        self.entry, self.state, self.aim, self.able = entry, state, aim, able
        moving = {diff.spec.name: diff for diff in diffs if not diff.stays}
        self.names = sorted(state.topics)
        self.places: list[Place] = []
        self.movable: list[bool] = []
        rows: list[Replicas] = []
        for name in self.names:
            diff = moving.get(name)
            for number, row in enumerate(state.topics[name].assignment):
                self.places.append((name, number))
                self.movable.append(diff is not None and number not in diff.given)
                rows.append(diff.given.get(number, row) if diff is not None else row)
        self.rows = tuple(rows)
        self.anywhere = {name for name, diff in moving.items() if not diff.spec.rack_aware}
        known = {broker.id for broker in state.brokers}
        self.ids = sorted(known.union(*rows))
        self.sized = is_known(state, LoadKind.DISK)

    def pad(self, rows: Sequence[Replicas]) -> Ints:
        """Return rows of broker ids as indices, filled up to one length."""
        import numpy as np

        from reconciler.placement.loads.problem import NOBODY

        width = max(map(len, rows), default=1)
        numbers = {broker: number for number, broker in enumerate(self.ids)}
        indices = [[*(numbers[b] for b in row), *[NOBODY] * (width - len(row))] for row in rows]
        return np.array(indices, dtype=np.int64)

    def set_bands(
        self, rows: Ints, kinds: Sequence[LoadKind], cost: Ints, within: Ints
    ) -> tuple[LoadProblem, Bands]:
        """Return the problem of some loads, and around which shares its bands are."""
        import numpy as np

        from reconciler.placement.loads.problem import NOBODY, LoadProblem
        from reconciler.placement.loads.shares import (
            bound_loads,
            share_load,
            surround_shares,
        )

        leads = bool(within.size)
        count = len(self.ids)
        able = np.array([broker in self.able for broker in self.ids])
        if leads:  # what holds no replica can lead nothing
            able &= np.isin(np.arange(count), within)
        takes = able
        if self.aim.brokers and not leads:
            takes = np.array([broker in self.aim.brokers for broker in self.ids])
        held = rows != NOBODY
        racked = np.array([name not in self.anywhere for name, _ in self.places])
        on_able = (held & able[rows]).sum(axis=1)
        loads = np.array([self.list_amounts(kind, leads=leads) for kind in kinds])
        zero = np.zeros((len(kinds), count), dtype=np.int64)
        topics = np.repeat(
            np.arange(len(self.names)),
            [len(self.state.topics[name].assignment) for name in self.names],
        )
        problem = LoadProblem(
            rows=rows,
            loads=loads,
            fixed=zero,
            cost=cost,
            low=zero,
            high=zero,
            scale=np.ones(len(kinds)),
            racks=self._list_racks(),
            receivers=takes,
            movable=np.array(self.movable),
            topics=topics,
            spread=None if leads else 0,
            within=within if leads else None,
            room=None if leads else self._list_room(),
        )
        low, high, outside, shares, floors, ceilings = [], [], [], [], [], []
        part = self.aim.within_percent / 100
        for kind, amounts, load in zip(kinds, loads, problem.add_up(rows), strict=True):
            if self.aim.over_percent is not None:
                most, apart = self._limit_disks(load, self.aim.over_percent / 100)
                least, share = np.zeros(count, dtype=np.int64), most.astype(np.float64)
                floor, ceiling = least, most
            else:
                capacity = self._list_capacity(kind, leads=leads)
                share = share_load(
                    amounts, on_able, problem.racks, capacity, able, racked & (not leads)
                )
                least, most, apart = bound_loads(load, share, part, part / 2)
                floor, ceiling = surround_shares(share, part)
            if self.aim.brokers and not leads:
                # The others only give, and a broker that takes gets no more than its share.
                least, floor = np.where(takes, least, 0), np.where(takes, floor, 0)
                most = np.where(takes, np.maximum(np.ceil(share), load), most).astype(np.int64)
                apart &= ~(able & ~takes & (load < share))
            low.append(np.where(able, least, 0))
            high.append(np.where(able, most, load))
            floors.append(np.where(able, floor, 0))
            ceilings.append(np.where(able, ceiling, load))
            outside.append(apart & able)
            shares.append(share)
        # Where not all bands can be reached, that of the load named first comes first.
        scale = np.array(
            [max(1.0, float(share[able].mean())) * _NEXT**k for k, share in enumerate(shares)]
        )
        problem = replace(problem, low=np.array(low), high=np.array(high), scale=scale)
        every = map(np.array, (outside, shares, floors, ceilings))
        return problem, Bands(*every)

    def _list_room(self) -> Ints | None:
        """Return the bytes that may be copied to each broker; None if no disk limits them.

        What is to leave a broker is still there when copies arrive.
        """
        import numpy as np

        free = self.entry.moves.keep_free_percent if self.entry.moves is not None else 0
        if not (free and self.sized):
            return None
        room = np.full(len(self.ids), np.iinfo(np.int64).max)
        for number, broker in enumerate(self.ids):
            disks = self.state.directories.get(broker, ())
            told = [(d.total_bytes, d.usable_bytes) for d in disks if d.total_bytes is not None]
            if told and all(usable is not None for _, usable in told):
                room[number] = sum(
                    max(0, int((usable or 0) - total * free / 100)) for total, usable in told
                )
        return room

    def _limit_disks(self, load: Ints, over: float) -> tuple[Ints, Flags]:
        """Return the most that each broker should hold, and which have fuller disks than `over`.

        One that is fuller is to come a twentieth below, and no other gets fuller than that.
        Errors: UsageError if a broker does not tell how large its disks are.
        """
        import numpy as np

        most, apart = load.copy(), np.zeros(len(load), dtype=bool)
        for number, broker in enumerate(self.ids):
            if broker not in self.able:
                continue
            disks = self.state.directories.get(broker, ())
            if not disks or any(d.total_bytes is None or d.usable_bytes is None for d in disks):
                what = f"broker {broker} does not tell how large its disks are"
                raise UsageError(f"{what}, so --over cannot be kept; balance --by disk instead")
            total = sum(disk.total_bytes or 0 for disk in disks)
            used = total - sum(disk.usable_bytes or 0 for disk in disks)
            other = used - int(load[number])  # what is no replica
            apart[number] = used > over * total
            aimed = int(over * total * _BELOW) - other
            most[number] = max(aimed, 0) if apart[number] else max(aimed, int(load[number]))
        return most, apart

    def _list_racks(self) -> Ints:
        import numpy as np

        racks = {broker.id: broker.rack or "" for broker in self.state.brokers}
        names = sorted({racks.get(broker, "") for broker in self.ids})
        return np.array([names.index(racks.get(broker, "")) for broker in self.ids])

    def _list_capacity(self, kind: LoadKind, *, leads: bool) -> Floats:
        """Return the capacity of each broker: as written, or the bytes of its directories."""
        disks: dict[int, int] = {}
        if kind is LoadKind.DISK and not leads:
            disks = {
                broker: sum(directory.total_bytes or 0 for directory in directories)
                for broker, directories in self.state.directories.items()
            }
        return choose_capacity(self.ids, self.able, self.entry.capacity, disks)

    def list_amounts(self, kind: LoadKind, *, leads: bool = False) -> Ints:
        """Return what one unit of each partition carries."""
        import numpy as np

        amounts: list[int] = []
        if kind is LoadKind.COUNT:
            # Topics internal to Kafka do not count: it creates them at any time.
            amounts = [int(not self.state.topics[name].internal) for name, _ in self.places]
        else:
            topics = [self.state.topics[name] for name in self.names]
            amounts = list(_fill_in(topics, kind, self.state.notes))
        if kind is LoadKind.READ and leads:
            written = self.list_amounts(LoadKind.WRITE)
            followers = [len(row) - 1 for row in self.rows]
            amounts = [
                read + wrote * others
                for read, wrote, others in zip(amounts, written.tolist(), followers, strict=True)
            ]
        return np.array(amounts, dtype=np.int64)


def choose_capacity(
    ids: Sequence[int],
    able: Collection[int],
    written: Mapping[int, int],
    disks: Mapping[int, int],
) -> Floats:
    """Return the capacity of each broker, by which it has its share of a load.

    In: the brokers that can take replicas, the capacities in clusters.yaml, and the bytes of the
    disks, which count if none is written and those of all able brokers are known.
    """
    import numpy as np

    if disks and not written and all(disks.get(broker) for broker in ids if broker in able):
        return np.array([disks.get(broker, 0) for broker in ids], dtype=np.float64)
    return np.array([written.get(broker, 1) for broker in ids], dtype=np.float64)


def is_known(state: ClusterState, kind: LoadKind) -> bool:
    """Return whether the amount of any partition is known."""
    return any(
        amount >= 0
        for topic in state.topics.values()
        for amount in getattr(topic, LOAD_FIELDS[kind])
    )


def _fill_in(
    topics: Sequence[TopicState], kind: LoadKind, notes: Iterable[Finding]
) -> Iterator[int]:
    """Yield the amount of every partition; an unknown one is the median of its topic, or of all.

    Errors: UsageError if none is known, with the `notes` of the state that say why.
    """
    found = [getattr(topic, LOAD_FIELDS[kind]) for topic in topics]
    medians = [median(known) for each in found if (known := [a for a in each if a >= 0])]
    if not medians:
        what = f"no {LOAD_FIELDS[kind]} is known of any partition"
        unseen = [f"{note.what}; {note.way_out}" for note in notes if note.rule in _UNSEEN]
        raise UsageError("\n".join([f"{what}, so nothing can be balanced --by {kind}", *unseen]))
    usual = median(medians)
    for topic, each in zip(topics, found, strict=True):
        known = [amount for amount in each if amount >= 0]
        estimate = round(median(known) if known else usual)
        for number in range(len(topic.assignment)):
            yield each[number] if number < len(each) and each[number] >= 0 else estimate
