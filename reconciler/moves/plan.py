"""A plan that only moves existing replicas: what the specs and drains ask for, and no other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from types import MappingProxyType

from reconciler.diff.brokers import eligible_brokers
from reconciler.diff.drains import Drain, keep_drained_topics, raise_internal_topics
from reconciler.diff.fields import managed_overrides
from reconciler.diff.guards import check_means, refuse_plan, spell_refused
from reconciler.diff.moving import name_partitions
from reconciler.diff.notes import (
    INTERNAL_FACTOR,
    assume_defaults,
    concerns,
    mute_notes,
    note_failed_directories,
    note_internal_topics,
    note_left,
    note_scope,
    note_unregistered,
)
from reconciler.diff.requests import check_offered
from reconciler.errors import Finding, Severity, UsageError
from reconciler.model.cluster import (
    Assignment,
    ClusterState,
    Risk,
    TopicSpec,
)
from reconciler.model.health import find_problems, read_min_insync
from reconciler.model.moves import (
    MIN_INSYNC,
    DefaultRate,
    LoadKind,
    MoveKind,
    MovePolicy,
    PlannedMoves,
    find_unused_lists,
    read_default,
)
from reconciler.model.plan import (
    Commit,
    Plan,
    PlannedTopic,
    RefusedField,
    RiskNote,
    Scope,
    TopicImage,
    is_chosen,
)
from reconciler.model.requests import KafkaRequest
from reconciler.model.steps import Verb, steps_of
from reconciler.model.throttles import list_throttled
from reconciler.moves.differences import MoveDiff, diff_moves
from reconciler.moves.drains import note_drains, plan_drains
from reconciler.moves.forecast import forecast_moves
from reconciler.moves.guards import guard_moves, judge_lists, name_rate, refuse_default
from reconciler.placement.measure import measure_balance
from reconciler.placement.moving.check import check_moves, count_moves, least_moves
from reconciler.placement.moving.moves import move_replicas
from reconciler.placement.moving.problem import MoveGoal, MoveProblem, MoveWish
from reconciler.placement.problem import count_load
from reconciler.policy.facts import ChangeFacts, TopicFacts
from reconciler.policy.rules import Judge
from reconciler.spec.changes import Changes
from reconciler.spec.entry import ClusterEntry
from reconciler.spec.rules import PolicyEngine
from reconciler.spec.services import SERVICES, spell_moves
from reconciler.units import count, name_each

NAMED = 5
"""The number of topics that a note names; it counts the others."""

UNCLEAN = "unclean.leader.election.enable"
"""The config that lets a replica lead that is not in sync."""

UNSEEN = "reassignments-unseen"
_GROUPS_UNSEEN = "groups-unseen"
"""The note of a reading without the list of what is in flight."""


def plan_moves(
    entry: ClusterEntry,
    specs: Iterable[TopicSpec],
    state: ClusterState,
    *,
    topics: str = "*",
    changes: Changes | None = None,
    commit: Commit | None = None,
    remarks: Iterable[Finding] = (),
) -> Plan:
    """Plan the moves that the specs ask for, with their cost and within the limits of the cluster.

    In: as `plan_cluster`; `state` also lists what is in flight, and the log directories.
    Errors: UsageError if the cluster allows no moves.
    """
    specs = tuple(specs)
    every = [spec for spec in specs if is_chosen(spec.name, topics)]
    chosen = choose_moving(entry, every, changes)
    if chosen:
        state = assume_defaults(entry, state)
    plan = assemble_moves(entry, specs, state, topics=topics, changes=changes)
    files = {spec.location.file for spec in chosen}
    notes = [
        *note_moved_scope(changes, chosen, every, plan),
        *(note_left(changes, specs, plan) if changes else ()),
        *(note for note in remarks if concerns(note, plan)),
        *entry.notes,
        *(note for note in list_notes(state) if concerns(note, plan)),
        *note_unregistered(entry, state),
        *note_internal_topics(entry, state),
        *note_failed_directories(entry, state),
        *note_drains(plan, state, entry.where("drain_brokers")),
        *plan.notes,
    ]
    scope = Scope(topics, changes.ref if changes else None)
    plan = replace(plan, files=len(files), commit=commit, scope=scope)
    plan = replace(plan, notes=mute_notes(entry, notes))
    return add_cost(entry, plan, state)


def note_moved_scope(
    changes: Changes | None, chosen: Iterable[TopicSpec], every: Collection[TopicSpec], plan: Plan
) -> Iterator[Finding]:
    """Return a note on the scope of a plan of moves. In: the specs that it covers, and all."""
    if changes:
        names = {spec.name for spec in chosen}
        moved = {topic.name for topic in plan.topics if steps_of(topic)}
        yield from note_scope(changes, len(names), len(every), len(moved - names))


def list_notes(state: ClusterState, kinds: Collection[LoadKind] = ()) -> list[Finding]:
    """List the notes of a state, but for those that refuse a plan of moves.

    In: the loads that the plan balances; groups matter to reads alone.
    """
    left_out = {UNSEEN} if LoadKind.READ in kinds else {UNSEEN, _GROUPS_UNSEEN}
    notes = (note for note in state.notes if note.severity is not Severity.ERROR)
    return [note for note in notes if note.rule not in left_out]


def add_cost(
    entry: ClusterEntry, plan: Plan, state: ClusterState, *, made_by: str = "plan --moves"
) -> Plan:
    """Add to a plan of moves what it costs, and refuse it if that passes a limit of the cluster.

    It is also refused without the list of what is in flight: rows may then show old and new
    replicas together. In: `made_by`, the command that makes the plan.
    """
    unseen = [note for note in state.notes if note.rule == UNSEEN]
    if KafkaRequest.LIST_REASSIGNMENTS in state.unoffered:
        unseen = []  # what the plan needs of it is refused below, by its name
    plan = refuse_plan(plan, (replace(note, severity=Severity.ERROR) for note in unseen))
    if plan.moves is not None:
        moves = replace(plan.moves, forecast=forecast_moves(plan, state), made_by=made_by)
        if moves.policy.rate_bytes_per_s is None and KafkaRequest.ALTER_CONFIGS in state.unoffered:
            moves = replace(moves, policy=replace(moves.policy, unthrottled=True))
        plan = replace(plan, moves=moves)
    if plan.moves is not None and plan.moves.replicas:
        default = read_default(state.throttle_rates)
        found = [*refuse_default(default, plan.moves, entry.name)]
        if not found:
            found += _note_default(default)
        if plan.moves.policy.rate_bytes_per_s is not None and (
            default is None or default.is_of_moves
        ):
            unused = find_unused_lists(list_throttled(state), state.reassignments)
            found += judge_lists(unused, entry.name)
        plan = refuse_plan(plan, found)
    if entry.move_hours and any(map(steps_of, plan.topics)):
        plan = refuse_plan(plan, [_note_hours(entry)])
    plan = refuse_plan(plan, check_offered(plan, state.unoffered))
    sized = KafkaRequest.DESCRIBE_LOG_DIRS not in state.unoffered
    plan = guard_moves(plan, allowed_moves(entry), entry.where, sized=sized)
    return refuse_plan(plan, check_means(entry, plan, state))


def allowed_moves(entry: ClusterEntry, wanted: MoveKind = MoveKind.REPLICATION) -> MovePolicy:
    """Return the moves that a cluster allows. Errors: UsageError if it allows none.

    In: `wanted`, the kind that the error says how to allow.
    """
    if why := entry.why_no_rows:
        raise UsageError(f"{why}, so reconciler moves none; use the service's own tools")
    if entry.moves is None:
        # The sandbox allows none either, and has no entry there until somebody writes one.
        where = f"below clusters.{entry.name} in clusters.yaml"
        way_out = spell_moves(entry.service, [wanted], where)
        raise UsageError(f"{entry.name} allows no moves; {way_out}")
    return entry.moves


def assemble_moves(
    entry: ClusterEntry,
    specs: Iterable[TopicSpec],
    state: ClusterState,
    *,
    topics: str = "*",
    changes: Changes | None = None,
) -> Plan:
    """Choose the rows of every topic whose spec or brokers ask for other ones, and build the plan.

    Rows in flight to what a spec asks for are part of the plan. It has no forecast yet, and no
    limit is checked. Same input, same plan. Errors: UsageError if the cluster allows no moves.
    """
    policy = allowed_moves(entry)
    specs = tuple(specs)
    drain = Drain(entry.drain_brokers, entry.where("drain_brokers"))
    # A drain belongs to the request that changes drain_brokers. Rows that another request changes
    # leave the broker as well: brokers refuse a row that keeps one that is cordoned already.
    covered = changes is None or changes.alter(entry, lambda cluster: cluster.drain_brokers)
    chosen = choose_moving(entry, specs, changes)
    factor, where = entry.internal_replication_factor, entry.where(INTERNAL_FACTOR)
    if changes is None or changes.alter(entry, attrgetter(INTERNAL_FACTOR)):
        chosen += raise_internal_topics(factor, where, state)
    if covered:
        chosen += keep_drained_topics(drain, state, {spec.name for spec in chosen}, specs)
    chosen = [spec for spec in chosen if is_chosen(spec.name, topics)]
    state = assume_defaults(entry, state)
    allows = PolicyEngine(entry, entry.catalogue, specs).allows
    diffs = diff_moves(chosen, state, policy, entry.exclude_brokers, allows, drain.brokers)
    diffs = tuple(diff for diff in diffs if covered or diff.changes)
    plan = compose_moves(entry, diffs, state, drained=drain.brokers)
    settled = {topic.name for topic in plan.topics}
    drains = plan_drains(drain, plan, state, specs) if covered else ()
    return replace(
        plan,
        unchanged=sum(
            spec.name in state.user_topics and not spec.absent and spec.name not in settled
            for spec in chosen
        ),
        files=len({spec.location.file for spec in chosen}),
        scope=Scope(topics),
        moves=replace(plan.moves, drains=drains) if plan.moves else None,
    )


def choose_moving(
    entry: ClusterEntry, specs: Iterable[TopicSpec], changes: Changes | None
) -> list[TopicSpec]:
    """Choose the topics that a plan of moves covers: all, or those that a request changed.

    A request that changes what may move covers every topic: some were refused before.
    """
    if changes is None:
        return list(specs)
    every = changes.alter(entry, lambda cluster: cluster.moves and cluster.moves.allow)
    chosen = (spec for spec in specs if every or changes.touch(spec, entry))
    return [changes.recall(spec, entry.name) for spec in chosen]


def compose_moves(
    entry: ClusterEntry,
    diffs: tuple[MoveDiff, ...],
    state: ClusterState,
    *,
    drained: frozenset[int] = frozenset(),
    brokers: Collection[int] | None = None,
    most: Mapping[int, int] = MappingProxyType({}),
    goal: MoveGoal = MoveGoal.FEWEST_MOVES,
) -> Plan:
    """Choose the rows that are not given, and build the plan of what changes.

    In: the rows of every topic that may change; `brokers` are those that may take replicas, by
    default all that are able. `most` bounds the replicas of some of them. The plan has no forecast
    yet, and no limit is checked.
    Errors: UsageError if the cluster allows no moves.
    """
    engine = PolicyEngine(entry, entry.catalogue)
    able = [broker.id for broker in eligible_brokers(state.brokers, entry.exclude_brokers)]
    takers = able if brokers is None else brokers
    givers = frozenset(able).difference(takers)
    settled = _Settlement(
        state, takers, givers, most, entry.capacity, drained, goal, engine.judge, entry.service
    ).settle(diffs)
    live = {name: topic.assignment for name, topic in state.user_topics.items()}
    moving = [diff for diff in settled.diffs if not diff.stays]
    after = live | {
        diff.spec.name: settled.rows[diff.spec.name] for diff in moving if diff.spec.name in live
    }
    pairs = [
        (old, new)
        for diff in moving
        for old, new in zip(diff.rows, settled.rows[diff.spec.name], strict=True)
    ]
    lowered = {
        diff.spec.name: value
        for diff in settled.diffs
        if (value := _lower_min_insync(diff, settled.rows[diff.spec.name], state)) is not None
    }
    moved = any(map(steps_of, settled.topics))
    return Plan(
        cluster=entry.name,
        cluster_id=state.cluster_id,
        brokers=tuple(sorted(state.brokers)),
        topics=settled.topics,
        live_topics=len(live),
        notes=tuple(_note_foreign(state, settled.rows)) if moved else (),
        balance_before=measure_balance(live.values(), able),
        balance_after=measure_balance(after.values(), able),
        excluded=tuple(sorted(entry.exclude_brokers)),
        health=find_problems(state),
        moves=PlannedMoves(
            policy=allowed_moves(entry),
            replicas=sum(len(set(new) - set(old)) for old, new in pairs),
            least_replicas=settled.least,
            leader_changes=sum(old[0] != new[0] for old, new in pairs),
            min_insync=MappingProxyType(lowered),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Settled:
    """The topics of a plan, their rows after it, and the fewest replicas that it must copy."""

    diffs: tuple[MoveDiff, ...]
    topics: tuple[PlannedTopic, ...]
    rows: Mapping[str, Assignment]
    least: int


@dataclass(frozen=True, slots=True)
class _Placed:
    """The rows of every topic after the moves, and the fewest replicas that they must copy."""

    rows: Mapping[str, Assignment]
    least: int


@dataclass(frozen=True, slots=True)
class _Settlement:
    """Chooses rows that neither a rule of the team nor the service refuses.

    `brokers` are those that may take replicas, each up to its `most` if it has one. `givers` could,
    but only give. `drained` are to hold none.
    """

    state: ClusterState
    brokers: Collection[int]
    givers: frozenset[int]
    most: Mapping[int, int]
    capacity: Mapping[int, int]
    drained: frozenset[int]
    goal: MoveGoal
    judge: Judge
    service: str

    def settle(self, diffs: tuple[MoveDiff, ...]) -> _Settled:
        """Place the rows of all diffs until no rule refuses any of them."""
        state = self.state
        while True:
            placed = self._place(diffs)
            planned = [
                _plan_topic(diff, placed.rows[diff.spec.name], state, self.brokers)
                for diff in diffs
            ]
            judged = [
                _judge(diff, topic, state, self.judge, self.service)
                for diff, topic in zip(diffs, planned, strict=True)
            ]
            if not any(refusals for refusals, _ in judged):
                break
            # A refused topic takes no room from the others, so they are placed again without it.
            diffs = tuple(
                replace(diff, refusals=(*diff.refusals, *refusals))
                for diff, (refusals, _) in zip(diffs, judged, strict=True)
            )
        topics = tuple(
            replace(topic, notes=(*topic.notes, *notes)) if notes else topic
            for topic, (_, notes) in zip(planned, judged, strict=True)
        )
        return _Settled(diffs, topics, placed.rows, placed.least)

    def _place(self, diffs: Sequence[MoveDiff]) -> _Placed:
        """Choose the rows that are not given. Errors: AssertionError if the checker objects."""
        load = {name: topic.assignment for name, topic in self.state.user_topics.items()}
        wishes, given = [], 0
        for diff in diffs:
            if diff.stays:
                continue
            numbers = range(len(diff.rows))
            free = [number for number in numbers if number not in diff.given]
            fixed = tuple(diff.given[number] for number in numbers if number in diff.given)
            load[diff.spec.name] = tuple(diff.given.get(n, row) for n, row in enumerate(diff.rows))
            given += sum(len(set(row) - set(diff.rows[n])) for n, row in diff.given.items())
            if free:
                in_sync = diff.state.in_sync
                offline = self.state.find_offline(diff.state)
                wishes.append(
                    MoveWish(
                        diff.spec.name,
                        tuple(diff.rows[number] for number in free),
                        diff.replication,
                        diff.spec.rack_aware,
                        tuple(in_sync[number] for number in free) if in_sync else (),
                        fixed,
                        tuple(offline[number] for number in free) if offline else (),
                    )
                )
        problem = MoveProblem(
            tuple(sorted(self.state.brokers)),
            frozenset(self.brokers),
            *count_load(load.values()),
            tuple(wishes),
            self.capacity,
            self.drained,
            self.goal,
            self.givers,
            self.most,
        )
        moved = move_replicas(problem) if wishes else {}
        if violations := check_moves(problem, moved):
            raise AssertionError("; ".join(violations))
        rows = {}
        for diff in diffs:
            rest = iter(moved.get(diff.spec.name, ()))
            rows[diff.spec.name] = tuple(
                row if diff.stays else diff.given[number] if number in diff.given else next(rest)
                for number, row in enumerate(diff.rows)
            )
        # The checker bounds what must move; what evenness takes at least, only the solver proves.
        least = least_moves(problem)
        if self.goal is MoveGoal.BALANCE and wishes:
            least = count_moves(problem, moved)
        return _Placed(rows, given + least)


def _plan_topic(
    diff: MoveDiff, rows: Assignment, state: ClusterState, brokers: Collection[int]
) -> PlannedTopic:
    before = TopicImage(diff.state.topic_id, diff.rows, {})
    topic = PlannedTopic(
        name=diff.spec.name,
        location=diff.spec.location,
        before=before,
        after=replace(before, assignment=rows),
        refusals=diff.refusals,
        notes=diff.notes,
        refused_change=_list_refused(diff),
        owner=diff.spec.owner,
        labels=diff.spec.labels,
    )
    if diff.stays:
        return topic
    value = _lower_min_insync(diff, rows, state)
    override = managed_overrides(diff.state).get(MIN_INSYNC)
    if value is not None and override is not None:
        # Both images hold the override, so that a run knows what to restore.
        before = replace(before, config={MIN_INSYNC: override})
    return replace(
        topic,
        before=before,
        after=replace(before, assignment=rows),
        risks=tuple(_assess_risks(diff, rows, state)),
        notes=(*diff.notes, *_note_min_insync(diff, value, state)),
        balance_before=measure_balance([diff.rows], brokers),
        balance_after=measure_balance([rows], brokers),
    )


def _list_refused(diff: MoveDiff) -> tuple[RefusedField, ...]:
    if not diff.refusals:
        return ()
    fields = ((change.path, change.found, change.desired) for change in diff.changes)
    return spell_refused(diff.spec, fields)


def _assess_risks(diff: MoveDiff, rows: Assignment, state: ClusterState) -> Iterator[RiskNote]:
    """Name the risks of a topic's moves."""
    config = {**state.config_defaults, **managed_overrides(diff.state)}
    pairs = list(zip(diff.rows, rows, strict=True))
    if copied := sum(len(set(new) - set(old)) for old, new in pairs):
        what = f"{count(copied, 'replica')} {'is' if copied == 1 else 'are'} copied"
        yield RiskNote(Risk.TRAFFIC, what).with_consent(diff.spec)
    if copied and config.get(UNCLEAN) == "true":
        what = (
            f"{UNCLEAN} is true: if the replicas in sync fail, a copy that is not complete may "
            "become leader, and what it lacks is lost"
        )
        note = RiskNote(Risk.DATA_LOSS, what, field=f"config.{UNCLEAN}")
        yield note.with_consent(diff.spec)
    if falls := [(len(old), len(new)) for old, new in pairs if len(new) < len(old)]:
        most, least = max(falls)
        what = f"a partition has {count(least, 'replica')}, where it had {most}"
        note = RiskNote(Risk.DURABILITY, what, field="replication_factor")
        yield note.with_consent(diff.spec, most, least)


