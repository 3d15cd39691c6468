"""From the lake to the content of the page: Spark aggregates what grows with the fleet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from string import Formatter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import tables
from reconciler.fleet.caching import caching
from reconciler.fleet.complete import read_collection
from reconciler.fleet.health import Health, count_health, find_unhealthy_topics, judge_health
from reconciler.fleet.lake.attempts import AUDIT, PLAN, PLANNED, READ, Published
from reconciler.fleet.lake.inventory import find_chain
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.page.contents import (
    MOST_BROKERS,
    MOST_CLUSTERS,
    MOST_COLLECTIONS,
    BrokerLoad,
    ClusterLine,
    DriftPoint,
    FleetPage,
    FleetTotals,
    HealthTotals,
    Kept,
    LoadShare,
    PlanTotals,
    Standing,
    cut,
)
from reconciler.fleet.page.measures import (
    count_loads,
    measure_topics,
    select_user_partitions,
)
from reconciler.fleet.page.table import Ask, find_rows
from reconciler.fleet.page.tables import ACTIONS, TABLES
from reconciler.fleet.tracing import read_history
from reconciler.model.health import PROBLEMS

_ORDER = tuple(Standing)
_HEALTH = tuple(Health)
_READING = ("cluster", "status", "error", "kafka_version", "synthetic")
_LOADS = ("leaders", "replicas", "size_bytes")
_BAND = ("amount", "share", "least", "most", "outside", "aimed")
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
    asked = {**state, **_read_plans(lake, planned)}
    bands = _gather_bands(lake, audited)
    clusters = _gather_clusters(state, asked.get("plans"), bands)
    with caching() as cache:
        announce("looking at the health of the clusters")
        asked["unhealthy"] = cache(find_unhealthy_topics(state))
        totals, health = _gather_health(state, asked["unhealthy"])
        clusters = [replace(c, health=health.get(c.name, Health.UNREAD)) for c in clusters]
        announce("following the drift")
        drift, drifts = _follow_drift(lake, attempt)
        announce("measuring the topics")
        measured = measure_topics(_pick_partitions(state), state["brokers"])
        # A difference of one between brokers can be unavoidable.
        asked["uneven_topics"] = cache(measured.where("leader_skew > 1 OR replica_skew > 1"))
        announce("listing topics, changes and findings")
        if audited is not None:
            audit = (tables.FINDINGS, tables.BALANCE)
            asked |= {table.name: lake.read(table, audited) for table in audit}
        if find_chain(lake.list_published(), attempt.collection):
            asked |= read_history(lake, attempt)
        ask = _open_lake(lake.session, asked)
        found = {table.name: find_rows(table, ask) for table in TABLES if table.query}
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
        drift=drift,
        audited=audited is not None,
        tables=found,
    )


def _find(lake: Lake, attempt: Published, what: str) -> Published | None:
    """Return the plan or audit of a collection, if there is one."""
    made = (a for a in lake.list_attempts(what) if a.collection == attempt.collection)
    return next(made, None)


def _read_plans(lake: Lake, planned: Published | None) -> dict[str, DataFrame]:
    if planned is None:
        return {}
    changes = lake.read(tables.CHANGES, planned)
    return {
        "plans": lake.read(tables.PLANS, planned),
        "changes": changes.where(F.col("action").isin(*ACTIONS)),  # remarks are no changes
        "move_plans": lake.read(tables.MOVE_PLANS, planned),
    }


def _open_lake(session: SparkSession, asked: Mapping[str, DataFrame]) -> Ask:
    """Return what runs the SQL of a table. It has no rows if a table that it names is missing."""

    def ask(query: str, topics: Sequence[tuple[str, str]] | None) -> list[dict[str, Any]]:
        names = {name for _, name, _, _ in Formatter().parse(query) if name}
        if not names <= asked.keys():
            return []
        named: dict[str, Any] = {name: asked[name] for name in names}
        if topics is not None:
            # They are some thousands at most, so they are sent along.
            columns = [[cluster for cluster, _ in topics], [topic for _, topic in topics]]
            keys = pa.table(columns, names=["cluster", "topic"])
            chosen = F.broadcast(session.createDataFrame(keys))
            for name, rows in named.items():
                named[name] = rows.join(chosen, keys.column_names, how="left_semi")
        return [row.asDict(recursive=True) for row in session.sql(query, **named).collect()]

    return ask


def _gather_health(
    state: Mapping[str, DataFrame], unhealthy: DataFrame
) -> tuple[HealthTotals, Mapping[str, Health]]:
    """Return the problems of the fleet, and the health of each cluster of the readings."""
    rows = count_health(state, unhealthy).collect()
    totals = {name: sum(row[name] or 0 for row in rows) for name in PROBLEMS}
    clusters = {name: sum(bool(row[name]) for row in rows) for name in PROBLEMS}
    health = {row["cluster"]: judge_health(row.asDict()) for row in rows}
    return HealthTotals(**totals, clusters=clusters), health


def _gather_clusters(
    state: Mapping[str, DataFrame], planned: DataFrame | None, bands: Sequence[Row]
) -> list[ClusterLine]:
    """Return every cluster of the readings or the plans, also those that failed."""
    readings = _by_cluster(state["readings"].select(*_READING).collect())
    sums = (F.count("topic").alias("topics"), F.sum("partitions").alias("partitions"))
    users = state["topics"].where(~F.col("internal"))
    counts = _by_cluster(users.groupBy("cluster").agg(*sums).collect())
    plans: Mapping[str, Row] = {}
    if planned is not None:
        plans = _by_cluster(planned.select(*_PLAN).collect())
    brokers = _gather_brokers(state, bands)
    return [
        _describe_cluster(name, readings.get(name), plans.get(name), counts.get(name), brokers)
        for name in sorted({*readings, *plans})
    ]


def _by_cluster(rows: Iterable[Row]) -> Mapping[str, Row]:
    return {row["cluster"]: row for row in rows}


def _pick_partitions(state: Mapping[str, DataFrame]) -> DataFrame:
    return select_user_partitions(state["partitions"], state["topics"])


def _gather_bands(lake: Lake, audited: Published | None) -> Sequence[Row]:
    """Return the rows of `bands`; none without an audit, or of one that had no such table."""
    if audited is None or tables.BANDS.name not in audited.rows:
        return ()
    return lake.read(tables.BANDS, audited).collect()


def _gather_brokers(
    state: Mapping[str, DataFrame], rows: Iterable[Row]
) -> Mapping[str, Sequence[BrokerLoad]]:
    """Return the brokers of each cluster by rack and id, and what they hold."""
    bands: dict[tuple[str, int], dict[str, LoadShare]] = defaultdict(dict)
    for row in rows:
        band = LoadShare(**{name: row[name] for name in _BAND})
        bands[row["cluster"], row["broker"]][row["load"]] = band
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
            bands=bands.get((row["cluster"], row["id"]), {}),
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
