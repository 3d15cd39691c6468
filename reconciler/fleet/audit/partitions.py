"""Partitions judged one by one, and counted into a row a topic.

Shuffles: once, by cluster and topic; counting by broker, then by topic, follows in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.audit.measures import violates_racks

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TOPIC = ("cluster", "topic")
JUDGED = ("under_replicated", "offline", "off_preferred", "moving", "rack_violations")


def count_partitions(partitions: DataFrame, clusters: DataFrame) -> DataFrame:
    """Count what is wrong with a topic's partitions, and what its brokers hold.

    Grain: a topic of a cluster that was read. `loads` is an array of {broker, leaders, replicas,
    size_bytes}; leaders are preferred ones.
    """
    placed = F.broadcast(clusters.select("cluster", "able", "rack_of", "racks"))
    judged = partitions.join(placed, "cluster", how="inner").select(
        *TOPIC, "replicas", "size_bytes", *(_count(name) for name in JUDGED)
    )
    apart = judged.repartition(*TOPIC).select("*", F.posexplode_outer("replicas"))
    return _gather_topics(_count_loads(apart))


def select_under_replicated(partitions: DataFrame) -> DataFrame:
    """Return cluster, topic and `in_sync` as a number, of led partitions that lack replicas."""
    short = partitions.where(_is_under_replicated() & (F.coalesce("leader", F.lit(0)) >= 0))
    return short.select(*TOPIC, F.array_size("in_sync").alias("in_sync"))


def _count(name: str) -> Column:
    judge = {
        "under_replicated": _is_under_replicated,
        "offline": _is_offline,
        "off_preferred": _is_off_preferred,
        "moving": lambda: F.col("moving"),
        "rack_violations": violates_racks,
    }[name]
    return F.coalesce(judge(), F.lit(False)).cast("int").alias(name)  # noqa: FBT003


def _is_under_replicated() -> Column:
    """Judge by what is in sync; a partition that moves has replicas that are still to catch up."""
    return ~F.col("moving") & (F.array_size("in_sync") < F.array_size("replicas"))


def _is_offline() -> Column:
    return F.col("leader") < 0


def _is_off_preferred() -> Column:
    """A partition that moves, or that nobody leads, is not blamed for its leader."""
    elsewhere = F.col("leader") != F.try_element_at("replicas", F.lit(1))
    return ~F.col("moving") & (F.col("leader") >= 0) & elsewhere


def _count_loads(apart: DataFrame) -> DataFrame:
    """Count by broker. A partition itself is counted where its preferred leader is."""
    first = F.coalesce(F.col("pos"), F.lit(0)) == 0
    factor = F.size("replicas")
    return apart.groupBy(*TOPIC, F.col("col").alias("broker")).agg(
        F.count(F.when(first, 1)).alias("leaders"),
        F.count("col").alias("replicas"),
        F.sum("size_bytes").alias("size_bytes"),
        F.sum(F.when(first, F.col("size_bytes"))).alias("led_bytes"),
        F.min(factor).alias("least_replicas"),
        F.max(factor).alias("most_replicas"),
        *(F.sum(F.when(first, F.col(name))).alias(name) for name in JUDGED),
    )


def _gather_topics(loads: DataFrame) -> DataFrame:
    load = F.struct("broker", "leaders", "replicas", "size_bytes")
    return loads.groupBy(*TOPIC).agg(
        F.collect_list(load).alias("loads"),
        F.sum("leaders").alias("partitions"),
        F.sum("replicas").alias("replicas"),
        F.sum("led_bytes").alias("size_bytes"),
        F.min("least_replicas").alias("least_replicas"),
        F.max("most_replicas").alias("most_replicas"),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in JUDGED),
    )