def _lower_min_insync(diff: MoveDiff, rows: Assignment, state: ClusterState) -> int | None:
    """Return the min.insync.replicas of a topic while it moves; None if it stays as it is.

    Brokers require at most as many replicas as there are (KAFKA-21110). Replicas that are being
    copied count before they are in sync, so acks=all writes that work now would fail.
    """
    required = _required_in_sync(diff, state)
    if diff.stays or required is None:
        return None
    short = []
    for number, (old, new) in enumerate(zip(diff.rows, rows, strict=True)):
        in_sync = len(diff.state.in_sync[number] if diff.state.in_sync else old)
        if min(required, len(old)) <= in_sync < min(required, len({*old, *new})):
            short.append(in_sync)
    return min(short, default=None)


def _required_in_sync(diff: MoveDiff, state: ClusterState) -> int | None:
    """Return the min.insync.replicas in force; None if it is not known."""
    return read_min_insync(managed_overrides(diff.state), state.config_defaults)


def _note_min_insync(diff: MoveDiff, value: int | None, state: ClusterState) -> Iterator[Finding]:
    if value is not None:
        yield Finding(
            "moves-min-insync",
            f"{MIN_INSYNC} is {value} while replicas are copied, and "
            f"{_required_in_sync(diff, state)} again afterwards",
            "otherwise every acks=all write would fail until the first copy is in sync",
            diff.spec.where("replication_factor"),
            Severity.NOTE,
        )


