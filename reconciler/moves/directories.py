"""A plan that moves replicas between the log directories of their brokers.

Every directory comes into a band around its share of the bytes of its broker, with the fewest bytes
copied, or it is emptied. No replica leaves its broker. What the bands mean:
docs/how-to/replace-a-disk.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from reconciler.diff.fields import managed_overrides
from reconciler.diff.notes import (
    assume_defaults,
    mute_notes,
    note_failed_directories,
    note_unregistered,
)
from reconciler.errors import Finding, Severity, UsageError
from reconciler.model.cluster import (
    ClusterState,
    LogDirectory,
    Place,
    Risk,
    StoredReplica,
    TopicSpec,
)
from reconciler.model.health import find_problems
from reconciler.model.moves import (
    DirectoryAim,
    DirectoryBand,
    DirectoryCopy,
    MoveKind,
    MovePolicy,
    PlannedDirectories,
    PlannedMoves,
)
from reconciler.model.plan import (
    Plan,
    PlannedTopic,
    ReplicaDirectory,
    RiskNote,
    Scope,
    TopicImage,
    is_chosen,
    list_unmatched,
)
from reconciler.model.steps import Verb
from reconciler.moves.plan import add_cost, allowed_moves, list_notes
from reconciler.policy.facts import ChangeFacts, TopicFacts
from reconciler.policy.rules import Judge
from reconciler.spec.entry import ClusterEntry
from reconciler.spec.rules import PolicyEngine
from reconciler.units import approximate_size, count

if TYPE_CHECKING:
    from reconciler.placement.loads.problem import Floats, Ints

NAMED = 5
"""The number of replicas that a note names; it counts the others."""

Left = dict[str, list[str]]
"""What stays as it is, by the reason."""


def plan_directories(
    entry: ClusterEntry,
    specs: Iterable[TopicSpec],
    state: ClusterState,
    aim: DirectoryAim,
    *,
    topics: str = "*",
) -> Plan:
    """Plan the moves between log directories that an aim needs, with the fewest bytes copied.

    In: `topics`, globs of live topics: others count and stay. Those that the estate does not
    manage, and internal ones, only leave directories that are to be emptied. `state` is as for
    `plan_moves`.
    Errors: UsageError if the cluster does not allow it, if no topic matches, or if a directory that
    is to be emptied is not there, or has failed.
    """
    if MoveKind.REBALANCE not in allowed_moves(entry, MoveKind.REBALANCE).allow:
        what = f"{entry.name} does not allow rebalance; add it to moves.allow in clusters.yaml"
        raise UsageError(what)
    if unmatched := list_unmatched(state.topics, topics):
        raise UsageError(f"no live topic of {entry.name} matches --topic {unmatched[0]!r}")
    _check_aim(aim, state)
    state = assume_defaults(entry, state)
    moving = frozenset((each.topic, each.partition) for each in state.reassignments)
    movable = _Movable(entry, state, topics, moving)
    copies: list[DirectoryCopy] = []
    bands: list[DirectoryBand] = []
    refusals: list[Finding] = []
    left: Left = defaultdict(list)
    least, unreached, examined, rest = 0, False, 0, aim.max_bytes
    for broker in _list_brokers(aim, state, left):
        examined += 1
        held = _BrokerDirectories(broker, state, aim, allowed_moves(entry), movable, left)
        if not held.are_apart:
            continue
        found = held.move(inf if rest is None else rest)
        copied = sum(copy.size_bytes for copy in found.copies)
        rest = None if rest is None else rest - copied
        copies += found.copies
        bands += found.bands
        least += found.least
        unreached |= any(not band.low <= band.after <= band.high for band in found.bands)
        refusals += [] if aim.max_bytes is not None else held.refuse_left(found, entry)
    if not examined and not left:
        left["they have one log directory"] = ["all brokers"]
    by_name = {spec.name: spec for spec in specs}
    judge = PolicyEngine(entry, entry.catalogue).judge
    by_topic: dict[str, list[DirectoryCopy]] = defaultdict(list)
    for copy in copies:
        by_topic[copy.topic].append(copy)
    planned = tuple(
        _plan_topic(by_name.get(name, TopicSpec(name, entry.location)), state, each, judge)
        for name, each in sorted(by_topic.items())
    )
    refused = {topic.name for topic in planned if topic.refusals}
    directories = PlannedDirectories(
        aim.within_percent,
        examined,
        tuple(bands),
        tuple(copy for copy in copies if copy.topic not in refused),
        least,
        unreached,
        tuple(sorted(aim.emptied)),
    )
    notes = (
        *entry.notes,
        *list_notes(state),
        *note_unregistered(entry, state),
        *note_failed_directories(entry, state),
        *_note_left(left),
    )
    plan = Plan(
        cluster=entry.name,
        cluster_id=state.cluster_id,
        brokers=tuple(sorted(state.brokers)),
        topics=planned,
        unchanged=sum(is_chosen(name, topics) for name in state.topics) - len(planned),
        live_topics=len(state.user_topics),
        notes=mute_notes(entry, notes),
        refusals=tuple(refusals),
        excluded=tuple(sorted(entry.exclude_brokers)),
        scope=Scope(topics),
        health=find_problems(state),
        moves=PlannedMoves(allowed_moves(entry), 0, 0, 0, directories=directories),
    )
    return add_cost(entry, plan, state, made_by=_name_command(aim))


def _name_command(aim: DirectoryAim) -> str:
    """Return the command that makes the plan, without the options that a scope names."""
    said = ["rebalance"]
    if aim.evens:
        said += ["--disks", f"--within {aim.within_percent:g}%"]
    said += [f"--empty-dir {broker}:{path}" for broker, path in sorted(aim.emptied)]
    if aim.brokers:
        said.append(f"--brokers {','.join(map(str, sorted(aim.brokers)))}")
    if aim.max_bytes is not None:
        said.append(f"--max-bytes {aim.max_bytes}B")
    return " ".join(said)


def _check_aim(aim: DirectoryAim, state: ClusterState) -> None:
    """Refuse brokers and directories that are not there. Errors: UsageError."""
    known = {broker.id: broker for broker in state.brokers}
    for number in sorted(aim.brokers | {number for number, _ in aim.emptied}):
        if number not in known:
            listed = ", ".join(map(str, sorted(known)))
            raise UsageError(f"there is no broker {number}; brokers: {listed}")
    for number, path in sorted(aim.emptied):
        held = {each.path: each for each in state.directories.get(number, ())}
        if not known[number].alive or not held:
            what = f"broker {number} does not say which log directories it has"
            raise UsageError(f"{what}, so {path} cannot be emptied")
        if path not in held:
            listed = ", ".join(held)
            raise UsageError(f"broker {number} has no log directory {path}; it has {listed}")
        if failed := [each for each, directory in held.items() if not directory.online]:
            what = f"log directory {failed[0]} of broker {number} has failed"
            way_out = (
                "then Kafka moves nothing between the directories of the broker; with "
                "--offline-replicas, what was in it is copied to other brokers"
            )
            raise UsageError(f"{what}: {way_out}")
        if {(number, each) for each in held} <= aim.emptied:
            what = f"broker {number} has no log directory besides those that are to be emptied"
            raise UsageError(f"{what}; drain it with drain_brokers in clusters.yaml instead")


def _list_brokers(aim: DirectoryAim, state: ClusterState, left: Left) -> Iterator[int]:
    """Yield the brokers with several log directories that can move replicas between them."""
    emptied = {broker for broker, _ in aim.emptied}
    for broker in sorted(state.brokers):
        if broker.id not in emptied and not (
            aim.evens and (not aim.brokers or broker.id in aim.brokers)
        ):
            continue
        held = state.directories.get(broker.id, ())
        if not broker.alive:
            left["not alive"].append(f"broker {broker.id}")
        elif any(not each.online for each in held):
            # Kafka creates no log on a broker with a directory that has failed.
            why = "a log directory has failed; see --offline-replicas"
            left[why].append(f"broker {broker.id}")
        elif len(held) > 1:
            yield broker.id


@dataclass(frozen=True, slots=True)
class _Movable:
    """Which replicas may move, and why others stay."""

    entry: ClusterEntry
    state: ClusterState
    topics: str
    moving: frozenset[Place]

    def refuse(self, place: Place, broker: int, *, leaves: bool) -> str | None:
        """Say why a replica stays: "" if that needs no word, None if it may move.

        `leaves`: its directory is to be emptied, so topics of nobody leave it as well.
        """
        name, number = place
        topic = self.state.topics.get(name)
        if topic is None or number >= len(topic.assignment):
            return "of no topic"
        if not is_chosen(name, self.topics):
            return ""
        if not leaves and (topic.internal or not self.entry.manages(name)):
            return ""
        if place in self.moving or number in topic.reassigning:
            return "being reassigned"
        if broker not in topic.assignment[number]:
            return "of no topic"  # what a move to another broker has left behind
        if topic.in_sync and broker not in topic.in_sync[number]:
            return "not in sync"
        return None


@dataclass(frozen=True, slots=True)
class _Found:
    """What is copied on one broker, its bands, the least that it takes, and what is in the way.

    `stuck` are the bytes of replicas that could leave a directory that is to be emptied, and for
    which no other one has room, by path.
    """

    copies: tuple[DirectoryCopy, ...]
    bands: tuple[DirectoryBand, ...]
    least: int
    stuck: Mapping[str, int] = field(default_factory=dict)


class _BrokerDirectories:
    """The log directories of one broker as arrays, with the replicas in them."""

    def __init__(
        self,
        broker: int,
        state: ClusterState,
        aim: DirectoryAim,
        policy: MovePolicy,
        movable: _Movable,
        left: Left,
    ) -> None:
        import numpy as np

        from reconciler.placement.loads.shares import bound_loads

        self.broker = broker
        self.directories: Sequence[LogDirectory] = state.directories[broker]
        self.paths = [each.path for each in self.directories]
        self.emptied = np.array([(broker, path) in aim.emptied for path in self.paths])
        stored = sorted(state.stored.get(broker, {}).items())
        self.places = [place for place, _ in stored]
        self.sizes = np.array([each.size_bytes for _, each in stored], dtype=np.int64)
        # What is being moved counts where it will be.
        self.rows = np.array(
            [self.paths.index(each.target or each.path) for _, each in stored], dtype=np.int64
        )
        self.evens = aim.evens and (not aim.brokers or broker in aim.brokers)
        self.movable = np.array(
            [self._may_move(*each, movable, left) for each in stored], dtype=bool
        )
        capacity = self._list_capacity() * ~self.emptied
        self.load = np.bincount(self.rows, self.sizes, len(self.paths)).astype(np.int64)
        self.shares = self.load.sum() * capacity / capacity.sum()
        part = aim.within_percent / 100
        self.low, high, apart = bound_loads(self.load, self.shares, part, part / 2)
        self.room = self._find_room(policy)
        self.high = np.where(high > self.load, np.minimum(high, self.load + self.room), high)
        self.apart = (apart & self.evens) | (self.emptied & (self.load > 0))
        # One whose replicas are all empty is to be emptied as well.
        self.apart |= self.emptied & np.isin(np.arange(len(self.paths)), self.rows)

    @property
    def are_apart(self) -> bool:
        """Whether a directory is outside its band, or is to be emptied."""
        return bool(self.apart.any())

    def _may_move(
        self, place: Place, replica: StoredReplica, movable: _Movable, left: Left
    ) -> bool:
        number = self.paths.index(replica.target or replica.path)
        leaves = bool(self.emptied[number])
        if not leaves and not self.evens:
            return False
        why = movable.refuse(place, self.broker, leaves=leaves)
        if why is None and replica.target:
            why = "being moved between log directories"
        if why:
            left[why].append(f"{place[0]} partition {place[1]} on broker {self.broker}")
        return why is None

    def _list_capacity(self) -> Floats:
        import numpy as np

        totals = [each.total_bytes for each in self.directories]
        return np.array(totals if all(totals) else [1] * len(totals), dtype=np.float64)

    def _find_room(self, policy: MovePolicy) -> Ints:
        """Return the bytes that each directory can take; very much if it does not tell."""
        import numpy as np

        room = [
            2**62
            if each.usable_bytes is None or each.total_bytes is None
            else each.usable_bytes - -(-each.total_bytes * policy.keep_free_percent // 100)
            for each in self.directories
        ]
        return np.maximum(np.array(room, dtype=np.int64), 0)

    def move(self, most_bytes: float) -> _Found:
        """Choose directories for replicas."""
        import numpy as np

        from reconciler.placement.loads.check import check_loads
        from reconciler.placement.loads.problem import LoadProblem
        from reconciler.placement.loads.search import balance_loads

        count_ = len(self.paths)
        problem = LoadProblem(
            rows=self.rows[:, None],
            loads=self.sizes[None, :],
            fixed=np.zeros((1, count_), dtype=np.int64),
            cost=self.sizes,
            low=(self.low if self.evens else np.zeros(count_, dtype=np.int64))[None, :],
            high=self.high[None, :],
            scale=np.array([max(1.0, float(self.load.sum()) / count_)]),
            racks=np.zeros(count_, dtype=np.int64),
            receivers=~self.emptied,
            movable=self.movable,
            topics=np.zeros(len(self.rows), dtype=np.int64),
            room=self.room,
        )
        found = balance_loads(problem, most_bytes)
        after = found.rows[:, 0].copy()
        stuck = self._empty(after, most_bytes - problem.measure_cost(after[:, None]))
        if violations := check_loads(problem, after[:, None]):
            raise AssertionError("; ".join(violations))
        least = int(found.least_cost)
        if not self.evens:  # whatever goes where, all that can leave is copied
            least = int(self.sizes[self.movable & self.emptied[self.rows]].sum())
        held = problem.add_up(after[:, None])[0]
        copies = tuple(
            DirectoryCopy(
                topic,
                partition,
                self.broker,
                self.paths[self.rows[n]],
                self.paths[after[n]],
                int(self.sizes[n]),
            )
            for n in (after != self.rows).nonzero()[0]
            for topic, partition in [self.places[n]]
        )
        bands = tuple(
            DirectoryBand(
                self.broker,
                path,
                round(float(self.shares[n])),
                int(problem.low[0, n]),
                int(self.high[n]),
                int(self.load[n]),
                int(held[n]),
                bool(self.apart[n]),
            )
            for n, path in enumerate(self.paths)
        )
        return _Found(copies, bands, least, stuck)

    def _add_up_arrivals(self, after: Ints) -> Ints:
        import numpy as np

        new = after != self.rows
        return np.bincount(after[new], self.sizes[new], len(self.paths)).astype(np.int64)

    def _empty(self, after: Ints, most_bytes: float) -> dict[str, int]:
        """Move what is left in directories that are to be emptied to where most room is.

        A band does not hold it back. Returns: the bytes that find no room, by path.
        """
        import numpy as np

        left = np.flatnonzero(self.movable & self.emptied[after])
        stuck: dict[str, int] = defaultdict(int)
        for n in left[np.lexsort((left, -self.sizes[left]))]:
            room = np.where(self.emptied, -1, self.room - self._add_up_arrivals(after))
            held = np.bincount(after, self.sizes, len(self.paths))
            able = np.flatnonzero(room >= self.sizes[n])
            if not len(able) or self.sizes[n] > most_bytes:
                stuck[self.paths[after[n]]] += int(self.sizes[n])
                continue
            least = able[np.argmin((held[able] + self.sizes[n]) / self.shares[able].clip(1))]
            after[n] = least
            most_bytes -= int(self.sizes[n])
        return dict(stuck)

    def refuse_left(self, found: _Found, entry: ClusterEntry) -> Iterator[Finding]:
        """Refuse to empty a directory whose replicas find no room elsewhere."""
        free = entry.moves.keep_free_percent if entry.moves else 0
        for path, size in found.stuck.items():
            yield Finding(
                "moves-disk",
                f"{path} of broker {self.broker} cannot be emptied: its other log directories have "
                f"no room for {approximate_size(size)} with keep_free: {free}%",
                "free space on the broker, or move replicas to other brokers first",
                entry.where("moves.keep_free"),
            )


def _plan_topic(
    spec: TopicSpec, state: ClusterState, copies: Sequence[DirectoryCopy], judge: Judge
) -> PlannedTopic:
    live = state.topics[spec.name]
    ordered = sorted(copies, key=lambda copy: (copy.partition, copy.broker))
    before, after = (
        TopicImage(
            live.topic_id,
            live.assignment,
            {},
            directories=tuple(
                ReplicaDirectory(copy.partition, copy.broker, path)
                for copy, path in zip(ordered, paths, strict=True)
            ),
        )
        for paths in ([c.source for c in ordered], [c.target for c in ordered])
    )
    are = "is" if len(copies) == 1 else "are"
    what = f"{count(len(copies), 'replica')} {are} copied between log directories"
    risk = RiskNote(Risk.TRAFFIC, what).with_consent(spec)
    facts = TopicFacts(
        len(live.assignment),
        max(map(len, live.assignment), default=0),
        {**state.config_defaults, **managed_overrides(live)},
    )
    change = ChangeFacts((Verb.RELOCATE,), facts, facts, risks=(str(risk.risk),))
    found = tuple(judge.judge_change(spec, change))
    refusals = tuple(each for each in found if each.severity is Severity.ERROR)
    return PlannedTopic(
        name=spec.name,
        location=spec.location,
        before=before,
        after=before if refusals else after,
        risks=() if refusals else (risk,),
        refusals=refusals,
        notes=tuple(each for each in found if each.severity is not Severity.ERROR),
        owner=spec.owner,
        labels=spec.labels,
    )


def _note_left(left: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    """Name what stays where it is, by reason."""
    for why, names in sorted(left.items()):
        listed = list(names)[:NAMED]
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        what = f"left as they are ({why}): {', '.join(listed)}{more}"
        yield Finding("directories-left", what, severity=Severity.NOTE)
