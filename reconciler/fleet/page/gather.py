"""From the lake to the contents of the page: Spark aggregates what grows with the fleet."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import tables
from reconciler.fleet.caching import caching
from reconciler.fleet.health import Health, find_unhealthy_topics
from reconciler.fleet.lake.attempts import AUDIT, PLAN, PLANNED, READ
from reconciler.fleet.page.contents import (
    MOST_BROKERS,
    MOST_CLUSTERS,
    MOST_COLLECTIONS,
    MOST_ROWS,
    AuditSummary,
    BrokerLoad,
    ChangeLine,
    ClusterLine,
    DriftPoint,
    FleetPage,
    FleetTotals,
    Kept,
    MovesLine,
    PlanTotals,
    Standing,
    TopicSkew,
    cut,
    describe_change_row,
)
from reconciler.fleet.page.gather_live import (
    find_history,
    find_owners,
    follow_trend,
    gather_health,
    list_problems,
    list_topics,
)
from reconciler.fleet.page.measures import (
    count_loads,
    gather_findings,
    gather_next_leaders,
    measure_topics,
    select_user_partitions,
)
from reconciler.fleet.sound import read_collection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, Row

    from reconciler.fleet.lake.attempts import Published
    from reconciler.fleet.lake.lake import Lake

Line = TypeVar("Line", TopicSkew, ChangeLine)

ACTIONS = ("refuse", "delete", "update", "create")
"""The actions of a plan on a topic, the most urgent first."""

_ORDER = tuple(Standing)
_HEALTH = tuple(Health)
_READING = ("cluster", "status", "error", "kafka_version", "synthetic")
_LOADS = ("leaders", "replicas", "size_bytes")
_PLAN = [name for name in tables.PLANS.columns if name not in ("fingerprint", "plan")]


def gather_page(
    lake: Lake,
    collection: str | None,
    made_at: str,
    announce: Callable[[str], None] = lambda _: None,
) -> FleetPage:
    """Gather what the page shows of a collection, the latest unless one is named.

    Cost: one pass over the partitions for the brokers, one for the topics.
    """
    attempt = lake.find_attempt(collection)
    planned, audited = (_find(lake, attempt, what) for what in (PLAN, AUDIT))
    announce(f"counting what the brokers of {attempt.collection} hold")
    state = read_collection(lake, attempt)
    plans = lake.read(tables.PLANS, planned) if planned else None
    clusters = _gather_clusters(state, plans)
    announce("looking at the health of the clusters")
    unhealthy = find_unhealthy_topics(state).persist()
    totals, health = gather_health(state, unhealthy)
    problems = list_problems(state, unhealthy)
    unhealthy.unpersist()
    clusters = [replace(c, health=health.get(c.name, Health.UNREAD)) for c in clusters]
    announce("following the drift")
    drift, drifts = _follow_drift(lake, attempt)
    announce("measuring the topics")
    changes = None
    if planned is not None:  # remarks are no changes
        changes = lake.read(tables.CHANGES, planned).where(F.col("action").isin(*ACTIONS))
    topics = _find_worst(state, changes)
    announce("listing topics, changes and findings")
    history = find_history(lake, attempt)
    events = history.get(tables.EVENTS.name)
    ordered = sorted(
        clusters,
        key=lambda c: (
            _HEALTH.index(c.health),
            _ORDER.index(c.standing),
            -c.partitions,
            c.name,
        ),
    )
    shown = [replace(c, drifts=drifts.get(c.name, ())) for c in ordered[:MOST_CLUSTERS]]
    return FleetPage(
        collection=attempt.collection,
        made_at=made_at,
        commit=attempt.commit,
        totals=_sum(clusters),
        clusters=Kept(_bound_brokers(shown), len(clusters)),
        health=totals,
        problems=problems,
        inventory=list_topics(state, changes, events),
        trend=follow_trend(history),
        drift=drift,
        topics=_name_owners(topics, state["specs"]),
        changes=_name_owners(_list_changes(changes), state["specs"]),
        moves=_list_moves(lake, planned) if planned else Kept(),
        audit=_summarise_audit(lake, audited) if audited else None,
    )


def _name_owners(kept: Kept[Line], specs: DataFrame) -> Kept[Line]:
    """Add the owners of topics."""
    owners = find_owners(specs, {(row.cluster, row.topic) for row in kept.rows})
    rows = (replace(row, owner=owners.get((row.cluster, row.topic))) for row in kept.rows)
    return Kept(tuple(rows), kept.total)


def _summarise_audit(lake: Lake, audited: Published) -> AuditSummary:
    found = gather_findings(lake.read(tables.FINDINGS, audited))
    followed = gather_next_leaders(lake.read(tables.BALANCE, audited))
    return replace(found, next_leaders=followed)


def _find(lake: Lake, attempt: Published, what: str) -> Published | None:
    """Return the plan or audit of a collection, if there is one."""
    made = (a for a in lake.list_attempts(what) if a.collection == attempt.collection)
    return next(made, None)


def _gather_clusters(
    state: Mapping[str, DataFrame], planned: DataFrame | None
) -> list[ClusterLine]:
    """Return every cluster of the readings or the plans, also those that failed."""
    readings = _by_cluster(state["readings"].select(*_READING).collect())
    sums = (F.count("topic").alias("topics"), F.sum("partitions").alias("partitions"))
    users = state["topics"].where(~F.col("internal"))
    counts = _by_cluster(users.groupBy("cluster").agg(*sums).collect())
    plans: Mapping[str, Row] = {}
    if planned is not None:
        plans = _by_cluster(planned.select(*_PLAN).collect())
    brokers = _gather_brokers(state)
    return [
        _describe_cluster(name, readings.get(name), plans.get(name), counts.get(name), brokers)
        for name in sorted({*readings, *plans})
    ]


def _by_cluster(rows: Iterable[Row]) -> Mapping[str, Row]:
    return {row["cluster"]: row for row in rows}


def _pick_partitions(state: Mapping[str, DataFrame]) -> DataFrame:
    return select_user_partitions(state["partitions"], state["topics"])


def _gather_brokers(state: Mapping[str, DataFrame]) -> Mapping[str, Sequence[BrokerLoad]]:
    """Return the brokers of each cluster by rack and id, and what they hold."""
    loads = count_loads(_pick_partitions(state)).collect()
    held = {(row["cluster"], row["broker"]): row for row in loads}
    brokers: dict[str, list[BrokerLoad]] = defaultdict(list)
    for row in state["brokers"].collect():
        load = held.get((row["cluster"], row["id"]))
        amounts = {name: load[name] if load else 0 for name in _LOADS}
        broker = BrokerLoad(
            row["id"],
            row["rack"],
            **amounts,
            alive=bool(row["alive"]),
            cordoned=bool(row["cordoned"]),
        )
        brokers[row["cluster"]].append(broker)
    return {
        name: sorted(found, key=lambda load: (load.rack is None, load.rack or "", load.id))
        for name, found in brokers.items()
    }


def _describe_cluster(
    name: str,
    reading: Row | None,
    plan: Row | None,
    count: Row | None,
    brokers: Mapping[str, Sequence[BrokerLoad]],
) -> ClusterLine:
    read = reading is not None and reading["status"] == READ
    failed = reading if reading and not read else plan
    trouble = None
    if failed is not None and failed["status"] != PLANNED:
        trouble = cut(failed["status"]), cut(failed["error"] or "")
    held = tuple(brokers.get(name, ()))
    return ClusterLine(
        name=name,
        read=read,
        trouble=trouble,
        synthetic=bool(reading and reading["synthetic"]),
        kafka_version=reading["kafka_version"] if reading else None,
        topics=count["topics"] if count else 0,
        partitions=(count["partitions"] or 0) if count else 0,
        broker_count=len(held),
        rack_count=len({broker.rack for broker in held if broker.rack is not None}),
        brokers=held,
        plan=_describe_plan(plan) if plan and plan["status"] == PLANNED else None,
    )


def _describe_plan(row: Row) -> PlanTotals:
    return PlanTotals(
        changed=row["changed"] or 0,
        refused=row["refused"] or 0,
        unchanged=row["unchanged"] or 0,
        unmanaged=row["unmanaged"] or 0,
        leaders_before=row["leader_skew_before"],
        leaders_after=row["leader_skew_after"],
        replicas_before=row["replica_skew_before"],
        replicas_after=row["replica_skew_after"],
    )


def _sum(clusters: Sequence[ClusterLine]) -> FleetTotals:
    plans = [cluster.plan for cluster in clusters if cluster.plan is not None]
    totals = ("changed", "refused", "unchanged", "unmanaged")
    sums = {name: sum(getattr(plan, name) for plan in plans) for name in totals}
    return FleetTotals(
        clusters=len(clusters),
        read=sum(cluster.read for cluster in clusters),
        synthetic=sum(cluster.synthetic for cluster in clusters),
        brokers=sum(cluster.broker_count for cluster in clusters),
        topics=sum(cluster.topics for cluster in clusters),
        partitions=sum(cluster.partitions for cluster in clusters),
        plan=PlanTotals(**sums) if plans else None,
        planned=len(plans),
    )


def _bound_brokers(clusters: Iterable[ClusterLine]) -> tuple[ClusterLine, ...]:
    """Keep the brokers of the first clusters, up to the limit of the page."""
    room = MOST_BROKERS
    bounded = []
    for cluster in clusters:
        fits = len(cluster.brokers) <= room
        room -= len(cluster.brokers) if fits else 0
        bounded.append(cluster if fits else replace(cluster, brokers=()))
    return tuple(bounded)


def _follow_drift(
    lake: Lake, attempt: Published
) -> tuple[tuple[DriftPoint, ...], Mapping[str, tuple[int | None, ...]]]:
    """Return the totals of each collection's plans, and the drift of each cluster in them."""
    past = [a for a in lake.list_attempts(PLAN) if a.collection <= attempt.collection]
    past = past[-MOST_COLLECTIONS:]
    if not past:
        return (), {}
    rows = lake.read_all(tables.PLANS, past).select("collection", *_PLAN).collect()
    points = tuple(_sum_drift(a.collection, rows) for a in past)
    found = {
        (row["cluster"], row["collection"]): _describe_plan(row).drift
        for row in rows
        if row["status"] == PLANNED
    }
    names = {row["cluster"] for row in rows}
    return points, {name: tuple(found.get((name, a.collection)) for a in past) for name in names}


