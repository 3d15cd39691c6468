"""The figures of a cluster: from its state and its plan, or from the rows of a lake; as samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from reconciler.metrics.catalogue import Sample
from reconciler.model.cluster import ClusterState
from reconciler.model.health import count_problems
from reconciler.model.plan import Plan
from reconciler.show.view import view_plan

ACTIONS = ("create", "update", "delete", "refuse")
"""What a plan does to a topic that differs from its spec."""


def _nothing() -> Mapping[Any, int]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    """What is known of a cluster. None is unknown, and gives no sample.

    `read` and `planned`: whether the latest attempt worked. `read_at`, `planned_at`: the last time
    that it did, `drift_since`: the first plan with the oldest pending change. Units: seconds since
    1970. `failures`: the rule by stage. `skews`: by `of` and `plan` of reconciler_skew.
    `problems` are those of `reconciler.model.health`; `refusals` are counted by rule, findings by
    rule and severity.
    """

    cluster: str
    cluster_id: str | None = None
    read: bool = False
    planned: bool | None = None
    read_at: float | None = None
    planned_at: float | None = None
    failures: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    problems: Mapping[str, int] | None = None
    brokers: int | None = None
    topics: int | None = None
    partitions: int | None = None
    moving: int | None = None
    move_replicas: int | None = None
    move_bytes: int | None = None
    skews: Mapping[tuple[str, str], int] = field(default_factory=_nothing)
    drift: Mapping[str, int] | None = None
    drift_since: float | None = None
    unmanaged: int | None = None
    refusals: Mapping[str, int] = field(default_factory=_nothing)
    plan_findings: Mapping[tuple[str, str], int] = field(default_factory=_nothing)
    audit_findings: Mapping[tuple[str, str], int] = field(default_factory=_nothing)

    @property
    def healthy(self) -> bool | None:
        """Return whether nothing is wrong; None if the cluster was read and it is unknown."""
        if not self.read:
            return False
        return None if self.problems is None else not any(self.problems.values())


def measure_state(state: ClusterState) -> dict[str, Any]:
    """Return the fields of `ClusterFigures` that a state of a cluster gives."""
    users = state.user_topics.values()
    return {
        "cluster_id": state.cluster_id,
        "read": True,
        "problems": count_problems(state).by_problem,
        "brokers": len(state.brokers),
        "topics": len(users),
        "partitions": sum(len(topic.assignment) for topic in users),
        "moving": sum(len(topic.reassigning) for topic in state.topics.values()),
    }


def measure_plan(plan: Plan) -> dict[str, Any]:
    """Return the fields of `ClusterFigures` that a plan of changes gives."""
    drift = dict.fromkeys(ACTIONS, 0) | Counter(list_drift(plan).values())
    refusals = (*plan.refusals, *(one for topic in plan.topics for one in topic.refusals))
    notes = (*plan.alerts, *plan.notes, *(one for topic in plan.topics for one in topic.notes))
    balances = {"before": plan.balance_before, "after": plan.balance_after}
    return {
        "planned": True,
        "skews": {
            (of, when): getattr(balance, of).skew
            for when, balance in balances.items()
            if balance is not None
            for of in ("leaders", "replicas")
        },
        "drift": drift,
        "unmanaged": len(plan.unmanaged),
        "refusals": Counter(refusal.rule for refusal in refusals),
        "plan_findings": Counter((note.rule, str(note.severity)) for note in notes),
    }


def list_drift(plan: Plan) -> Mapping[str, str]:
    """Return what a plan does to each topic that differs from its spec, also outside its scope."""
    actions = {topic.name: str(topic.action) for topic in plan.existing_drift}
    for topic in view_plan(plan).topics:
        if topic.action in ACTIONS:
            actions[topic.name] = topic.action
    return actions


def list_samples(figures: ClusterFigures) -> Iterator[Sample]:
    """Yield the samples of a cluster. What is unknown is left out."""
    one = figures
    for name, value in {
        "read_success": one.read,
        "read_last_success_timestamp_seconds": one.read_at,
        "plan_success": one.planned,
        "plan_last_success_timestamp_seconds": one.planned_at,
        "healthy": one.healthy,
        "brokers": one.brokers,
        "topics": one.topics,
        "partitions": one.partitions,
        "moving_partitions": one.moving,
        "planned_move_replicas": one.move_replicas,
        "planned_move_bytes": one.move_bytes,
        "drift_since_timestamp_seconds": one.drift_since,
        "unmanaged_topics": one.unmanaged,
    }.items():
        if value is not None:
            yield Sample(f"reconciler_{name}", float(value), (one.cluster,))
    if one.cluster_id is not None:
        yield Sample("reconciler_cluster_info", 1, (one.cluster, one.cluster_id))
    for stage, rule in one.failures.items():
        yield Sample("reconciler_failure", 1, (one.cluster, stage, rule))
    for name, counts in {
        "health_problems": one.problems or {},
        "drifted_topics": one.drift or {},
        "plan_refusals": one.refusals,
    }.items():
        for label, number in counts.items():
            yield Sample(f"reconciler_{name}", number, (one.cluster, label))
    for name, pairs in {
        "skew": one.skews,
        "plan_findings": one.plan_findings,
        "audit_findings": one.audit_findings,
    }.items():
        for labels, number in pairs.items():
            yield Sample(f"reconciler_{name}", number, (one.cluster, *labels))