def _judge(
    diff: MoveDiff, topic: PlannedTopic, state: ClusterState, judge: Judge, service: str
) -> tuple[list[Finding], list[Finding]]:
    """Evaluate the rules of team and service for the moves of a topic. Returns: refusals, notes."""
    if topic.after is None or not (steps := steps_of(topic)):
        return [], []
    config = {**state.config_defaults, **managed_overrides(diff.state)}
    before, after = (
        TopicFacts(len(rows), max(map(len, rows), default=0), config)
        for rows in (diff.rows, topic.after.assignment)
    )
    facts = ChangeFacts(
        actions=tuple(step.verb for step in steps if step.verb in (Verb.REORDER, Verb.MOVE)),
        before=before,
        after=after,
        risks=tuple(sorted({str(note.risk) for note in topic.risks})),
    )
    refusals = [*_refuse_dead(diff, topic.after.assignment, state, service)]
    notes: list[Finding] = []
    for finding in judge.judge_change(diff.spec, facts):
        (refusals if finding.severity is Severity.ERROR else notes).append(finding)
    return refusals, notes


def _refuse_dead(
    diff: MoveDiff, rows: Assignment, state: ClusterState, service: str
) -> Iterator[Finding]:
    """Refuse new rows with replicas on dead brokers, also such that stay, where a service does."""
    if not SERVICES[service].alive_only:
        return
    alive = {broker.id for broker in state.brokers if broker.alive}
    dead = [
        (number, broker)
        for number, (old, new) in enumerate(zip(diff.rows, rows, strict=True))
        for broker in new
        if old != new and broker not in alive
    ]
    if dead:
        partitions = name_partitions({number for number, _ in dead}, "keeps", "keep")
        brokers = name_each("broker", sorted({broker for _, broker in dead}))
        what = f"{partitions} replicas on {brokers}, not alive: {SERVICES[service].title} refuses "
        what += "a reassignment unless all of its replicas are on living brokers"
        way_out = "start the broker, or drain it with drain_brokers, then plan again"
        yield Finding("service-alive", what, way_out, diff.spec.location)