def _sum_drift(collection: str, rows: Sequence[Row]) -> DriftPoint:
    of_it = [row for row in rows if row["collection"] == collection]
    plans = [_describe_plan(row) for row in of_it if row["status"] == PLANNED]
    return DriftPoint(
        collection,
        planned=len(plans),
        unplanned=len(of_it) - len(plans),
        changed=sum(plan.changed for plan in plans),
        refused=sum(plan.refused for plan in plans),
        unchanged=sum(plan.unchanged for plan in plans),
    )


def _find_worst(state: Mapping[str, DataFrame], changes: DataFrame | None) -> Kept[TopicSkew]:
    """Return the least even topics. A difference of one between brokers can be unavoidable."""
    measured = measure_topics(_pick_partitions(state), state["brokers"])
    order = (F.desc("leader_skew"), F.desc("replica_skew"), "cluster", "topic")
    with caching() as cache:
        uneven = cache(measured.where((F.col("leader_skew") > 1) | (F.col("replica_skew") > 1)))
        worst = uneven.orderBy(*order).limit(MOST_ROWS).collect()
        total = uneven.count()
    actions: dict[tuple[str, str], str] = {}
    if changes is not None and worst:
        # A filter by names, not a join: `worst` is a few hundred rows at most.
        names = sorted({row["topic"] for row in worst})
        found = changes.where(F.col("topic").isin(names)).select("cluster", "topic", "action")
        actions = {_key(row): row["action"] for row in found.collect()}
    rows = (TopicSkew(**row.asDict(), action=actions.get(_key(row))) for row in worst)
    return Kept(tuple(rows), total)


