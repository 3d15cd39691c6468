"""An audit of a collection, from its tables to findings and balance, and the summary of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import tables
from reconciler.fleet.audit.balance import (
    join_balance,
    weigh_brokers,
    weigh_clusters,
    weigh_racks,
)
from reconciler.fleet.audit.checks import (
    check_brokers,
    check_durability,
    check_health,
    check_ownership,
    check_rack_names,
    check_readings,
    find_metric_collisions,
    find_outliers,
)
from reconciler.fleet.audit.evenness import check_clusters, check_racks, check_topic_evenness
from reconciler.fleet.audit.moves import (
    check_drains,
    check_throttles,
    find_idle_rates,
    find_stalled,
)
from reconciler.fleet.audit.next_leaders import count_next_leaders
from reconciler.fleet.audit.rules import AUDIT_RULES, SEVERITIES, apply_checks
from reconciler.fleet.audit.topics import describe_clusters, describe_live_topics

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import Row

    from reconciler.errors import Severity
    from reconciler.fleet.caching import Cache


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit, as tables of these names."""

    findings: DataFrame
    balance: DataFrame


@dataclass(frozen=True, slots=True)
class Earlier:
    """A collection of a day before, and its table `partitions`."""

    collection: str
    partitions: DataFrame


def audit_fleet(
    state: Mapping[str, DataFrame],
    specs: DataFrame,
    expectations: DataFrame,
    earlier: Earlier | None = None,
    *,
    cache: Cache = DataFrame.persist,
) -> Audit:
    """Audit every cluster of a collection.

    In: the state tables by name, `specs`, the rows of `make_expectations`, and what was there
    `earlier`, which shows moves that do not end. `cache` keeps what several checks read. A cluster
    that was not read is one finding. Internal topics count in health and not in balance.
    Shuffles: partitions once, and pairs of leader and next leader; all other tables are small.
    """
    brokers = state["brokers"]
    # Cached: each of these feeds several checks, and partitions must be counted only once.
    clusters = cache(describe_clusters(state["readings"], brokers, expectations))
    topics = cache(describe_live_topics(state, specs, clusters))
    counted = topics.where(~F.col("internal"))
    weighed = cache(weigh_brokers(counted, brokers))
    racks = weigh_racks(weighed, clusters)
    next_leaders = count_next_leaders(state["partitions"], state["topics"], clusters)
    # Cached: partitions are read for it once more, and findings and balance both need it.
    totals = cache(weigh_clusters(weighed, clusters, counted, next_leaders))
    asked = F.broadcast(clusters.select("cluster", "drained"))
    held = weigh_brokers(topics, brokers).join(asked, "cluster", how="left")
    found = [
        apply_checks(state["readings"], check_readings()),
        apply_checks(
            topics,
            [
                *check_health(),
                *check_durability(),
                *check_topic_evenness(),
                *check_ownership(),
                *check_throttles(),
            ],
        ),
        apply_checks(held, [*check_brokers(), *check_drains()]),
        apply_checks(clusters, check_rack_names()),
        apply_checks(totals, check_clusters()),
        apply_checks(racks, check_racks()),
        find_metric_collisions(topics),
        find_outliers(topics, clusters),
        find_idle_rates(topics, clusters),
    ]
    if earlier is not None:
        then, since = earlier.partitions, earlier.collection
        found.append(find_stalled(topics, state["partitions"], then, since))
    findings = reduce(DataFrame.unionByName, found).select(*tables.FINDINGS.columns)
    return Audit(findings, join_balance(counted, weighed, racks, totals))


ORDER = ("cluster", "topic", "subject", "rule")


@dataclass(frozen=True, slots=True)
class Broken:
    """A broken rule: its findings and clusters, counted, and its worst findings."""

    rule: str
    count: int
    clusters: int
    worst: Sequence[Row]


def select_findings(
    findings: DataFrame, least: Severity, clusters: Collection[str] = ()
) -> DataFrame:
    """Return findings of at least a severity, of the named clusters or of all."""
    wanted = SEVERITIES[: SEVERITIES.index(least) + 1]
    severe = findings.where(F.col("severity").isin([str(severity) for severity in wanted]))
    return severe.where(F.col("cluster").isin(list(clusters))) if clusters else severe


def order_findings(findings: DataFrame) -> DataFrame:
    """Order findings: the most severe rules first, and the most affected first in each rule."""
    rank = F.array_position(F.array(*map(F.lit, _list_rules())), F.col("rule"))
    return findings.orderBy(rank, F.desc("affected"), *ORDER)


def summarise_findings(findings: DataFrame, shown: int) -> list[Broken]:
    """Return every broken rule, the most severe first. Cost: two small results."""
    counted = findings.groupBy("rule").agg(
        F.count("*").alias("count"), F.count_distinct("cluster").alias("clusters")
    )
    by_rule = Window.partitionBy("rule").orderBy(F.desc("affected"), *ORDER)
    numbered = findings.withColumn("number", F.row_number().over(by_rule))
    worst: dict[str, list[Row]] = {}
    for row in numbered.where(F.col("number") <= shown).orderBy("rule", "number").collect():
        worst.setdefault(row["rule"], []).append(row)
    found = {row["rule"]: row for row in counted.collect()}
    return [
        Broken(rule, found[rule]["count"], found[rule]["clusters"], worst[rule])
        for rule in _list_rules()
        if rule in found
    ]


def count_severities(broken: Sequence[Broken]) -> Mapping[Severity, int]:
    """Count findings by severity, the most severe first."""
    return {
        severity: sum(of.count for of in broken if AUDIT_RULES[of.rule].severity is severity)
        for severity in SEVERITIES
    }


def _list_rules() -> list[str]:
    """Name the rules, the most severe first, then in order of declaration."""
    return sorted(AUDIT_RULES, key=lambda rule: SEVERITIES.index(AUDIT_RULES[rule].severity))
