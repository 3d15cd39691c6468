"""Aggregates of partitions and findings for the page, as DataFrames.

Leaders are preferred leaders, because placement decides these; elections change the others. As in
plans, internal topics do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.errors import Severity
from reconciler.fleet.page.contents import (
    MOST_CLUSTERS,
    MOST_ROWS,
    AuditSummary,
    FindingLine,
    Kept,
    NextLeadersLine,
    RuleCount,
    cut,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame


def select_user_partitions(partitions: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the partitions of topics that are not internal.

    Shuffles: none. Internal topics are few and are sent along.
    """
    internal = topics.where("internal").select("cluster", "topic")
    return partitions.join(F.broadcast(internal), ["cluster", "topic"], how="left_anti")


def count_loads(partitions: DataFrame) -> DataFrame:
    """Count the leaders and replicas of each broker.

    Grain: a broker that holds something. Out: cluster, broker, leaders, replicas.
    Shuffles: once, of as many rows as there are brokers.
    """
    return _count_held(partitions, "cluster", "broker")


def measure_topics(partitions: DataFrame, brokers: DataFrame) -> DataFrame:
    """Measure max − min of each topic over the brokers of its cluster that are alive.

    Grain: a topic. Out: cluster, topic, partitions, leader_skew, replica_skew.
    Shuffles: once, by cluster, topic and broker; brokers are few and are sent along.
    """
    held = _count_held(partitions, "cluster", "topic", "broker")
    alive = brokers.where("alive").select("cluster", F.col("id").alias("broker"), "alive")
    room = alive.groupBy("cluster").agg(F.count("broker").alias("room"))
    placed = held.join(F.broadcast(alive), ["cluster", "broker"], how="left")
    topics = placed.groupBy("cluster", "topic").agg(
        F.sum("leaders").alias("partitions"),
        F.count("alive").alias("used"),
        *(
            bound(F.when(F.col("alive"), F.col(name))).alias(f"{name}_{bound.__name__}")
            for name in ("leaders", "replicas")
            for bound in (F.min, F.max)
        ),
    )
    measured = topics.join(F.broadcast(room), "cluster", how="inner").where("used > 0")
    return measured.select(
        "cluster",
        "topic",
        "partitions",
        _skew("leaders").alias("leader_skew"),
        _skew("replicas").alias("replica_skew"),
    )


def _count_held(partitions: DataFrame, *grain: str) -> DataFrame:
    """Count leaders and replicas."""
    held = partitions.select("cluster", "topic", F.posexplode("replicas").alias("place", "broker"))
    return held.groupBy(*grain).agg(
        F.count_if(F.col("place") == 0).alias("leaders"), F.count("broker").alias("replicas")
    )


def _skew(name: str) -> Column:
    """Return max − min. A broker that holds nothing has no row: then the least is 0."""
    least = F.when(F.col("used") < F.col("room"), F.lit(0)).otherwise(F.col(f"{name}_min"))
    return F.col(f"{name}_max") - least


MOST_RULES = 100


def gather_findings(findings: DataFrame) -> AuditSummary:
    """Count every rule, and keep the most severe findings.

    In: `findings`; `subject` names the broker, rack or cluster of a finding without a topic.
    """
    counted = findings.groupBy("rule", "severity").agg(
        F.count("rule").alias("findings"), F.countDistinct("cluster").alias("clusters")
    )
    rules = counted.orderBy(_rank(), F.desc("findings"), "rule").limit(MOST_RULES).collect()
    order = (_rank(), F.col("rule"), F.col("cluster"), F.col("topic"))
    gravest = findings.orderBy(*order).limit(MOST_ROWS).collect()
    lines = tuple(_describe(row.asDict()) for row in gravest)
    return AuditSummary(
        tuple(RuleCount(**row.asDict()) for row in rules), Kept(lines, findings.count())
    )


def gather_next_leaders(balance: DataFrame) -> Kept[NextLeadersLine]:
    """Return the next leaders of clusters, the farthest from their bounds first."""
    counted = balance.where((F.col("kind") == "cluster") & F.col("next_leaders_most").isNotNull())
    names = [name for name in counted.columns if "next_leaders_" in name]
    beyond, rack_beyond = (
        F.col(f"{of}next_leaders_most") - F.col(f"{of}next_leaders_bound") for of in ("", "rack_")
    )
    order = (F.desc(F.greatest(beyond, rack_beyond)), "cluster")
    rows = counted.select("cluster", *names).orderBy(*order).limit(MOST_CLUSTERS).collect()
    lines = tuple(NextLeadersLine(*row) for row in rows)
    return Kept(lines, counted.count())


def _rank() -> Column:
    """The rank of a severity: 1 is the most severe; an unknown severity comes first."""
    return F.array_position(F.array(*(F.lit(str(s)) for s in Severity)), F.col("severity"))


def _describe(row: Mapping[str, Any]) -> FindingLine:
    texts = ("cluster", "topic", "rule", "severity", "evidence", "what", "way_out")
    found = {**row, "topic": row["topic"] or row["subject"]}
    return FindingLine(**{name: cut(_spell(found[name])) for name in texts})


def _spell(value: object) -> str:
    """Format evidence: a text, numbers by name, or nothing."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {held}" for name, held in sorted(value.items()))
    return "" if value is None else str(value)