def _key(row: Row) -> tuple[str, str]:
    return row["cluster"], row["topic"]


def _list_moves(lake: Lake, planned: Published) -> Kept[MovesLine]:
    """Return the plans of moves that say something, those that copy the most first."""
    if tables.MOVE_PLANS.name not in planned.rows:
        return Kept()  # plans of an earlier release
    rows = lake.read(tables.MOVE_PLANS, planned).drop("plan")
    nothing = (F.col(name) == 0 for name in ("changed", "cordons", "refused"))
    idle = reduce(and_, nothing, F.size("refusals") == 0)
    rows = rows.where((F.col("status") != PLANNED) | ~idle)
    shown = rows.orderBy(F.desc_nulls_first("copied_bytes"), "cluster").limit(MOST_ROWS).collect()
    return Kept(tuple(map(_describe_moves, shown)), rows.count())


def _describe_moves(row: Row) -> MovesLine:
    failed = [f"{row['error']} [{row['status']}]"] if row["status"] != PLANNED else []
    return MovesLine(
        cluster=row["cluster"],
        topics=row["changed"] or 0,
        partitions=row["partitions"] or 0,
        replicas=row["replicas"] or 0,
        copied_bytes=row["copied_bytes"] or 0,
        seconds=row["seconds"],
        peak_share=row["peak_share"],
        drained=tuple(row["drained"] or ()),
        refused=row["refused"] or 0,
        reasons=tuple(map(cut, [*failed, *(row["refusals"] or ())])),
    )


def _list_changes(changes: DataFrame | None) -> Kept[ChangeLine]:
    """Return the changes: first the refused ones, then by the number of their risks."""
    if changes is None:
        return Kept()
    rank = F.array_position(F.array(*map(F.lit, ACTIONS)), F.col("action"))
    order = (rank, F.desc(F.size("risks")), F.col("cluster"), F.col("topic"))
    rows = changes.drop("assignment").orderBy(*order).limit(MOST_ROWS).collect()
    return Kept(tuple(map(_describe_row, rows)), changes.count())


def _describe_row(row: Row) -> ChangeLine:
    return ChangeLine(
        cluster=row["cluster"],
        topic=row["topic"],
        action=row["action"],
        what=cut(describe_change_row(row.asDict())),
        risks=tuple(row["risks"] or ()),
        reasons=tuple(map(cut, row["reasons"] or ())),
        rules=tuple(row["refusals"] or ()),
        place=f"{row['file']}:{row['line']}" if row["file"] else "",
    )
