"""Changes and assignments become a Plan."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.diff import TopicDiff, eligible_brokers, managed_overrides
from reconciler.model import Plan, PlannedTopic, TopicImage
from reconciler.placement import (
    Placed,
    Problem,
    Wish,
    measure_balance,
    place_replicas,
)
from reconciler.plan.guards import list_refused_fields
from reconciler.plan.risks import assess_risks, refuse_unaccepted
from reconciler.plan.weigh import ReplicaWeights

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from reconciler.errors import Finding
    from reconciler.model import Assignment, Broker, ClusterState, RiskNote
    from reconciler.plan.weigh import Weigh


@dataclass(frozen=True, slots=True)
class Placing:
    """How a cluster wants replicas placed.

    `capacity` is the relative capacity of a broker, 1 if not given; `weigh` is the weight by which
    the cluster is balanced.
    """

    strategy: str = "optimal"
    capacity: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    weigh: Weigh = "count"


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
) -> Plan:
    """Place new replicas for the diffs and build the plan.

    `ignored` names live topics that are neither planned nor reported. Refused topics are not
    placed, so that they take no room from the others.
    """
    risks = {diff.spec.name: _risks(diff, state) for diff in diffs}
    judged = [_refuse_risks(diff, risks[diff.spec.name], state) for diff in diffs]
    brokers = eligible_brokers(state.brokers, excluded)
    ids = [broker.id for broker in brokers]
    placing = placing or Placing()
    problem = _problem(judged, ReplicaWeights(state, placing.weigh), brokers, placing.capacity)
    placed = place_replicas(problem, placing.strategy) if problem.wishes else Placed({})
    manual = {diff.spec.name: diff.manual for diff in judged if diff.manual is not None}
    rows = {**placed.rows, **manual}
    planned = [
        _plan_topic(diff, rows.get(diff.spec.name, ()), risks[diff.spec.name], ids)
        for diff in judged
        if diff.changes or diff.refusals or diff.notes
    ]
    live = {name: topic.assignment for name, topic in state.user_topics.items()}
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
        balance_after=measure_balance(_list_after(live, planned), ids),
        levels=placed.levels,
        excluded=tuple(sorted(excluded)),
    )


def _list_after(
    live: Mapping[str, Assignment], planned: Iterable[PlannedTopic]
) -> Iterator[Assignment]:
    """List the assignments of a cluster after a plan, without deleted topics."""
    changed = {topic.name: topic.after for topic in planned}
    yield from (assignment for name, assignment in live.items() if name not in changed)
    yield from (image.assignment for image in changed.values() if image)


def _risks(diff: TopicDiff, state: ClusterState) -> tuple[RiskNote, ...]:
    overrides = managed_overrides(diff.state) if diff.state and diff.changes else {}
    return assess_risks(diff, overrides, state.config_defaults)


def _refuse_risks(diff: TopicDiff, risks: Iterable[RiskNote], state: ClusterState) -> TopicDiff:
    refused = tuple(refuse_unaccepted(diff, risks, state.config_defaults))
    # Most topics are refused nothing, and a copy of each would cost more than the check.
    return replace(diff, refusals=(*diff.refusals, *refused)) if refused else diff


def _problem(
    diffs: Iterable[TopicDiff],
    weights: ReplicaWeights,
    brokers: tuple[Broker, ...],
    capacity: Mapping[int, int],
) -> Problem:
    """Return the placement problem; manual rows of this plan count as load."""
    wishes, manual = [], []
    for diff in diffs:
        if diff.refusals or not diff.new_partitions:
            continue
        if diff.manual is not None:
            manual.append((diff.spec.name, diff.manual))
        else:
            wishes.append(_wish(diff, weights.weigh_topic(diff.spec.name)))
    leaders, replicas = weights.weigh_load(manual)
    return Problem(brokers, leaders, replicas, tuple(wishes), capacity)


def _wish(diff: TopicDiff, weight: int) -> Wish:
    existing = diff.state.assignment if diff.state else ()
    count, replication = diff.new_partitions, diff.replication_factor
    return Wish(diff.spec.name, existing, count, replication, diff.spec.rack_aware, weight)


def _plan_topic(
    diff: TopicDiff, rows: Assignment, risks: tuple[RiskNote, ...], brokers: Collection[int]
) -> PlannedTopic:
    before = _image(diff)
    if diff.deletion is not None:
        return _plan_deletion(diff, before, risks)
    existing = before.assignment if before else ()
    wished = TopicImage(before.topic_id if before else None, existing + rows, diff.config)
    after = before if diff.refusals else wished
    placed = bool(rows) and not diff.refusals
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
        balance_before=measure_balance([existing], brokers) if placed and before else None,
        balance_after=measure_balance([wished.assignment], brokers) if placed else None,
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
    )


def _image(diff: TopicDiff) -> TopicImage | None:
    if diff.state is None:
        return None
    state = diff.state
    return TopicImage(state.topic_id, state.assignment, managed_overrides(state))
