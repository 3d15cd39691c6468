"""Short ways to say brokers, specs and states, so that a test shows only what it is about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from reconciler.changes.build import assemble_plan
from reconciler.changes.topics import TopicDiff, diff_topics
from reconciler.errors import Finding, Location
from reconciler.model.cluster import (
    Assignment,
    Broker,
    ClusterState,
    Guards,
    TopicSpec,
    TopicState,
    TopicUsage,
)
from reconciler.model.moves import MoveKind, MovePolicy
from reconciler.model.plan import Plan
from reconciler.show.explain.matrix import Matrix, build_matrix
from reconciler.spec.configs import choose_catalogue
from reconciler.spec.services import Placement

HERE = Location("topics/shop.yaml", 3)
CATALOGUE = choose_catalogue()
NOW_MS = 1_800_000_000_000
NONE = Guards()
ONE = Guards(max_deletes=1)


def brokers(*racks: str | None) -> tuple[Broker, ...]:
    """Return brokers 1, 2, 3 … in these racks."""
    return tuple(Broker(number, rack) for number, rack in enumerate(racks, 1))


def rows(text: str) -> Assignment:
    """Read rows of broker ids: "1,2 2,3" is two partitions of two replicas."""
    return tuple(tuple(map(int, row.split(","))) for row in text.split())


def spec(name: str = "shop.orders", **wished: Any) -> TopicSpec:
    """Return a spec, written at `HERE` unless its fields say otherwise."""
    return TopicSpec(name, wished.pop("location", HERE), **wished)


def topic(
    assignment: str | Assignment = "1 2 3", name: str = "shop.orders", **found: Any
) -> TopicState:
    """Return a live topic whose id follows from its name."""
    replicas = rows(assignment) if isinstance(assignment, str) else assignment
    return TopicState(name, found.pop("topic_id", f"id-{name}"), replicas, **found)


def cluster(
    *topics: TopicState,
    nodes: Sequence[Broker] = brokers(None, None, None),
    defaults: dict[str, str] | None = None,
) -> ClusterState:
    """Return a cluster of three brokers without racks, unless told otherwise."""
    return ClusterState("cluster-1", tuple(nodes), {t.name: t for t in topics}, defaults or {})


def unused_cluster(*topics: TopicState, **found: Any) -> ClusterState:
    """Return a cluster whose topics nobody uses, unless `found` says otherwise of all of them."""
    usage = {
        t.name: TopicUsage(NOW_MS, **{"ends": (0,) * len(t.assignment), **found}) for t in topics
    }
    return replace(cluster(*topics), usage=usage)


def diff(
    wished: TopicSpec,
    state: ClusterState | None = None,
    excluded: Collection[int] = (),
    guards: Guards = NONE,
    moves: MovePolicy | None = None,
    placement: Placement = Placement.RECONCILER,
) -> TopicDiff:
    """Compare one spec with a cluster."""
    (found,) = diff_topics(
        [wished], state or cluster(), CATALOGUE, excluded, guards, moves=moves, placement=placement
    )
    return found


def may_move(*kinds: str, **limits: Any) -> MovePolicy:
    """Return a policy that allows these kinds of moves, or all kinds."""
    allowed = frozenset(map(MoveKind, kinds)) or frozenset(MoveKind)
    return MovePolicy(allowed, limits.pop("rate", 30 * 2**20), **limits)


def plan(
    wished: Iterable[TopicSpec],
    state: ClusterState,
    excluded: Collection[int] = (),
    guards: Guards = NONE,
    placement: Placement = Placement.RECONCILER,
    **more: Any,
) -> Plan:
    """Diff and plan in one go, for the cluster `prod`."""
    diffs = diff_topics(wished, state, CATALOGUE, excluded, guards, placement=placement)
    return assemble_plan("prod", diffs, state, excluded=excluded, **more)


def matrix(
    before: str,
    added: str,
    nodes: Sequence[Broker],
    *others: TopicState,
    excluded: Collection[int] = (),
    **wished: Any,
) -> Matrix:
    """Explain a topic of so many rows that grows by these, placed by hand but judged as ours."""
    live = [topic(before), *others] if before else others
    state = cluster(*live, nodes=nodes)
    made = plan([spec(assignment=rows(f"{before} {added}"), **wished)], state, excluded)
    return build_matrix("shop.orders", made, state)


def said(findings: Iterable[Finding]) -> list[str]:
    """Return findings as people see them."""
    return [str(finding) for finding in findings]
