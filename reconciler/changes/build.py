"""Changes and assignments become a Plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from reconciler.changes.guards import list_refused_fields
from reconciler.changes.risks import assess_risks, note_unused, refuse_unaccepted
from reconciler.changes.topics import TopicDiff
from reconciler.diff.brokers import eligible_brokers
from reconciler.diff.fields import managed_overrides
from reconciler.diff.notes import note_unused_rows
from reconciler.errors import Finding
from reconciler.model.cluster import (
    Assignment,
    Broker,
    ClusterState,
    is_left_to_brokers,
    list_known,
)
from reconciler.model.health import find_problems
from reconciler.model.moves import LoadKind
from reconciler.model.plan import Plan, PlannedTopic, RiskNote, TopicImage, Weighed
from reconciler.placement.given_rows import prefer_rows
from reconciler.placement.measure import measure_balance
from reconciler.placement.problem import Placed, Problem, Wish
from reconciler.placement.strategies import place_replicas
from reconciler.placement.weigh import ReplicaWeights


@dataclass(frozen=True, slots=True)
class Placing:
    """How replicas are placed on a cluster.

    `capacity` is the relative capacity by broker id, 1 if not given; `by` is what the
    cluster is balanced by.
    """

    strategy: str = "optimal"
    capacity: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    by: LoadKind = LoadKind.COUNT


def assemble_plan(
    cluster: str,
    diffs: Sequence[TopicDiff],
    state: ClusterState,
    *,
    excluded: Collection[int] = (),
    placing: Placing | None = None,
    ignored: Collection[str] = (),
    files: int = 0,
    notes: Iterable[Finding] = (),
    proposed: Mapping[str, Assignment] | None = None,
) -> Plan:
    """Place new replicas for the diffs and build the plan.

    `ignored` names live topics that are neither planned nor reported. `proposed` holds new rows by
    topic: they are used if they are as good as those of the strategy, or else a note says why not.
    """
    risks, judged = {}, []
    for diff in diffs:
        overrides = managed_overrides(diff.state) if diff.state and diff.changes else {}
        notes_of_risks = assess_risks(diff, overrides, state.config_defaults)
        risks[diff.spec.name] = notes_of_risks
        # Most topics get no finding here, and a copy of each would cost more than the checks.
        if unaccepted := tuple(refuse_unaccepted(diff, notes_of_risks, state.config_defaults)):
            judged.append(replace(diff, refusals=(*diff.refusals, *unaccepted)))
        elif unused := tuple(note_unused(diff, notes_of_risks, excluded)):
            judged.append(replace(diff, notes=(*diff.notes, *unused)))
        else:
            judged.append(diff)
    brokers = eligible_brokers(state.brokers, excluded)
    ids = [broker.id for broker in brokers]
    placing = placing or Placing()
    weights = ReplicaWeights(state, placing.by)
    problem = _problem(judged, state, brokers, placing.capacity, weights)
    placed = place_replicas(problem, placing.strategy) if problem.wishes else Placed({})
    given = {diff.spec.name: diff.given for diff in judged if diff.given is not None}
    if proposed is not None:
        # Rows that a spec gives, or the brokers, are never proposed.
        open_ = {name: rows for name, rows in proposed.items() if name not in given}
        placed, objections = prefer_rows(problem, placed, open_, weights.measured)
        if objections:
            notes = (*notes, *note_unused_rows(objections))
    rows = {**placed.rows, **given}
    planned = [
        _plan_topic(diff, rows.get(diff.spec.name, ()), risks[diff.spec.name], ids)
        for diff in judged
        if diff.changes or diff.refusals or diff.notes
    ]
    live = {name: topic.assignment for name, topic in state.user_topics.items()}
    changed = {topic.name: topic.after for topic in planned}  # None for a deleted topic
    after = {name: rows for name, rows in live.items() if name not in changed}
    after |= {name: image.assignment for name, image in changed.items() if image}
    # Where the brokers place replicas, nothing is known of the balance after the plan.
    known = not any(is_left_to_brokers(rows) for rows in after.values())
    weighed = None
    if placing.by is not LoadKind.COUNT and known:
        was, is_ = (weights.measure(of.items(), ids) for of in (live, after))
        weighed = Weighed(placing.by, was, is_, weights.unknown)
    wanted = {diff.spec.name for diff in diffs} | set(ignored)
    return Plan(
        cluster=cluster,
        cluster_id=state.cluster_id,
        brokers=tuple(sorted(state.brokers)),
        topics=tuple(planned),
        unchanged=sum(not (diff.changes or diff.refusals) for diff in judged),
        files=files,
        live_topics=len(live),
        unmanaged=tuple(sorted(set(live) - wanted)),
        notes=tuple(notes),
        balance_before=measure_balance(live.values(), ids),
        balance_after=measure_balance(after.values(), ids) if known else None,
        levels=placed.levels,
        weighed=weighed,
        excluded=tuple(sorted(excluded)),
        health=find_problems(state),
    )


def _problem(
    diffs: Iterable[TopicDiff],
    state: ClusterState,
    brokers: tuple[Broker, ...],
    capacity: Mapping[int, int],
    weights: ReplicaWeights,
) -> Problem:
    """Return the placement problem; rows that are given count as load.

    Refused topics are left out, so that they take no room from the others.
    """
    wishes, given = [], []
    for diff in diffs:
        if diff.refusals or not diff.new_partitions:
            continue
        if diff.given is not None:
            given.append((diff.spec.name, list_known(diff.given)))
            continue
        existing = diff.state.assignment if diff.state else ()
        count, replication = diff.new_partitions, diff.replication_factor
        lead, hold = weights.weigh_topic(diff.spec.name)
        wishes.append(
            Wish(diff.spec.name, existing, count, replication, diff.spec.rack_aware, hold, lead)
        )
    wished = {wish.topic for wish in wishes}
    live = {name: topic.assignment for name, topic in state.user_topics.items()}
    eligible = {broker.id for broker in brokers}
    return Problem(
        brokers,
        *weights.weigh_load([*live.items(), *given]),
        tuple(wishes),
        capacity,
        others=(
            *(rows for name, rows in live.items() if name not in wished),
            *(rows for _, rows in given),
        ),
        also_alive=tuple(b for b in state.brokers if b.alive and b.id not in eligible),
    )


def _plan_topic(
    diff: TopicDiff, rows: Assignment, risks: tuple[RiskNote, ...], brokers: Collection[int]
) -> PlannedTopic:
    before = None
    if (state := diff.state) is not None:
        before = TopicImage(state.topic_id, state.assignment, managed_overrides(state))
    if diff.deletion is not None:
        return _plan_deletion(diff, before, risks)
    existing = before.assignment if before else ()
    wished = TopicImage(before.topic_id if before else None, existing + rows, diff.config)
    # A refused topic stays as it is, also in the balance of the cluster after the plan.
    after = before if diff.refusals else wished
    placed = bool(rows) and not is_left_to_brokers(rows) and not diff.refusals
    return PlannedTopic(
        name=diff.spec.name,
        location=diff.spec.location,
        before=before,
        after=after,
        risks=risks,
        refusals=diff.refusals,
        notes=diff.notes,
        refused_change=list_refused_fields(diff) if diff.refusals else (),
        owner=diff.spec.owner,
        labels=diff.spec.labels,
        description=None if before else diff.spec.description,
        balance_before=measure_balance([existing], brokers) if placed and before else None,
        balance_after=measure_balance([wished.assignment], brokers) if placed else None,
        explicit=() if diff.refusals else diff.explicit,
    )


def _plan_deletion(
    diff: TopicDiff, before: TopicImage | None, risks: tuple[RiskNote, ...]
) -> PlannedTopic:
    return PlannedTopic(
        name=diff.spec.name,
        location=diff.spec.location,
        before=before,
        after=before if diff.refusals else None,
        risks=risks,
        refusals=diff.refusals,
        notes=diff.notes,
        deletion=None if diff.refusals else diff.deletion,
        refused_change=list_refused_fields(diff) if diff.refusals else (),
        owner=diff.spec.owner,
        labels=diff.spec.labels,
    )
