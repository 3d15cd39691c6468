"""A plan that levels what history left, or uses brokers that joined. It is made on request only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from reconciler.diff.brokers import eligible_brokers
from reconciler.diff.notes import (
    assume_defaults,
    mute_notes,
    note_failed_directories,
    note_internal_topics,
    note_pending_internal,
    note_unregistered,
)
from reconciler.errors import Finding, Severity, UsageError
from reconciler.model.cluster import (
    Assignment,
    Broker,
    ClusterState,
    Place,
    Replicas,
    ThrottleSide,
    TopicSpec,
    TopicState,
)
from reconciler.model.moves import MoveKind
from reconciler.model.plan import Plan, Scope, is_chosen, list_unmatched
from reconciler.model.steps import steps_of
from reconciler.moves.differences import MoveDiff, diff_moves
from reconciler.moves.forecast import list_row_moves
from reconciler.moves.plan import add_cost, allowed_moves, compose_moves, list_notes
from reconciler.moves.window import RowMove
from reconciler.placement.bounds import share_evenly
from reconciler.placement.measure import measure_balance, measure_quality
from reconciler.placement.moving.problem import MoveGoal
from reconciler.spec.entry import ClusterEntry
from reconciler.units import approximate_size, count, format_size

NAMED = 5
"""The number of topics that a note names; it counts the others."""


def plan_rebalance(
    entry: ClusterEntry,
    specs: Iterable[TopicSpec],
    state: ClusterState,
    *,
    topics: str = "*",
    brokers: Collection[int] = (),
    max_bytes: int | None = None,
    offline: bool = False,
) -> Plan:
    """Plan the fewest moves that make replicas as even as possible, of topics and of the cluster.

    `offline`: move only the replicas on failed log directories, to brokers that have none, of every
    live topic, and leave all else as it is.

    In: `topics`, globs of live topics, in a file or not; those that the estate does not manage,
    internal ones and manual rows stay. `brokers` are the only ones that take replicas, none of them
    more than its even share of the cluster, unless `offline`; by default all that are able do,
    without a bound. `max_bytes` limits what is copied: the smallest partitions move first, and a
    later plan moves others. `state` is as for `plan_moves`.
    Errors: UsageError if the cluster does not allow it, if no topic matches, or a broker is not
    able to take replicas.
    """
    if MoveKind.REBALANCE not in allowed_moves(entry).allow:
        what = f"{entry.name} does not allow rebalance; add it to moves.allow in clusters.yaml"
        raise UsageError(what)
    live = state.topics if offline else state.user_topics
    if unmatched := list_unmatched(live, topics):
        raise UsageError(f"no live topic of {entry.name} matches --topic {unmatched[0]!r}")
    able = {broker.id for broker in eligible_brokers(state.brokers, entry.exclude_brokers)}
    failed = state.failed_directories.keys() if offline else frozenset()
    able -= failed
    if unable := sorted(set(brokers) - able):
        why = ", as a log directory of it has failed" if unable[0] in failed else ""
        listed = ", ".join(map(str, sorted(able))) or "none"
        what = f"broker {unable[0]} cannot take replicas{why}; brokers that can: {listed}"
        raise UsageError(what)
    state = assume_defaults(entry, state)
    choice = _Choice(entry, {spec.name: spec for spec in specs}, state)
    takers = sorted(brokers or able)
    diffs = tuple(choice.choose_offline(topics, takers, able) if offline else choice.choose(topics))
    # What is on a failed disk has to go somewhere, so no share bounds it.
    anywhere = {spec.name for spec in choice.specs.values() if not spec.rack_aware}
    shares = _share_evenly(entry, state, anywhere) if brokers and not offline else {}
    most = {broker: shares[broker] for broker in brokers if shares}
    compose = partial(
        compose_moves,
        entry,
        state=state,
        brokers=takers,
        most=most,
        goal=MoveGoal.OFFLINE_REPLICAS if offline else MoveGoal.BALANCE,
    )
    plan = compose(diffs)
    limited = None
    if max_bytes is not None:
        diffs, limited = _limit_bytes(plan, diffs, state, max_bytes, most)
        plan = compose(diffs)
    moved = tuple(topic for topic in plan.topics if steps_of(topic) or topic.refusals)
    notes = (
        *entry.notes,
        *list_notes(state),
        *note_unregistered(entry, state),
        *note_internal_topics(entry, state),
        *note_pending_internal(entry, state),
        *note_failed_directories(entry, state),
        *plan.notes,
        *choice.note_left(),
        *(_note_uneven(plan, diffs, state, shares) if shares else ()),
    )
    plan = replace(
        plan,
        topics=moved,
        unchanged=len(diffs) - len(moved),
        notes=mute_notes(entry, (*notes, limited) if limited else notes),
        scope=Scope(topics),
    )
    return add_cost(entry, plan, state, made_by=_name_command(brokers, max_bytes, offline=offline))


def _name_command(brokers: Collection[int], max_bytes: int | None, *, offline: bool) -> str:
    """Return the command that makes the plan, without the options that a scope names."""
    chosen = [f"--brokers {','.join(map(str, sorted(brokers)))}"] if brokers else []
    limit = [f"--max-bytes {max_bytes}B"] if max_bytes is not None else []
    only = ["--offline-replicas"] if offline else []
    return " ".join(["rebalance", *only, *chosen, *limit])


class _Choice:
    """The topics that may move, and why others may not."""

    def __init__(
        self, entry: ClusterEntry, specs: Mapping[str, TopicSpec], state: ClusterState
    ) -> None:
        self.entry, self.specs, self.state = entry, specs, state
        self.left: dict[str, list[str]] = defaultdict(list)
        self.alive = {broker.id for broker in state.brokers if broker.alive}
        cordoned = {broker.id for broker in state.brokers if broker.cordoned}
        self.frozen = cordoned | entry.drain_brokers
        self.moving = {each.topic for each in state.reassignments}

    def choose(self, topics: str) -> Iterator[MoveDiff]:
        """Yield the rows of every topic that may move, by name."""
        every = frozenset(MoveKind)
        asked = diff_moves(
            self.specs.values(), self.state, replace(allowed_moves(self.entry), allow=every)
        )
        pending = {diff.spec.name for diff in asked}
        for name, topic in sorted(self.state.user_topics.items()):
            if not (is_chosen(name, topics) and self.entry.manages(name)):
                continue
            spec = self.specs.get(name, TopicSpec(name, self.entry.location))
            if why := self._refuse(spec, topic, pending):
                self.left[why].append(name)
                continue
            given = {
                number: row
                for number, row in enumerate(topic.assignment)
                if not self._may_move(topic, number, row)
            }
            if given:
                why = "partitions out of sync, or on a cordoned or drained broker"
                self.left[why].append(name)
            if offline := self.state.find_offline(topic):
                given = {
                    number: self._lead_elsewhere(row, topic.in_sync[number], offline[number])
                    for number, row in given.items()
                }
            kept = replace(spec, partitions=None, replication_factor=None, assignment=None)
            yield MoveDiff(kept, topic, topic.assignment, given, None, ())

    def choose_offline(
        self, topics: str, takers: Collection[int], able: Collection[int]
    ) -> Iterator[MoveDiff]:
        """Yield the topics with replicas on failed log directories; only rows with one may move.

        In: the brokers that take replicas, and all that could. Topics internal to Kafka and those
        of no file count as well: a disk fails for all.
        """
        for name, topic in sorted(self.state.topics.items()):
            offline = self.state.find_offline(topic)
            if not any(offline) or not is_chosen(name, topics):
                continue
            spec = self.specs.get(name, TopicSpec(name, self.entry.location))
            if why := self._refuse(spec, topic, ()):
                self.left[why].append(name)
                continue
            given = {n: row for n, row in enumerate(topic.assignment) if not offline[n]}
            for number, row in enumerate(topic.assignment):
                stays = set(row).difference(offline[number])
                if not offline[number]:
                    continue
                if not self.alive.intersection(topic.in_sync[number]):
                    why = "no replica that is alive and in sync"
                elif not self.frozen.isdisjoint(row):
                    why = "on a cordoned or drained broker"
                elif len(stays.union(able)) < len(row):
                    why = "too few brokers without a failed log directory"
                elif len(stays.union(takers)) < len(row):
                    why = "too few of --brokers can take one"
                else:
                    continue
                given[number] = row
                if name not in self.left[why]:
                    self.left[why].append(name)
            kept = replace(spec, partitions=None, replication_factor=None, assignment=None)
            yield MoveDiff(kept, topic, topic.assignment, given, None, ())

    def _refuse(self, spec: TopicSpec, topic: TopicState, pending: Collection[str]) -> str:
        """Say why a topic may not move; nothing if it may."""
        if spec.absent:
            return "to be deleted"
        if spec.assignment is not None:
            return "manual assignment"
        if topic.name in self.moving or topic.reassigning:
            return "being reassigned"
        if any("*" in (topic.config.get(side.list_key) or "") for side in ThrottleSide):
            return "a throttle list of *, which reconciler did not set"
        if topic.name in pending:
            return "moves are pending: reconciler plan --moves"
        return ""

    def _may_move(self, topic: TopicState, number: int, row: Replicas) -> bool:
        """Return whether a partition is healthy, and on no broker that keeps it."""
        in_sync = topic.in_sync[number] if topic.in_sync else row
        return set(row) <= self.alive & set(in_sync) and self.frozen.isdisjoint(row)

    def _lead_elsewhere(self, row: Replicas, in_sync: Replicas, offline: Replicas) -> Replicas:
        """Return a row that stays, in another order if its preferred leader has a failed disk.

        Brokers refuse another order of a row with a cordoned broker.
        """
        if row[0] not in offline or not self.frozen.isdisjoint(row):
            return row
        able = self.alive.intersection(in_sync)
        leader = next((broker for broker in row if broker in able), row[0])
        return (leader, *(broker for broker in row if broker != leader))

    def note_left(self) -> Iterator[Finding]:
        """Name the topics that stay, by reason."""
        for why, names in self.left.items():
            more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
            what = f"{count(len(names), 'topic')} left as they are ({why})"
            listed = f"{what}: {', '.join(names[:NAMED])}{more}"
            yield Finding("rebalance-left", listed, severity=Severity.NOTE)


def _share_evenly(
    entry: ClusterEntry, state: ClusterState, anywhere: Collection[str]
) -> dict[int, int]:
    """Return the even share of the cluster's replicas of each broker that can take some.

    In: the topics for which the racks play no part. Excluded brokers give replicas up, so these
    count; what stays on brokers that are dead, cordoned or drained does not.
    """
    able = eligible_brokers(state.brokers, entry.exclude_brokers)
    apart = {broker.id for broker in able} | entry.drain_brokers
    live = state.user_topics.items()
    return share_evenly(
        able,
        chain.from_iterable(topic.assignment for name, topic in live if name not in anywhere),
        entry.capacity,
        anywhere=chain.from_iterable(topic.assignment for name, topic in live if name in anywhere),
        giving=[b for b in state.brokers if b.alive and not b.cordoned and b.id not in apart],
    )


def _note_uneven(
    plan: Plan, diffs: Iterable[MoveDiff], state: ClusterState, shares: Mapping[int, int]
) -> Iterator[Finding]:
    """Say what stays uneven because only some brokers take replicas, and these have their share."""
    live = {name: topic.assignment for name, topic in state.user_topics.items()}
    after = live | {topic.name: topic.after.assignment for topic in plan.topics if topic.after}
    held = Counter(broker for rows in after.values() for row in rows for broker in row)
    above = [broker for broker in sorted(shares) if held[broker] > shares[broker]]
    able = [broker for broker in state.brokers if broker.id in shares]
    # Topics that stay as they are have their own note.
    racked = {diff.spec.name: diff.spec.rack_aware for diff in diffs}
    uneven = [
        name
        for name, rack_aware in sorted(racked.items())
        if _is_uneven(after[name], able, rack_aware=rack_aware)
    ]
    spread = (after[name] for name, rack_aware in racked.items() if rack_aware)
    racks = measure_quality(spread, state.brokers).rack_violations
    parts = []
    if above:
        worst = max(above, key=lambda broker: held[broker] - shares[broker])
        example = f"broker {worst} has {held[worst]:,} replicas, its share is {shares[worst]:,}"
        parts.append(f"{count(len(above), 'broker')} above the even share ({example})")
    if uneven:
        more = f" and {len(uneven) - NAMED:,} more" if len(uneven) > NAMED else ""
        parts.append(f"{count(len(uneven), 'topic')} ({', '.join(uneven[:NAMED])}{more})")
    if racks:
        parts.append(f"{count(racks, 'partition')} over the racks")
    if parts:
        yield Finding(
            "rebalance-uneven",
            "only the brokers of --brokers take replicas, up to their even share; "
            f"this stays uneven: {'; '.join(parts)}",
            "a rebalance without --brokers also moves replicas between the others",
            severity=Severity.NOTE,
        )


def _is_uneven(rows: Assignment, able: Sequence[Broker], *, rack_aware: bool) -> bool:
    """Return whether a topic is less even over brokers than their racks allow."""
    racks: dict[str | None, list[int]] = defaultdict(list)
    for broker in able:
        racks[broker.rack if rack_aware else None].append(broker.id)
    if any(measure_balance([rows], ids).replicas.skew > 1 for ids in racks.values()):
        return True
    if measure_balance([rows], [broker.id for broker in able]).replicas.skew <= 1:
        return False
    held = Counter(chain.from_iterable(rows))
    return any(held[broker] > most for broker, most in share_evenly(able, rows, {}).items())


def _limit_bytes(
    plan: Plan,
    diffs: Iterable[MoveDiff],
    state: ClusterState,
    max_bytes: int,
    most: Mapping[int, int],
) -> tuple[tuple[MoveDiff, ...], Finding | None]:
    """Decide every row: the smallest partitions move, as many as copy `max_bytes` together.

    In: `most`, the bounds of the plan. Returns: the rows, and a note if some do not move.
    """
    moves = list_row_moves(plan, state)
    copies = sorted(
        (move for move in moves if move.adding),
        key=lambda move: (move.size * len(move.adding), move.place),
    )
    if unknown := [move.place for move in moves if move.adding and move.size < 0]:
        name, number = unknown[0]
        what = f"the size of {name} partition {number} is unknown"
        raise UsageError(f"{what}, so --max-bytes cannot be kept; leave it out")
    all_bytes = sum(move.size * len(move.adding) for move in copies)
    kept, way_out = {move.place for move in copies}, "rebalance again after this plan"
    if all_bytes > max_bytes:
        live = chain.from_iterable(topic.assignment for topic in state.user_topics.values())
        held = Counter(chain.from_iterable(live))
        room = {broker: max(n - held[broker], 0) for broker, n in most.items()}
        kept = _choose_copies(copies, max_bytes, dict(room))
        if not kept:  # and no later plan copies any
            able = (move for move in copies if all(room.get(broker) != 0 for broker in move.adding))
            least = next((move.size * len(move.adding) for move in able), all_bytes)
            way_out = f"nothing fits: write --max-bytes {format_size(least)} or more"
    after = {topic.name: topic.after.assignment for topic in plan.topics if topic.after}
    limited = []
    for diff in diffs:
        name = diff.spec.name
        rows = enumerate(zip(diff.rows, after[name], strict=True))
        given = {n: new if (name, n) in kept or {*new} == {*old} else old for n, (old, new) in rows}
        limited.append(replace(diff, given=given))
    rest = len(copies) - len(kept)
    if not rest:
        return tuple(limited), None
    note = Finding(
        "rebalance-limited",
        f"{count(rest, 'partition')} stay, because all would copy {approximate_size(all_bytes)}",
        way_out,
        severity=Severity.NOTE,
    )
    return tuple(limited), note


def _choose_copies(copies: Sequence[RowMove], most_bytes: int, room: dict[int, int]) -> set[Place]:
    """Choose the partitions that move, in order, as long as bytes and the room on brokers last.

    What has no room waits for others of the plan to make some. `room` names bounded brokers only.
    """
    chosen: set[Place] = set()
    while True:
        waiting = []
        for move in copies:
            size = move.size * len(move.adding)
            if size > most_bytes or any(room.get(broker) == 0 for broker in move.adding):
                waiting.append(move)
                continue
            chosen.add(move.place)
            most_bytes -= size
            for broker in room.keys() & {*move.adding, *move.removing}:
                room[broker] += 1 if broker in move.removing else -1
        if len(waiting) == len(copies):
            return chosen
        copies = waiting
