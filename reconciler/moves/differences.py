"""Existing partitions compared with their specs: which rows must change, and refusals.

Only what is asked for moves: another number of replicas, other manual rows, or off a broker that
is drained. Topics internal to Kafka have no spec in a file, so what asks for them is a key of
clusters.yaml or a file of rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.diff.brokers import PlacementBrokers
from reconciler.diff.fields import (
    FieldChange,
    compare_fields,
    current_fields,
    desired_fields,
    desired_replication,
    managed_overrides,
)
from reconciler.diff.moving import (
    allow_moves,
    kind_of,
    list_kinds,
    name_partitions,
)
from reconciler.diff.refusals import Allows, allow_all, refuse_change
from reconciler.errors import Finding, Location, Severity
from reconciler.model.cluster import (
    Assignment,
    ClusterState,
    Reassignment,
    Replicas,
    ThrottleSide,
    TopicSpec,
    TopicState,
)
from reconciler.model.health import is_offline, read_min_insync
from reconciler.model.moves import MIN_INSYNC, MovePolicy
from reconciler.units import count, name_each


@dataclass(frozen=True, slots=True)
class MoveDiff:
    """The differences between one spec and the existing partitions of its topic.

    `rows` holds the replicas of each partition without those that a reassignment adds. `given`
    holds the rows that are decided, by partition: manual ones, what is in flight already, and what
    cannot change. Every other row is to have `replication` replicas, or as many as it has if that
    is None, and none on a drained broker. If there are `refusals`, or another tool moves the topic
    (`foreign`), nothing moves.
    """

    spec: TopicSpec
    state: TopicState
    rows: Assignment
    given: Mapping[int, Replicas]
    replication: int | None
    changes: tuple[FieldChange, ...]
    refusals: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    foreign: bool = False

    @property
    def stays(self) -> bool:
        """Return whether nothing of the topic moves."""
        return self.foreign or bool(self.refusals)


def diff_moves(
    specs: Iterable[TopicSpec],
    cluster: ClusterState,
    moves: MovePolicy,
    excluded: Collection[int] = (),
    allows: Allows = allow_all,
    drained: frozenset[int] = frozenset(),
) -> tuple[MoveDiff, ...]:
    """Compare every spec with the existing partitions of its topic.

    `cluster` lists all reassignments in flight; a partition that is only known to be in flight is
    left alone. `drained` brokers are among the excluded ones. Topics without a difference and
    without a replica there are left out, and so are new topics and topics to be deleted. Returns
    the others by name. Errors: none; what cannot move is refused by topic.
    """
    moving: dict[str, dict[int, Reassignment]] = defaultdict(dict)
    for each in cluster.reassignments:
        moving[each.topic][each.partition] = each
    comparison = _Comparison(cluster, moves, excluded, allows, drained)
    live = cluster.topics
    found = [
        comparison.compare(spec, live[spec.name], moving[spec.name])
        for spec in sorted(specs, key=lambda spec: spec.name)
        if spec.name in live and not spec.absent
    ]
    return tuple(diff for diff in found if diff is not None)


class _Comparison:
    """The inputs that all topics of one comparison share."""

    def __init__(
        self,
        cluster: ClusterState,
        moves: MovePolicy,
        excluded: Collection[int],
        allows: Allows,
        drained: frozenset[int],
    ) -> None:
        self.moves = moves
        self.drained = drained
        self.allows = allows
        self.brokers = PlacementBrokers(cluster.brokers, excluded, allows)
        self.defaults = cluster.config_defaults
        self.alive = {broker.id for broker in cluster.brokers if broker.alive}
        # Rows leave a drained broker, whether it is cordoned yet or not.
        self.cordoned = {b.id for b in cluster.brokers if b.cordoned and b.id not in drained}

    def compare(
        self, spec: TopicSpec, state: TopicState, moving: Mapping[int, Reassignment]
    ) -> MoveDiff | None:
        """Return the rows of one topic that must change, or None if all are as its spec says."""
        rows = tuple(
            moving[number].current if number in moving else row
            for number, row in enumerate(state.assignment)
        )
        now = replace(state, assignment=rows)
        differences = compare_fields(current_fields(spec, now, {}), desired_fields(spec, {}))
        every = tuple(differences)
        changes = tuple(change for change in every if kind_of(change) is not None)
        targets = [each.target for each in moving.values()]
        stays = all(map(self.drained.isdisjoint, (*rows, *targets)))
        if stays and not changes:
            return None
        given, foreign = self._settle(spec, now, moving)
        diff = MoveDiff(spec, now, rows, given, desired_replication(spec), changes)
        if foreign:
            return replace(diff, notes=(_note_foreign(spec, changes, foreign),), foreign=True)
        shrinks = [
            change
            for change in every
            if change.path == "partitions" and spec.assignment and len(spec.assignment) < len(rows)
        ]
        return replace(diff, refusals=tuple(self._refuse(diff, moving, shrinks)))

    def _settle(
        self, spec: TopicSpec, state: TopicState, moving: Mapping[int, Reassignment]
    ) -> tuple[dict[int, Replicas], list[int]]:
        """Return the rows that are decided, and the partitions in flight to somewhere else."""
        replication = desired_replication(spec)
        unmanaged = state.internal or (replication is None and spec.assignment is None)
        given: dict[int, Replicas] = {}
        foreign = []
        for number, row in enumerate(state.assignment):
            wanted = None
            if spec.assignment is not None:
                wanted = spec.assignment[number] if number < len(spec.assignment) else row
            if number in moving:
                target = moving[number].target
                fulfils = len(target) == (replication or len(row)) and not self._must_change(
                    target, replication
                )
                if target == wanted or (
                    wanted is None and fulfils and self._must_change(row, replication)
                ):
                    given[number] = target
                else:
                    foreign.append(number)
            elif number in state.reassigning:
                foreign.append(number)  # from a snapshot, which does not say what is added
            elif wanted is not None:
                given[number] = wanted
            elif not self._must_change(row, replication) and (
                unmanaged or self.cordoned & set(row) or self._is_leaderless(state, number)
            ):
                # It could only get another order. That is for the topics of files, and Kafka 4.4
                # refuses it for a cordoned broker.
                given[number] = row
        return given, foreign

    def _must_change(self, row: Replicas, replication: int | None) -> bool:
        """Return whether other brokers must hold a row, whose rows are not manual."""
        return len(row) != (replication or len(row)) or not self.drained.isdisjoint(row)

    def _is_leaderless(self, state: TopicState, number: int) -> bool:
        """Return whether no replica of a partition can be copied."""
        in_sync = state.in_sync[number] if state.in_sync else None
        leader = state.leaders[number] if state.leaders else None
        return is_offline(state.assignment[number], in_sync, leader, self.alive)

    def _refuse(
        self,
        diff: MoveDiff,
        moving: Mapping[int, Reassignment],
        shrinks: Iterable[FieldChange],
    ) -> Iterator[Finding]:
        """Refuse what the cluster does not allow, cannot hold, or cannot copy."""
        spec, rows = diff.spec, diff.rows
        allow = allow_moves(list_kinds(diff.changes), self.moves)
        refused = [c for c in diff.changes if kind_of(c) not in self.moves.allow]
        for change in (*shrinks, *refused):
            yield from refuse_change(spec, diff.state, change, self.allows, allow)
        altered = [
            number
            for number, row in enumerate(rows)
            if number not in moving and diff.given.get(number) != row
        ]
        free = [number for number in altered if number not in diff.given]
        if diff.replication and any(len(rows[number]) < diff.replication for number in free):
            yield from self.brokers.refuse_placement(spec, None, diff.replication)
        else:
            yield from self._refuse_drain(diff, free)
        for number, row in diff.given.items():
            if kept := sorted(self.drained.intersection(row)):
                brokers = ", ".join(map(str, kept))
                yield Finding(
                    "broker-drained",
                    f"partition {number} is assigned to broker {brokers}, which drain_brokers "
                    "empties",
                    f"assign it to other brokers, or remove {brokers} from drain_brokers",
                    spec.where(f"assignment.{number}"),
                )
        for number in altered:
            if number in diff.given:
                added = [b for b in diff.given[number] if b not in rows[number]]
                yield from self.brokers.refuse_brokers(spec, number, added)
        if altered and any("*" in (diff.state.config.get(s.list_key) or "") for s in ThrottleSide):
            yield Finding(
                "moves-throttle-left",
                "it has a throttle list of *, which reconciler did not set, so a run would skip it",
                f"remove it: reconciler moves unthrottle --topic {spec.name}",
                spec.location,
            )
        yield from self._refuse_cordoned(diff, altered)
        yield from self._refuse_unhealthy(diff, altered)

    def _refuse_drain(self, diff: MoveDiff, free: Iterable[int]) -> Iterator[Finding]:
        """Refuse to drain rows that too few other brokers can take."""
        eligible = {broker.id for broker in self.brokers.eligible}
        leaving = [number for number in free if not self.drained.isdisjoint(diff.rows[number])]
        able = {number: len(eligible | set(diff.rows[number]) - self.drained) for number in leaving}
        wanted = {number: diff.replication or len(diff.rows[number]) for number in leaving}
        if short := [number for number in leaving if able[number] < wanted[number]]:
            brokers = ", ".join(map(str, sorted(self.drained)))
            worst = max(short, key=lambda number: wanted[number] - able[number])
            yield Finding(
                "drain-impossible",
                f"{name_partitions(short, 'needs', 'need')} {count(wanted[worst], 'broker')}, and "
                f"{able[worst]} can hold {'it' if len(short) == 1 else 'them'} without broker "
                f"{brokers}",
                f"add brokers, or remove {brokers} from drain_brokers",
                _place(diff),
            )
        elif leaving and eligible:
            fits = min(len(eligible), max(wanted.values()))
            yield from self.brokers.refuse_placement(diff.spec, None, fits)

    def _refuse_cordoned(self, diff: MoveDiff, altered: Iterable[int]) -> Iterator[Finding]:
        """Refuse rows that keep a cordoned broker: Kafka 4.4 refuses every target with one."""
        kept: dict[int, list[int]] = {}
        for number in altered:
            row = diff.rows[number]
            for broker in self.cordoned.intersection(row, diff.given.get(number, row)):
                kept.setdefault(broker, []).append(number)
        for broker, numbers in sorted(kept.items()):
            yield Finding(
                "broker-cordoned",
                f"{name_partitions(numbers, 'keeps', 'keep')} a replica on broker {broker}, whose "
                "log directories are all cordoned; brokers refuse to change such a row",
                f"uncordon broker {broker} first",
                _place(diff),
            )

    def _refuse_unhealthy(self, diff: MoveDiff, altered: Iterable[int]) -> Iterator[Finding]:
        """Refuse partitions without a source to copy from, or with too few that would be left."""
        state = diff.state
        needed = read_min_insync(managed_overrides(state), self.defaults) or 0
        leaderless, bare, unwritable = [], [], []
        for number in altered:
            row, new = diff.rows[number], diff.given.get(number, ())
            in_sync = self.alive.intersection(state.in_sync[number] if state.in_sync else row)
            if self._is_leaderless(state, number):
                leaderless.append(number)
            elif new and set(new) <= set(row) and not in_sync.intersection(new):
                bare.append(number)
            elif (
                new
                and set(new) <= set(row)
                and len(in_sync.intersection(new)) < min(needed, len(new))
                and len(in_sync) >= min(needed, len(row))
            ):
                unwritable.append(number)
        if leaderless:
            back = sorted({b for n in leaderless for b in diff.rows[n]} - self.alive)
            brokers = name_each("broker", back) if back else "its brokers"
            yield Finding(
                "moves-unhealthy",
                f"{name_partitions(leaderless, 'has', 'have')} no leader, so there is nothing to "
                "copy from",
                f"start {brokers} and plan again",
                _place(diff),
            )
        if bare:
            yield Finding(
                "moves-unhealthy",
                f"{name_partitions(bare, 'keeps', 'keep')} no replica that is alive and in sync",
                "wait until the replicas that stay are in sync and plan again",
                _place(diff),
            )
        if unwritable:
            yield Finding(
                "moves-unhealthy",
                f"{name_partitions(unwritable, 'keeps', 'keep')} fewer in-sync replicas than "
                f"{MIN_INSYNC} {needed}, so every acks=all write would fail",
                "wait until the replicas that stay are in sync and plan again",
                _place(diff),
            )


def _note_foreign(
    spec: TopicSpec, changes: tuple[FieldChange, ...], numbers: Collection[int]
) -> Finding:
    return Finding(
        "moves-foreign",
        f"{name_partitions(numbers, 'is', 'are')} being reassigned, to other brokers than this "
        "plan needs, so the topic is left as it is",
        "wait until that has ended, or cancel it, and plan again: reconciler moves status shows it",
        spec.where(changes[-1].path) if changes else spec.location,
        Severity.NOTE,
    )


def _place(diff: MoveDiff) -> Location:
    return diff.spec.where(diff.changes[-1].path) if diff.changes else diff.spec.location
