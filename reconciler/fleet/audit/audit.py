"""An audit of a collection, from its tables to findings and balance, and the summary of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import methodcaller

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.diff.refusals import BY_SERVICE
from reconciler.errors import Severity
from reconciler.fleet import tables
from reconciler.fleet.audit.balance import (
    join_balance,
    weigh_brokers,
    weigh_clusters,
    weigh_racks,
)
from reconciler.fleet.audit.bands import find_bands, find_outside
from reconciler.fleet.audit.capacity import (
    check_broker_load,
    find_failed_directories,
    find_filling,
    find_full_directories,
    find_uneven_directories,
)
from reconciler.fleet.audit.causes import Pending, mark_fixed, rank_findings
from reconciler.fleet.audit.checks import (
    check_brokers,
    check_durability,
    check_health,
    check_ownership,
    check_rack_names,
    check_readings,
    find_metric_collisions,
    find_missing,
    find_outliers,
    find_thin_internal,
)
from reconciler.fleet.audit.due import find_due
from reconciler.fleet.audit.evenness import check_clusters, check_racks, check_topic_evenness
from reconciler.fleet.audit.moves import (
    check_drains,
    check_throttles,
    find_idle_rates,
    find_stalled,
)
from reconciler.fleet.audit.next_leaders import count_next_leaders
from reconciler.fleet.audit.rules import AUDIT_RULES, BY_MOVES, SEVERITIES, apply_checks
from reconciler.fleet.audit.topics import TOPIC, describe_clusters, describe_live_topics
from reconciler.fleet.caching import Cache
from reconciler.spec.forms import AuditForm


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit, as tables of these names."""

    findings: DataFrame
    balance: DataFrame
    bands: DataFrame


@dataclass(frozen=True, slots=True)
class Earlier:
    """A collection of a day or more before, its table `partitions`, and the days since then."""

    collection: str
    partitions: DataFrame
    days: float = 1.0


def audit_fleet(
    state: Mapping[str, DataFrame],
    specs: DataFrame,
    expectations: DataFrame,
    earlier: Earlier | None = None,
    *,
    compute: Cache = methodcaller("localCheckpoint"),
    pending: Pending | None = None,
    limits: AuditForm | None = None,
) -> Audit:
    """Audit every cluster of a collection.

    In: the state tables by name, `specs`, the rows of `make_expectations`, what was there
    `earlier`, which shows moves that do not end and topics that grow, the `pending` plans of the
    collection, and the `limits` of the estate. `compute` keeps what several checks read. A cluster
    that was not read is one finding. Internal topics count in health and not in balance.
    Shuffles: partitions once, pairs of leader and next leader, and loads of brokers; all other
    tables are small.
    """
    limits = limits or AuditForm()
    brokers = state["brokers"]
    # Computed: each of these feeds several checks, and partitions must be counted only once.
    clusters = compute(describe_clusters(state["readings"], brokers, expectations))
    topics = compute(describe_live_topics(state, specs, clusters))
    counted = topics.where(~F.col("internal"))
    weighed = compute(weigh_brokers(counted, brokers))
    racks = weigh_racks(weighed, clusters)
    next_leaders = count_next_leaders(state["partitions"], state["topics"], clusters)
    # Computed: partitions are read for it once more, and findings and balance both need it.
    totals = compute(weigh_clusters(weighed, clusters, counted, next_leaders))
    rackless = topics.where("wished_rackless").select(*TOPIC)
    bands = compute(find_bands(state["partitions"], brokers, clusters, rackless, compute))
    asked = F.broadcast(clusters.select("cluster", "drained"))
    held = weigh_brokers(topics, brokers).join(asked, "cluster", how="left")
    grown = None if earlier is None else (earlier.partitions, earlier.days)
    found = [
        apply_checks(state["readings"], check_readings()),
        apply_checks(
            topics,
            [
                *check_health(),
                *check_durability(),
                *check_topic_evenness(limits),
                *check_ownership(),
                *check_throttles(),
            ],
        ),
        apply_checks(held, [*check_brokers(), *check_drains(), check_broker_load(limits)]),
        find_full_directories(brokers, limits),
        find_failed_directories(brokers),
        find_uneven_directories(brokers, clusters),
        find_outside(bands),
        apply_checks(clusters, check_rack_names()),
        apply_checks(totals, check_clusters(limits)),
        apply_checks(racks, check_racks(limits)),
        find_metric_collisions(topics),
        find_outliers(topics, clusters, limits),
        find_thin_internal(topics),
        find_idle_rates(topics, clusters),
        find_missing(topics, specs, clusters, limits),
        find_due(state["topics"], specs, clusters),
        find_filling(topics, clusters, limits, grown),
    ]
    if earlier is not None:
        then, since = earlier.partitions, earlier.collection
        found.append(find_stalled(topics, state["partitions"], then, since))
    # Computed: a cause is ranked by all of its findings, so each of them is read twice.
    advised = advise(reduce(DataFrame.unionByName, found), expectations)
    marked = compute(mark_fixed(advised, pending))
    balance = join_balance(counted, weighed, racks, totals)
    return Audit(rank_findings(marked), balance, bands.select(*tables.BANDS.columns))


