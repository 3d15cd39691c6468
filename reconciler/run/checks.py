"""What every run checks before its first change."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.errors import Finding
from reconciler.model.cluster import ClusterState
from reconciler.model.identity import find_address, name_cluster
from reconciler.model.plan import Plan


def find_other_cluster(plan: Plan, state: ClusterState) -> Iterator[Finding]:
    """Report a plan that was made for another cluster; no other check follows then."""
    if plan.cluster_id and state.cluster_id != plan.cluster_id:
        planned, found = name_cluster(plan.cluster_id), name_cluster(state.cluster_id)
        what = f"the plan is for {planned}, and this is {found}"
        way_out = f"apply it to {plan.cluster}, or plan for this cluster"
        if find_address(plan.cluster_id) is not None:
            way_out = f"apply it to {plan.cluster} at that address, or plan for this cluster"
        yield Finding("plan-cluster", what, way_out)


def say_rack(rack: str | None) -> str:
    """Say where a broker is."""
    return "in no rack" if rack is None else f"in rack {rack}"
