"""The needs of a cluster that changes by itself, read from the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.api.connections import find_cluster, refuse_other_cluster
from reconciler.api.planning import read_cluster

if TYPE_CHECKING:
    from reconciler.model.cluster import ClusterState
    from reconciler.model.plan import Plan
    from reconciler.moves.needs import Need
    from reconciler.planfile.approval import Approval
    from reconciler.spec.estate import Estate


def read_need(
    estate: Estate,
    cluster: str,
    *,
    bootstrap_servers: str | None = None,
    shown: Approval | None = None,
) -> Need:
    """Read a cluster, and find what a request should ask for.

    `shown` is the plan that its open request shows, which stays the plan as long as it holds. Write
    rates are measured if `balance` needs them, which takes 10 s.
    Errors: as `read_cluster`.
    """
    from reconciler.moves.needs import find_need
    from reconciler.moves.plan import plan_moves
    from reconciler.planfile.codec import fingerprint_plan

    entry, specs = find_cluster(estate, cluster), estate.topics_for(cluster)

    def foresee(seen: ClusterState) -> Plan:
        return find_need(entry, specs, seen)[1] or plan_moves(entry, specs, seen)

    state = read_cluster(
        estate,
        cluster,
        bootstrap_servers=bootstrap_servers,
        with_moves=True,
        every_topic=True,
        loads=entry.balance.by,
        plan=None if entry.moves is None else foresee,
    )
    refuse_other_cluster(entry, state)
    if shown is not None:
        need, plan = find_need(entry, specs, state, shown.moved)
        if plan is not None and fingerprint_plan(plan) == shown.fingerprint:
            return replace(need, fingerprint=shown.fingerprint, shown=True)
    need, plan = find_need(entry, specs, state)
    return replace(need, fingerprint=fingerprint_plan(plan)) if plan is not None else need