def _note_hours(entry: ClusterEntry) -> Finding:
    """Say when the moves of a plan may begin."""
    windows = "; ".join(map(str, entry.move_hours))
    what = f"copies begin only in the windows of {entry.name}: {windows}"
    where = entry.where("moves.windows")
    return Finding("moves-window", what, where=where, severity=Severity.NOTE)


def _note_default(default: DefaultRate | None) -> Iterator[Finding]:
    """Say under which rate of somebody else the moves run."""
    if default is not None and not default.is_of_moves:
        amount = name_rate(default.bytes_per_s)
        what = f"the cluster has a default throttle rate of {amount}, which reconciler did not set"
        way_out = "the moves run under it, and leave it as it is"
        yield Finding("moves-rate-taken", what, way_out, severity=Severity.NOTE)


def _note_foreign(state: ClusterState, planned: Collection[str]) -> Iterator[Finding]:
    """Name the topics outside the plan that are being reassigned: a run waits for them."""
    others = sorted({each.topic for each in state.reassignments} - set(planned))
    if others:
        more = f" and {len(others) - NAMED:,} more" if len(others) > NAMED else ""
        what = f"other topics are being reassigned: {', '.join(others[:NAMED])}{more}"
        way_out = "a run of this plan waits until that has ended: reconciler moves status shows it"
        yield Finding("moves-foreign", what, way_out, severity=Severity.NOTE)
