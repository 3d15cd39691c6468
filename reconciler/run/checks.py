"""What every run checks before its first change."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.errors import Finding
from reconciler.model.cluster import ClusterState
from reconciler.model.plan import Plan


def find_other_cluster(plan: Plan, state: ClusterState) -> Iterator[Finding]:
    """Report a plan that was made for another cluster; no other check follows then."""
    if plan.cluster_id and state.cluster_id != plan.cluster_id:
        what = f"the plan is for cluster {plan.cluster_id}, this one is {state.cluster_id}"
        way_out = f"apply it to {plan.cluster}, or plan for this cluster"
        yield Finding("plan-cluster", what, way_out)


def say_rack(rack: str | None) -> str:
    """Say where a broker is."""
    return "in no rack" if rack is None else f"in rack {rack}"
