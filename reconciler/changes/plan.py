"""A cluster's plan, from the specs of an estate and a state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from reconciler.changes.build import Placing, assemble_plan
from reconciler.changes.due import note_due
from reconciler.changes.guards import guard_changes, list_refused_fields, refuse_changes
from reconciler.changes.rules import judge_changes
from reconciler.changes.topics import TopicDiff, diff_topics, list_left_alone
from reconciler.diff.guards import check_means
from reconciler.diff.notes import (
    assume_defaults,
    concerns,
    mute_notes,
    name_some,
    note_failed_directories,
    note_internal_topics,
    note_left,
    note_pending_drains,
    note_pending_internal,
    note_scope,
    note_traffic,
    note_unregistered,
)
from reconciler.diff.refusals import note_left_alone, refuse_only_at_create
from reconciler.errors import Finding, Severity, UsageError
from reconciler.model.cluster import Assignment, ClusterState, TopicSpec
from reconciler.model.moves import LoadKind
from reconciler.model.plan import DriftedTopic, Plan, Scope, is_chosen
from reconciler.model.rates import find_least_s
from reconciler.model.steps import Verb, is_deletion, steps_of
from reconciler.placement.weigh import ReplicaWeights
from reconciler.spec.changes import Changes
from reconciler.spec.entry import ClusterEntry
from reconciler.spec.rules import PolicyEngine
from reconciler.units import approximate_duration

Assemble = Callable[[Mapping[str, Assignment] | None], Plan]

SETTINGS = ("balance", "capacity", "exclude_brokers", "guards", "placement", "strategy")
"""The settings of a cluster that the plans of all topics depend on."""
UNSEEN = "sizes-unseen"
NO_OWNER = "nobody"
LEAST_PAUSE_S = 10.0
"""The pauses of an apply that a plan mentions."""


def assemble_once(assemble: Assemble) -> Plan:
    """Make a plan with rows of its own: none is proposed."""
    return assemble(None)


def plan_cluster(
    entry: ClusterEntry,
    specs: Iterable[TopicSpec],
    state: ClusterState,
    *,
    topics: str = "*",
    changes: Changes | None = None,
    only: Collection[str] | None = None,
    by: LoadKind | None = None,
    remarks: Iterable[Finding] = (),
    settle: Callable[[Assemble], Plan] = assemble_once,
) -> Plan:
    """Plan what would change on a cluster in a given state. Same input, same plan.

    In: every spec of the cluster; `topics`, `changes` and the names of `only` choose those to plan.
    The plan lists the others that match `topics` and differ from the cluster as existing drift.
    `by` is what the cluster is balanced by; None is what `weighed_by` of the entry says, or counts
    if no size is known.
    `remarks` are findings about the estate; the plan keeps those about its topics. `settle`
    chooses the plan from what it gets: a function that makes it, with proposed rows or its own.
    Errors: UsageError if the state has no sizes or rates to weigh by.
    """
    ignored: tuple[Finding, ...] = ()
    if by not in (None, LoadKind.COUNT) and entry.why_no_rows:
        what = f"--by {by} has no effect, since {entry.why_no_rows}"
        ignored = (Finding("placement-keys", what, "leave it out", severity=Severity.NOTE),)
        by = LoadKind.COUNT
    weights = ReplicaWeights(state, by or entry.weighed_by)
    is_counted = by is None and weights.is_blank
    if is_counted:
        weights = ReplicaWeights(state)
    elif weights.is_blank:
        raise UsageError("\n".join([weights.asks, *_list_unseen(state)]))
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
    diffs = note_due(_diff(entry, chosen, state, specs), state, entry.policy)
    agreed = tuple(_list_agreed(diffs)) if changes and not changes.everything else ()
    # The guard takes its share of all managed topics: a plan with --topic gets no smaller limit.
    live = sum(map(entry.manages, state.user_topics))

    def assemble(proposed: Mapping[str, Assignment] | None) -> Plan:
        plan = assemble_plan(
            entry.name,
            diffs,
            state,
            excluded=entry.exclude_brokers,
            placing=Placing(entry.strategy, entry.capacity, weights.by),
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
            *ignored,
            *entry.notes,
            *(
                note
                for note in state.notes
                if note.severity is not Severity.ERROR and concerns(note, plan)
            ),
            *_warn_of_strange_cluster(entry, plan),
            *(_note_counted(entry, plan, state) if is_counted else ()),
            *note_rates(entry, plan),
            *note_traffic(state, [weights.by]),
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
            notes=mute_notes(entry, notes),
            existing_drift=existing_drift,
            agreed=agreed,
            alerts=tuple(note_owners(changes, entry, specs)) if changes else (),
            stages=entry.stages,
        )
        where = entry.where("guards.max_changed")
        found = [
            *check_means(entry, plan, state),
            *guard_changes(plan, diffs, entry.guards, live, where),
        ]
        return refuse_changes(plan, found, diffs)

    return settle(assemble)


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
    diffs = diff_topics(
        specs,
        state,
        entry.catalogue,
        excluded,
        guards,
        engine.allows,
        entry.moves,
        entry.placement,
        entry.service,
    )
    return judge_changes([_refuse_by_service(each, entry) for each in diffs], state, engine.judge)


def _refuse_by_service(diff: TopicDiff, entry: ClusterEntry) -> TopicDiff:
    """Refuse what the service of a cluster does not let an existing topic change."""
    if diff.state is None:
        return diff
    refused = refuse_only_at_create(diff.spec, diff.changes, entry.service)
    return replace(diff, refusals=(*diff.refusals, *refused))


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


def _list_agreed(diffs: Iterable[TopicDiff]) -> Iterator[str]:
    """Yield the topics that are as specified entirely."""
    for diff in diffs:
        if not (diff.changes or diff.refusals or diff.pending):
            yield diff.spec.name


def note_accepted(chosen: int, outside: Collection[DriftedTopic]) -> Iterator[Finding]:
    """Return a note on a plan of named topics: how many others differ and are left as they are."""
    what = (
        f"only the named topics are planned: {chosen:,}; "
        f"{len(outside):,} others that differ from their specs are left as they are"
    )
    yield Finding("plan-scope", what, severity=Severity.NOTE)


def note_agreed(agreed: Sequence[str]) -> Iterator[Finding]:
    """Return a note on topics whose specs changed, and that already match them."""
    if agreed:
        what = f"as specified already: {name_some(agreed)}"
        yield Finding("topics-agreed", what, severity=Severity.NOTE)


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
        said = name_some([spec.name for spec in moved])
        what = f"the request changes the owner from {before} to {after}: {said}"
        way_out = "ask the earlier owner to review it"
        where = moved[0].where("owner")
        yield Finding("owner-changed", what, way_out, where, Severity.WARNING)


def note_settings(changes: Changes, entry: ClusterEntry) -> Iterator[Finding]:
    """Return a note if settings changed that the plans of other requests depend on."""
    if changes.everything or entry.name not in changes.then:
        return
    altered = [key for key in SETTINGS if changes.alter(entry, attrgetter(key))]
    if altered:
        what = (
            f"clusters.yaml changes {' and '.join(altered)} of {entry.name} since {changes.since}: "
            "other open requests are planned with the earlier values"
        )
        yield Finding("settings-changed", what, where=entry.location, severity=Severity.NOTE)


def note_rates(entry: ClusterEntry, plan: Plan) -> Iterator[Finding]:
    """Return a note if an apply pauses for long to keep to the rates of the cluster."""
    sizes: dict[Verb, list[int]] = defaultdict(list)
    for topic in plan.topics:
        for step in steps_of(topic):
            gone = topic.before if step.verb is Verb.DELETE else None
            sizes[step.verb].append(len(gone.assignment) if gone else len(step.placed))
    # As apply sends them: a deletion is not validated first.
    made = [sizes[verb] for verb in Verb]
    asked = [sizes[verb] for verb in Verb if verb is not Verb.DELETE]
    least_s = find_least_s(entry.rates, [*asked, *made])
    if least_s >= LEAST_PAUSE_S:
        rates = entry.rates
        kept = rates.partitions.describe("partitions") if rates.partitions else ""
        if rates.requests is not None:
            kept += (" and " if kept else "") + rates.requests.describe("requests")
        what = f"apply keeps to at most {kept} on {entry.name}: it takes about "
        what += f"{approximate_duration(least_s)} at least"
        if rates.partitions is not None:
            what += (
                ", because partitions count both when apply validates them and when it creates them"
            )
        yield Finding("rates-pause", what, "", entry.where("rates"), Severity.NOTE)


def _list_unseen(state: ClusterState) -> list[str]:
    """Say why sizes could not be read."""
    return [f"{note.what}; {note.way_out}" for note in state.notes if note.rule == UNSEEN]


def _note_counted(entry: ClusterEntry, plan: Plan, state: ClusterState) -> Iterator[Finding]:
    """Say that new replicas are counted, because the sizes that the cluster asks for are unknown.

    On a cluster without topics, there is nothing to know.
    """
    if state.user_topics and any(step.placed for topic in plan.topics for step in steps_of(topic)):
        what = (
            "no size is known of any partition, so new replicas are balanced by count, and not by "
            f"{entry.weighed_by} as balance of {entry.name} says"
        )
        way_out = "; ".join(_list_unseen(state)) or "plan on a snapshot that has size_bytes"
        yield Finding(UNSEEN, what, way_out, entry.where("balance.by"), Severity.NOTE)


def _warn_of_strange_cluster(entry: ClusterEntry, plan: Plan) -> Iterator[Finding]:
    """Warn if topics are deleted and only an address identifies the cluster."""
    if entry.cluster_id is None and any(map(is_deletion, plan.topics)):
        what = (
            f"topics are to be deleted, but no cluster_id identifies this cluster as {entry.name}"
        )
        # A snapshot that was written by hand may name none.
        way_out = f"write cluster_id: {plan.cluster_id or 'ID'} in clusters.yaml, if it is"
        yield Finding("cluster-id", what, way_out, entry.location, Severity.WARNING)
