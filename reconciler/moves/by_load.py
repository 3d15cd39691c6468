"""Rows that bring every broker into a band around its share of replicas, bytes, writes or reads.

First other brokers get replicas, then other replicas become preferred leaders, which copies
nothing. What the bands mean: docs/rebalance.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from reconciler.errors import Finding, UsageError
from reconciler.model.cluster import ClusterState, Place, Replicas, TopicState
from reconciler.model.moves import (
    LOAD_FIELDS,
    BrokerBand,
    LoadAim,
    LoadBand,
    LoadKind,
    MovedRows,
    PlannedBalance,
)
from reconciler.moves.differences import MoveDiff
from reconciler.spec.entry import ClusterEntry
from reconciler.units import count, name_each

if TYPE_CHECKING:
    from reconciler.placement.loads.problem import Flags, Floats, Ints, LoadProblem

_NEXT = 10
"""How many shares of a load outside its band one share of the load named before it weighs."""

_UNSEEN = ("sizes-unseen", "groups-unseen")
"""The rules of the notes that say why amounts are unknown."""

_BELOW = 0.95
"""How far below a limit of --over a disk is to come, so that it is not above it again at once."""


def balance_by_load(
    entry: ClusterEntry,
    diffs: Sequence[MoveDiff],
    state: ClusterState,
    aim: LoadAim,
    able: Collection[int],
    approved: MovedRows | None = None,
) -> tuple[tuple[MoveDiff, ...], PlannedBalance, tuple[str, ...]]:
    """Decide every row: with the fewest bytes copied, and then the fewest leaders changed.

    In: the rows that may change, and the brokers that could take replicas. The rows of an
    `approved` plan are taken instead of new ones if they still hold. Returns also the objections to
    these, none if they are taken.
    Errors: UsageError if an amount that the aim needs is not known of any partition, or if the
    leaders alone cannot move it; AssertionError if the checker objects.
    """
    table = _Table(entry, diffs, state, aim, frozenset(able))
    decided = table.decide()
    objections: tuple[str, ...] = ()
    if approved is not None:
        kept, objections = table.take(approved, decided)
        decided = kept or decided
    moved, led = decided
    after = {
        place: led.rows[number]
        for number, place in enumerate(table.places)
        if table.movable[number]
    }
    settled = tuple(
        replace(
            diff,
            given={
                number: after.get((diff.spec.name, number), diff.given.get(number, row))
                for number, row in enumerate(diff.rows)
            },
        )
        for diff in diffs
    )
    balance = PlannedBalance(
        aim.within_percent,
        (*moved.bands, *led.bands),
        moved.least if moved.bands and table.sized else None,
        led.least,
        unreached=moved.unreached or led.unreached,
        over_percent=aim.over_percent,
    )
    return settled, balance, objections


def measure_farthest(
    entry: ClusterEntry,
    diffs: Sequence[MoveDiff],
    state: ClusterState,
    able: Collection[int],
    kinds: Collection[LoadKind],
) -> dict[str, float]:
    """Return how far from its share the farthest broker is, of each load by its name.

    `leaders` are counted. In: the rows of the state, and the kinds whose amounts are known.
    Units: parts of the share.
    """
    table = _Table(entry, diffs, state, LoadAim(), frozenset(able))
    loads = [
        *((str(kind), kind, False) for kind in LoadKind if kind is not LoadKind.READ),
        ("read", LoadKind.READ, True),
        ("leaders", LoadKind.COUNT, True),
    ]
    needed = {LoadKind.READ: {LoadKind.READ, LoadKind.WRITE}}
    return {
        name: table.measure_farthest(kind, leads=leads)
        for name, kind, leads in loads
        if needed.get(kind, {kind}).issubset(kinds)
    }


def _list_leader_kinds(aim: LoadAim) -> list[LoadKind]:
    """Return what leaders are balanced by: rates if they are asked for, or else their number."""
    rates: list[LoadKind] = [k for k in aim.by if k in (LoadKind.WRITE, LoadKind.READ)]
    if aim.leaders_only and LoadKind.DISK in aim.by:
        what = "bytes on disk do not move with leaders"
        raise UsageError(f"{what}; with --leaders-only, write --by count, write or read")
    return rates if rates and LoadKind.COUNT not in aim.by else [*rates, LoadKind.COUNT]


@dataclass(frozen=True, slots=True)
class _Stage:
    """Rows after one stage, its bands, and the least that it has to cost, None if unknown.

    `inside` are the brokers inside the band of each load, at the width at which a balance acts.
    `faults` are what the checker says against given rows.
    """

    rows: tuple[Replicas, ...]
    bands: tuple[LoadBand, ...] = ()
    least: int | None = 0
    unreached: bool = False
    inside: tuple[frozenset[int], ...] = ()
    faults: tuple[str, ...] = ()


class _Decided(NamedTuple):
    """The rows after both stages: other brokers, and then other leaders."""

    moved: _Stage
    led: _Stage


class _Table:
    """All partitions of a cluster as arrays, with what each carries."""

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

    def decide(self, given: tuple[Replicas, ...] | None = None) -> _Decided:
        """Choose the rows, or measure given ones.

        Errors: as `balance_by_load`, but that faults of given rows are in the stages.
        """
        aim, moved = self.aim, _Stage(self.rows)
        kinds = [kind for kind in aim.by if kind is not LoadKind.READ]
        if kinds and not aim.leaders_only:
            moved = self._move_replicas(kinds, given)
        # Relief changes nothing that it need not.
        leading = _list_leader_kinds(aim) if aim.over_percent is None else []
        if not leading:
            return _Decided(moved, _Stage(moved.rows))
        return _Decided(moved, self._choose_leaders(moved.rows, leading, given))

    def take(self, approved: MovedRows, new: _Decided) -> tuple[_Decided | None, tuple[str, ...]]:
        """Return the rows of an approved plan, or why they do not hold.

        They hold if the live rows are still those before it, if they break no hard rule, and if
        they bring inside its band every broker that new rows bring there.
        """
        if new.led.rows == self.rows:
            return None, ("a new plan moves nothing",)
        if objections := tuple(self._compare_live(approved)):
            return None, objections
        given = tuple(
            approved[place][1] if place in approved else row
            for place, row in zip(self.places, self.rows, strict=True)
        )
        if given == new.led.rows:
            return new, ()
        if objections := tuple(self._find_barred(given)):
            return None, objections
        kept = self.decide(given)
        if kept.moved.faults or kept.led.faults:
            what = "they break a rule: of racks, of the spread of a topic, or of free space"
            return None, (what,)
        objections = tuple(_list_lost(kept, new))
        return (None, objections) if objections else (kept, ())

    def _compare_live(self, approved: MovedRows) -> Iterator[str]:
        """Yield the partitions whose live rows are not those before an approved plan."""
        for (name, number), (before, _) in sorted(approved.items()):
            topic = self.state.topics.get(name)
            rows = topic.assignment if topic else ()
            if number >= len(rows):
                yield f"{name} has no partition {number} any more"
            elif rows[number] != before:
                yield f"{name} partition {number} is on {_spell(rows[number])} by now"

    def _find_barred(self, given: Sequence[Replicas]) -> Iterator[str]:
        """Yield the given rows that may not move, or not to their brokers."""
        copies = not self.aim.leaders_only and {*self.aim.by} != {LoadKind.READ}
        takes = (self.aim.brokers or self.able) if copies else frozenset()
        for place, free, old, new in zip(self.places, self.movable, self.rows, given, strict=True):
            name, number = place
            if old != new and not free:
                yield f"{name} partition {number} may not move now"
            elif barred := sorted({*new} - {*old} - takes):
                yield f"{name} partition {number} may not move to {name_each('broker', barred)} now"
            elif len(new) != len(old):
                yield f"{name} partition {number} has {count(len(old), 'replica')} by now"

    def _move_replicas(
        self, kinds: Sequence[LoadKind], given: tuple[Replicas, ...] | None
    ) -> _Stage:
        """Choose brokers for replicas, so that loads of these kinds are in their bands."""
        import numpy as np

        from reconciler.placement.loads.check import check_loads
        from reconciler.placement.loads.search import balance_loads

        rows = self._pad(self.rows)
        cost = self._list_amounts(LoadKind.DISK) if self.sized else np.ones(len(rows), np.int64)
        problem, bands = self._set_bands(rows, kinds, cost, np.array([], dtype=np.int64))
        most = self.aim.max_bytes
        if most is not None and not self.sized:
            what = "the sizes of partitions are unknown"
            raise UsageError(f"{what}, so --max-bytes cannot be kept; leave it out")
        if given is not None:
            chosen = self._pad(given)
            faults = check_loads(problem, chosen)
            if most is not None and problem.measure_cost(chosen) > most:
                faults = (*faults, f"more than {most} bytes are copied")
            measured = self._describe(bands.use(problem), chosen, kinds, bands, leads=False)
            return replace(measured, rows=self._order(chosen), least=None, faults=faults)
        found = balance_loads(problem, inf if most is None else most)
        self._check(problem, found.rows)
        measured = self._describe(problem, found.rows, kinds, bands, leads=False)
        return replace(measured, rows=self._order(found.rows), least=int(found.least_cost))

    def _order(self, chosen: Ints) -> tuple[Replicas, ...]:
        """Return the brokers of each row: those that stay in their order, and then the others."""
        after = []
        for old, new in zip(self.rows, chosen.tolist(), strict=True):
            held = {self.ids[broker] for broker in new if broker >= 0}
            kept = [broker for broker in old if broker in held]
            after.append((*kept, *sorted(held.difference(kept))))
        return tuple(after)

    def _choose_leaders(
        self,
        rows: Sequence[Replicas],
        kinds: Sequence[LoadKind],
        given: tuple[Replicas, ...] | None,
    ) -> _Stage:
        """Choose the preferred leaders of rows, so that their loads are in their bands."""
        import numpy as np

        from reconciler.placement.loads.check import check_loads
        from reconciler.placement.loads.problem import NOBODY
        from reconciler.placement.loads.search import balance_loads

        within = self._pad(rows)
        cost = np.ones(len(rows), dtype=np.int64)
        problem, bands = self._set_bands(within[:, :1], kinds, cost, within)
        if given is not None:
            chosen = self._pad(given)[:, :1]
            measured = self._describe(bands.use(problem), chosen, kinds, bands, leads=True)
            faults = check_loads(problem, chosen)
            return replace(measured, rows=given, least=None, faults=faults)
        found = balance_loads(problem)
        self._check(problem, found.rows)
        after = []
        for row, (leader,) in zip(rows, found.rows.tolist(), strict=True):
            first = self.ids[leader] if leader != NOBODY else None
            after.append(row if first is None else (first, *(b for b in row if b != first)))
        measured = self._describe(problem, found.rows, kinds, bands, leads=True)
        return replace(measured, rows=tuple(after), least=int(found.least_cost))

    def measure_farthest(self, kind: LoadKind, *, leads: bool) -> float:
        """Return how far from its share the farthest broker is, in parts of the share."""
        import numpy as np

        rows = self._pad(self.rows)
        none = np.array([], dtype=np.int64)
        held, within = (rows[:, :1], rows) if leads else (rows, none)
        cost = np.ones(len(rows), dtype=np.int64)
        problem, bands = self._set_bands(held, [kind], cost, within)
        (share,) = bands.shares
        (load,) = problem.add_up(held)
        counts = [n for n, broker in enumerate(self.ids) if broker in self.able and share[n]]
        return max((float(abs(load[n] - share[n]) / share[n]) for n in counts), default=0.0)

    def _check(self, problem: LoadProblem, rows: Ints) -> None:
        from reconciler.placement.loads.check import check_loads

        if violations := check_loads(problem, rows):
            raise AssertionError("; ".join(violations))

    def _pad(self, rows: Sequence[Replicas]) -> Ints:
        """Return rows of broker ids as indices, filled up to one length."""
        import numpy as np

        from reconciler.placement.loads.problem import NOBODY

        width = max(map(len, rows), default=1)
        numbers = {broker: number for number, broker in enumerate(self.ids)}
        indices = [[*(numbers[b] for b in row), *[NOBODY] * (width - len(row))] for row in rows]
        return np.array(indices, dtype=np.int64)

    def _set_bands(
        self, rows: Ints, kinds: Sequence[LoadKind], cost: Ints, within: Ints
    ) -> tuple[LoadProblem, _Bands]:
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
        loads = np.array([self._list_amounts(kind, leads=leads) for kind in kinds])
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
        return problem, _Bands(*every)

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

    def _list_amounts(self, kind: LoadKind, *, leads: bool = False) -> Ints:
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
            written = self._list_amounts(LoadKind.WRITE)
            followers = [len(row) - 1 for row in self.rows]
            amounts = [
                read + wrote * others
                for read, wrote, others in zip(amounts, written.tolist(), followers, strict=True)
            ]
        return np.array(amounts, dtype=np.int64)

    def _describe(
        self,
        problem: LoadProblem,
        rows: Ints,
        kinds: Sequence[LoadKind],
        by: _Bands,
        *,
        leads: bool,
    ) -> _Stage:
        """Measure rows, which the answer has without them."""
        before, after = problem.add_up(problem.rows), problem.add_up(rows)
        shown = [
            LoadBand(
                kind,
                leads,
                tuple(self.ids[number] for number in by.outside[k].nonzero()[0]),
                tuple(
                    BrokerBand(
                        broker,
                        round(float(by.shares[k, number])),
                        int(problem.low[k, number]),
                        int(problem.high[k, number]),
                        int(before[k, number]),
                        int(after[k, number]),
                    )
                    for number, broker in enumerate(self.ids)
                    if broker in self.able and by.shares[k, number]
                ),
            )
            for k, kind in enumerate(kinds)
        ]
        within = (by.floor <= after) & (after <= by.ceiling)
        inside = [
            frozenset(self.ids[n] for n in row.nonzero()[0] if self.ids[n] in self.able)
            for row in within
        ]
        unreached = float(problem.measure_outside(after).sum()) > 0
        return _Stage((), tuple(shown), unreached=unreached, inside=tuple(inside))


class _Bands(NamedTuple):
    """The shares of brokers of loads, which are outside, and when: below or above (K, B each)."""

    outside: Flags
    shares: Floats
    floor: Ints
    ceiling: Ints

    def use(self, problem: LoadProblem) -> LoadProblem:
        """Return a problem with the bands at whose ends a balance acts, instead of its aims."""
        return replace(problem, low=self.floor, high=self.ceiling)


def _list_lost(kept: _Decided, new: _Decided) -> Iterator[str]:
    """Yield the brokers that only new rows bring inside their bands."""
    for ours, theirs in zip(kept, new, strict=True):
        for band, reached, best in zip(ours.bands, ours.inside, theirs.inside, strict=True):
            if lost := sorted(best - reached):
                of = f"{band.by} of leaders" if band.of_leaders else str(band.by)
                stays = "stays" if len(lost) == 1 else "stay"
                yield f"{name_each('broker', lost)} {stays} outside the band of {of} with them"


def _spell(row: Replicas) -> str:
    return ", ".join(map(str, row))


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
