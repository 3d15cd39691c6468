"""A cluster's plan, from the specs of an estate and a state."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from reconciler.diff import (
    PLAN_MOVES,
    allow_moves,
    diff_topics,
    list_left_alone,
    note_left_alone,
    raise_internal_topics,
)
from reconciler.errors import Finding, Severity, UsageError
from reconciler.model import (
    DriftedTopic,
    MoveKind,
    Scope,
    brokers_of,
    is_chosen,
    is_deletion,
    steps_of,
)
from reconciler.placement import ReplicaWeights
from reconciler.plan.build import Placing, assemble_plan
from reconciler.plan.drains import note_pending_drains
from reconciler.plan.guards import guard_plan, list_refused_fields, require_means
from reconciler.plan.policy import judge_changes
from reconciler.spec import PolicyEngine, choose_catalogue
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from reconciler.diff import TopicDiff
    from reconciler.model import Assignment, ClusterState, Plan, TopicSpec
    from reconciler.placement import Weigh
    from reconciler.plan.approval import Approval
    from reconciler.spec import Changes, ClusterEntry

LEFT_SHOWN = 10
SETTINGS = ("capacity", "exclude_brokers", "guards", "strategy")
"""The settings of a cluster on which the plans of all topics are based."""
INTERNAL_FACTOR = "internal_replication_factor"
"""The key of a cluster for the replicas of topics internal to Kafka."""
UNSEEN = "sizes-unseen"
NO_OWNER = "nobody"


def plan_cluster(
    entry: ClusterEntry,
    specs: Iterable[TopicSpec],
    state: ClusterState,
    *,
    topics: str = "*",
    changes: Changes | None = None,
    only: Collection[str] | None = None,
    weigh: Weigh = "count",
    remarks: Iterable[Finding] = (),
    approved: Approval | None = None,
) -> Plan:
    """Plan what would change on a cluster in a given state. Same input, same plan.

    In: every spec of the cluster; `topics`, `changes` and the names of `only` choose those to plan.
    The plan lists the others that match `topics` and differ from the cluster as existing drift.
    `remarks` are findings about the estate; the plan keeps those about its topics. The rows of
    `approved` are used if this gives the approved plan, and if they are as good as new ones.
    Errors: UsageError if the state has no sizes or rates to weigh by.
    """
    weights = ReplicaWeights(state, weigh)
    if weights.is_blank:
        unseen = [f"{note.what}; {note.way_out}" for note in state.notes if note.rule == UNSEEN]
        raise UsageError("\n".join([weights.asks, *unseen]))
    specs = tuple(specs)
    every = [spec for spec in specs if is_chosen(spec.name, topics)]
    chosen = [
        spec
        for spec in every
        if (changes is None or changes.touch(spec, entry)) and (only is None or spec.name in only)
    ]
    names = {spec.name for spec in chosen}
    outside = [spec for spec in every if spec.name not in names]
    if changes is not None:
        chosen = [changes.recall(spec, entry.name) for spec in chosen]
    existing_drift = list_drift(entry, outside, state)
    if chosen:
        state = assume_defaults(entry, state)
    others = [n for n in state.topics if not (is_chosen(n, topics) and entry.manages(n))]
    files = {spec.location.file for spec in chosen}
    diffs = _diff(entry, chosen, state, specs)
    agreed = tuple(_list_agreed(diffs)) if changes and not changes.everything else ()
    # The guard takes its share of all managed topics: a plan with --topic gets no smaller limit.
    live = sum(map(entry.manages, state.user_topics))

    def assemble(proposed: Mapping[str, Assignment] | None) -> Plan:
        plan = assemble_plan(
            entry.name,
            diffs,
            state,
            excluded=entry.exclude_brokers,
            placing=Placing(entry.strategy, entry.capacity, weigh),
            ignored=[*others, *(spec.name for spec in every)],
            files=len(files),
            proposed=proposed,
        )
        notes = [
            *(note_scope(changes, len(chosen), len(every)) if changes else ()),
            *(note_accepted(len(chosen), existing_drift) if only is not None else ()),
            *(note_left(changes, specs, plan) if changes else ()),
            *note_agreed(agreed),
            *(note_settings(changes, entry) if changes else ()),
            *(note for note in remarks if concerns(note, plan)),
            *entry.notes,
            *(
                note
                for note in state.notes
                if note.severity is not Severity.ERROR and concerns(note, plan)
            ),
            *_warn_of_strange_cluster(entry, plan),
            *note_unregistered(entry, state),
            *note_internal_topics(entry, state),
            *note_failed_directories(entry, state),
            *note_pending_drains(entry, state),
            *note_pending_internal(entry, state),
            *note_left_alone(list_left_alone(diffs, state), entry.catalogue),
            *plan.notes,
        ]
        scope = Scope(topics, changes.ref if changes else None)
        plan = replace(
            plan,
            scope=scope,
            notes=tuple(notes),
            existing_drift=existing_drift,
            agreed=agreed,
            alerts=tuple(note_owners(changes, entry, specs)) if changes else (),
            stages=entry.stages,
        )
        plan = require_means(entry, plan, state, diffs)
        return guard_plan(plan, diffs, entry.guards, live, entry.where("guards.max_changed"))

    if approved is None:
        return assemble(None)
    from reconciler.plan.approval import keep_approved

    return keep_approved(approved, assemble)


def _diff(
    entry: ClusterEntry,
    specs: Iterable[TopicSpec],
    state: ClusterState,
    every: Iterable[TopicSpec],
) -> tuple[TopicDiff, ...]:
    """Compare specs with a state, and evaluate the team's own rules for every change.

    `every`: all specs of the cluster.
    """
    engine = PolicyEngine(entry, entry.catalogue, every)
    excluded, guards = entry.exclude_brokers, entry.guards
    diffs = diff_topics(specs, state, entry.catalogue, excluded, guards, engine.allows, entry.moves)
    return judge_changes(diffs, state, engine.judge)


def list_drift(
    entry: ClusterEntry, specs: Iterable[TopicSpec], state: ClusterState
) -> tuple[DriftedTopic, ...]:
    """List the topics of specs outside the scope of a plan that differ from the cluster.

    Moves that are pending are left out, as they are in a plan of changes.
    """
    state = assume_defaults(entry, state)
    diffs = diff_topics(specs, state, entry.catalogue, entry.exclude_brokers, moves=entry.moves)
    return tuple(
        DriftedTopic(
            diff.spec.name,
            diff.spec.location,
            "create" if diff.state is None else "delete" if diff.spec.absent else "update",
            tuple(list_refused_fields(diff)),
            diff.spec.owner,
        )
        for diff in diffs
        if diff.changes
    )


def assume_defaults(entry: ClusterEntry, state: ClusterState) -> ClusterState:
    """Give a state without defaults those of its Kafka version, with a note.

    A cluster reports its defaults with the configs of any topic, so only a snapshot that was
    written by hand has none.
    """
    if state.config_defaults or not state.topics:
        return state
    release = choose_catalogue(state.kafka_version or entry.kafka_version)
    defaults = {n: key.default for n, key in release.keys.items() if key.default is not None}
    what = f"the snapshot has no config_defaults, so those of Kafka {release.version} are assumed"
    note = Finding("snapshot-assumed", what, severity=Severity.NOTE)
    return replace(state, config_defaults=defaults, notes=(*state.notes, note))


def concerns(note: Finding, plan: Plan) -> bool:
    """Return whether a note is about something in a plan.

    Other notes are not lost: `validate` shows those of an estate, `snapshot` those of a cluster.
    """
    if note.severity is not Severity.NOTE:
        return True
    match note.rule:
        case "document-kind" | "topic-not-managed":
            return False  # a document that no plan has a topic of
        case "kafka-version-newer" | "kafka-version-older":
            return False  # `entry.notes` repeats these for the cluster
        case "cluster-rights":  # hidden topics matter only to placement: their load is unknown
            return any(brokers_of(step) for topic in plan.topics for step in steps_of(topic))
        case "sizes-unseen":  # a snapshot has it, whatever it is used for
            return plan.weighed is not None or plan.moves is not None
        case _:
            return True


def _list_agreed(diffs: Iterable[TopicDiff]) -> Iterator[str]:
    """Yield the topics that are as specified entirely."""
    for diff in diffs:
        if not (diff.changes or diff.refusals or diff.pending):
            yield diff.spec.name


def note_scope(changes: Changes, chosen: int, topics: int) -> Iterator[Finding]:
    """Return a note on topics outside the plan.

    In: the numbers of topics in the plan, and of those that it may cover.
    """
    if changes.everything:
        what = f"{changes.everything}, so every topic is planned"
    else:
        since = changes.since
        what = f"only specs that changed since {since} are planned: {chosen:,} of {topics:,} topics"
    yield Finding("plan-scope", what, severity=Severity.NOTE)


def note_accepted(chosen: int, outside: Collection[DriftedTopic]) -> Iterator[Finding]:
    """Return a note on a plan of named topics: how many others differ and are left as they are."""
    what = (
        f"only the named topics are planned: {chosen:,}; "
        f"{len(outside):,} others that differ from their specs are left as they are"
    )
    yield Finding("plan-scope", what, severity=Severity.NOTE)


def note_left(changes: Changes, specs: Iterable[TopicSpec], plan: Plan) -> Iterator[Finding]:
    """Return a note on live topics that left the estate. In: all specs of the cluster."""
    left = sorted(changes.list_left(plan.cluster, specs).intersection(plan.unmanaged))
    if left:
        what = f"unmanaged since {changes.since}: {_name_some(left)}; nothing is done to them"
        way_out = (
            "where one is to be deleted, write it with state: absent, and allow that by "
            "guards.max_deletes"
        )
        yield Finding("topics-left", what, way_out, severity=Severity.NOTE)


def note_agreed(agreed: Sequence[str]) -> Iterator[Finding]:
    """Return a note on topics whose specs changed, and that are as specified already."""
    if agreed:
        what = f"as specified already: {_name_some(agreed)}"
        yield Finding("topics-agreed", what, severity=Severity.NOTE)


def _name_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - LEFT_SHOWN:,} more" if len(names) > LEFT_SHOWN else ""
    return ", ".join(names[:LEFT_SHOWN]) + more


def note_owners(
    changes: Changes, entry: ClusterEntry, specs: Iterable[TopicSpec]
) -> Iterator[Finding]:
    """Return a warning for each pair of owners between which topics change hands.

    No plan acts on an owner, but quotas, rules and reviews do.
    """
    by_owners: defaultdict[tuple[str, str], list[TopicSpec]] = defaultdict(list)
    for spec, before in changes.list_owner_changes(entry.name, specs):
        by_owners[before or NO_OWNER, spec.owner or NO_OWNER].append(spec)
    for (before, after), moved in sorted(by_owners.items()):
        said = _name_some([spec.name for spec in moved])
        what = f"the request changes the owner from {before} to {after}: {said}"
        way_out = "ask the earlier owner to review it"
        where = moved[0].where("owner")
        yield Finding("owner-changed", what, way_out, where, Severity.WARNING)


def note_settings(changes: Changes, entry: ClusterEntry) -> Iterator[Finding]:
    """Return a note if settings changed on which the plans of other requests are based."""
    if changes.everything or entry.name not in changes.then:
        return
    altered = [key for key in SETTINGS if changes.alter(entry, attrgetter(key))]
    if altered:
        what = (
            f"clusters.yaml changes {' and '.join(altered)} of {entry.name} since {changes.since}: "
            "other open requests are planned with the earlier values"
        )
        yield Finding("settings-changed", what, where=entry.location, severity=Severity.NOTE)


def note_unregistered(entry: ClusterEntry, state: ClusterState) -> Iterator[Finding]:
    """Note the ids in clusters.yaml that no broker has. What they ask for is done already."""
    known = {broker.id for broker in state.brokers}
    excluded = entry.exclude_brokers - entry.drain_brokers
    keys: dict[str, Collection[int]] = {
        "capacity": entry.capacity.keys(),
        "drain_brokers": entry.drain_brokers,
        "exclude_brokers": excluded,
    }
    for key, ids in keys.items():
        gone = sorted(set(ids) - known)
        if not gone:
            continue
        listed = ", ".join(map(str, gone))
        brokers = f"no broker {listed} is" if len(gone) == 1 else f"no brokers {listed} are"
        line = "the line" if len(gone) == len(ids) else f"{listed} from {key}"
        what = f"{brokers} registered: gone already, or a typo"
        way_out = f"remove {line}"
        if not state.lists_fenced:
            have = "has" if len(gone) == 1 else "have"
            what = f"{brokers} alive or {have} replicas: stopped, gone already, or a typo"
            way_out += ", unless such a broker is to come back"
        yield Finding("broker-not-registered", what, way_out, entry.where(key), Severity.NOTE)


def note_failed_directories(entry: ClusterEntry, state: ClusterState) -> Iterator[Finding]:
    """Warn of log directories that are offline, where they were read, and of the replicas there."""
    failed = state.failed_directories
    offline: Counter[int] = Counter()
    for topic in state.topics.values():
        offline.update(chain.from_iterable(state.find_offline(topic)))
    for broker, paths in sorted(failed.items()):
        many = len(paths) > 1
        directories = "log directories" if many else "log directory"
        what = (
            f"{directories} {', '.join(paths)} of broker {broker} {'are' if many else 'is'} offline"
        )
        if offline[broker]:
            are = "is" if offline[broker] == 1 else "are"
            what += f", and {count(offline[broker], 'replica')} there {are} not in sync"
        yield Finding(
            "directory-offline",
            what,
            "replace the disk and restart the broker; or move these replicas to other brokers: "
            "reconciler rebalance --offline-replicas",
            entry.location,
            Severity.WARNING,
        )


def note_internal_topics(entry: ClusterEntry, state: ClusterState) -> Iterator[Finding]:
    """Note internal topics with fewer replicas than most other topics, unless a key raises them."""
    least = {
        name: min(map(len, topic.assignment))
        for name, topic in sorted(state.topics.items())
        if topic.assignment
    }
    others = sorted(least[name] for name in least.keys() & state.user_topics.keys())
    if entry.internal_replication_factor is not None or not others:
        return
    usual = others[(len(others) - 1) // 2]
    thin = {n: least[n] for n in least if state.topics[n].internal and least[n] < usual}
    if not thin:
        return
    listed = ", ".join(f"{name} has {factor}" for name, factor in thin.items())
    way_out = f"write {INTERNAL_FACTOR}: {usual} below this cluster in clusters.yaml"
    if entry.moves is None or MoveKind.REPLICATION not in entry.moves.allow:
        way_out += f", {allow_moves([MoveKind.REPLICATION], entry.moves)}"
    yield Finding(
        "internal-replication",
        f"internal topics have fewer replicas than most topics, which have {usual}: {listed}",
        f"{way_out}, and plan it with {PLAN_MOVES}",
        entry.location,
        Severity.NOTE,
    )


def note_pending_internal(entry: ClusterEntry, state: ClusterState) -> Iterator[Finding]:
    """Say in a plan that does not raise them which internal topics a plan of moves is to raise."""
    factor, where = entry.internal_replication_factor, entry.where(INTERNAL_FACTOR)
    if names := [spec.name for spec in raise_internal_topics(factor, where, state)]:
        what = f"{INTERNAL_FACTOR} {factor} is pending for {', '.join(names)}"
        yield Finding("moves-pending", what, f"plan it with {PLAN_MOVES}", where, Severity.NOTE)


def _warn_of_strange_cluster(entry: ClusterEntry, plan: Plan) -> Iterator[Finding]:
    """Warn if topics are deleted and only an address identifies the cluster."""
    if entry.cluster_id is None and any(map(is_deletion, plan.topics)):
        what = (
            f"topics are to be deleted, but no cluster_id identifies this cluster as {entry.name}"
        )
        way_out = f"write cluster_id: {plan.cluster_id} in clusters.yaml, if it is"
        yield Finding("cluster-id", what, way_out, entry.location, Severity.WARNING)