def advise(found: DataFrame, expectations: DataFrame) -> DataFrame:
    """Advise no moves of replicas on clusters whose brokers place these: no plan makes any.

    In, out: FOUND of `findings`. Shuffles: none.
    """
    placed = expectations.where("by_service").select("cluster", "by_service")
    impossible = F.col("by_service") & F.col("rule").isin(sorted(BY_MOVES))
    way_out = F.when(impossible, F.lit(BY_SERVICE)).otherwise(F.col("way_out"))
    rows = found.join(F.broadcast(placed), "cluster", how="left")
    return rows.withColumn("way_out", way_out).select(*found.columns)


ORDER = ("cluster", "topic", "subject", "rule")


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause: its rank, its findings, counted, those of them that a plan fixes, and the worst."""

    rank: int
    cause: str
    rule: str
    count: int
    fixed: int
    worst: Sequence[Row]


def select_findings(
    findings: DataFrame, least: Severity, clusters: Collection[str] = ()
) -> DataFrame:
    """Return findings of at least a severity, of the named clusters or of all."""
    wanted = SEVERITIES[: SEVERITIES.index(least) + 1]
    severe = findings.where(F.col("severity").isin([str(severity) for severity in wanted]))
    return severe.where(F.col("cluster").isin(list(clusters))) if clusters else severe


def order_findings(findings: DataFrame) -> DataFrame:
    """Order findings by the rank of their cause, and the most affected first in each."""
    return findings.orderBy("rank", F.desc("affected"), *ORDER)


def summarise_causes(findings: DataFrame, shown: int) -> list[Cause]:
    """Return every cause by rank, each with as many of its worst findings. Cost: a row for each."""
    by_cause = Window.partitionBy("cause")
    worst = by_cause.orderBy(F.desc("affected"), *ORDER)
    numbered = findings.withColumns(
        {
            "number": F.row_number().over(worst),
            "count": F.count("*").over(by_cause),
            "fixed": F.count("fixed_by").over(by_cause),
        }
    )
    rows = numbered.where(F.col("number") <= shown).orderBy("rank", "number").collect()
    causes: dict[str, list[Row]] = {}
    for row in rows:
        causes.setdefault(row["cause"], []).append(row)
    return [
        Cause(of["rank"], cause, of["rule"], of["count"], of["fixed"], found)
        for cause, found in causes.items()
        for of in found[:1]
    ]


def count_severities(causes: Sequence[Cause]) -> Mapping[Severity, int]:
    """Count findings by severity, the most severe first."""
    return {
        severity: sum(of.count for of in causes if AUDIT_RULES[of.rule].severity is severity)
        for severity in SEVERITIES
    }
