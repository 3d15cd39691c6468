"""Aggregates of partitions and findings for the page, as DataFrames.

Leaders are preferred leaders, because placement decides these; elections change the others. As in
plans, internal topics do not count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.errors import Severity
from reconciler.fleet.page.contents import (
    MOST_CLUSTERS,
    MOST_ROWS,
    AuditSummary,
    CauseCount,
    FindingLine,
    Kept,
    MatrixLine,
    NextLeadersLine,
    RuleCount,
    cut,
    say_value,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame


def select_user_partitions(partitions: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the partitions of topics that are not internal.

    Shuffles: none. Internal topics are few and are sent along.
    """
    internal = topics.where("internal").select("cluster", "topic")
    return partitions.join(F.broadcast(internal), ["cluster", "topic"], how="left_anti")


def count_loads(partitions: DataFrame) -> DataFrame:
    """Count the leaders and replicas of each broker.

    Grain: a broker that holds something. Out: cluster, broker, leaders, replicas, size_bytes.
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
    """Count leaders, replicas and bytes."""
    replica = F.posexplode("replicas").alias("place", "broker")
    held = partitions.select("cluster", "topic", "size_bytes", replica)
    return held.groupBy(*grain).agg(
        F.count_if(F.col("place") == 0).alias("leaders"),
        F.count("broker").alias("replicas"),
        F.sum("size_bytes").alias("size_bytes"),
    )


def _skew(name: str) -> Column:
    """Return max − min. A broker that holds nothing has no row: then the least is 0."""
    least = F.when(F.col("used") < F.col("room"), F.lit(0)).otherwise(F.col(f"{name}_min"))
    return F.col(f"{name}_max") - least


MOST_RULES = 100
MOST_MATRIX_ROWS = 150


def gather_findings(findings: DataFrame) -> AuditSummary:
    """Count every rule, and keep the most severe findings.

    In: `findings`; `subject` names the broker, rack or cluster of a finding without a topic.
    """
    counted = findings.groupBy("rule", "severity").agg(
        F.count("rule").alias("findings"), F.countDistinct("cluster").alias("clusters")
    )
    rules = counted.orderBy(_rank(), F.desc("findings"), "rule").limit(MOST_RULES).collect()
    ranked = "rank" in findings.columns
    order = (_rank(), F.col("rule"), F.col("cluster"), F.col("topic"))
    first = (F.asc_nulls_last("rank"),) if ranked else ()
    gravest = findings.orderBy(*first, *order).limit(MOST_ROWS).collect()
    lines = tuple(_describe(row.asDict()) for row in gravest)
    return AuditSummary(
        tuple(RuleCount(**row.asDict()) for row in rules),
        Kept(lines, findings.count()),
        _count_by_cluster(findings, [row["rule"] for row in rules]),
        _count_causes(findings) if ranked else (),
    )


def _count_by_cluster(findings: DataFrame, rules: Sequence[str]) -> Kept[MatrixLine]:
    """Count the findings of each cluster by rule, those with the most severe rules first."""
    counts = findings.groupBy("cluster", "rule").agg(F.count("rule").alias("found")).collect()
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for row in counts:
        found[row["cluster"]][row["rule"]] = row["found"]
    # The rules come with the most severe first: so do the clusters that break them most.
    order = {name: tuple(-of.get(rule, 0) for rule in rules) for name, of in found.items()}
    lines = (
        MatrixLine(name, sum(found[name].values()), found[name])
        for name in sorted(found, key=lambda name: (order[name], name))[:MOST_MATRIX_ROWS]
    )
    return Kept(tuple(lines), len(found))


def _count_causes(findings: DataFrame) -> tuple[CauseCount, ...]:
    """Count the findings of each cause, what an operator should do first at the top."""
    counted = (
        findings.where(F.col("cause").isNotNull())
        .groupBy("cause")
        .agg(
            F.min("rank").alias("rank"),
            F.count("cause").alias("findings"),
            F.countDistinct("cluster").alias("clusters"),
        )
    )
    rows = counted.orderBy("rank", F.desc("findings"), "cause").limit(MOST_RULES).collect()
    return tuple(CauseCount(**{**row.asDict(), "cause": cut(row["cause"])}) for row in rows)


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
    texts = (
        *("cluster", "topic", "rule", "severity", "evidence", "what", "way_out"),
        *("owner", "cause", "fixed_by"),
    )
    found = {**row, "topic": row["topic"] or row["subject"]}
    found["evidence"], found["what"] = _spell_values(row["evidence"] or {}, row["what"])
    said = {name: cut(_spell(found.get(name))) for name in texts}
    return FindingLine(**said, rank=row.get("rank"))


def _spell_values(evidence: Mapping[str, str], what: str) -> tuple[Mapping[str, str], str]:
    """Return evidence and message with readable values of the config that they are about."""
    key = evidence.get("key")
    if key is None:
        return {name: say_value(name, held) for name, held in evidence.items()}, what
    said = {
        name: say_value(key, held) if name in _VALUES else held for name, held in evidence.items()
    }
    for name in _VALUES:
        if name in evidence:
            what = re.sub(rf"\b{re.escape(evidence[name])}\b", lambda _: said[name], what)  # noqa: B023
    return said, what


_VALUES = ("value", "usual")
"""The evidence that holds values of the config named by `key`."""


def _spell(value: object) -> str:
    """Format evidence: a text, numbers by name, or nothing."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {held}" for name, held in sorted(value.items()))
    return "" if value is None else str(value)
