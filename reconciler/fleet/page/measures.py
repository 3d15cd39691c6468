"""Aggregates of partitions for the page, as DataFrames.

Leaders are preferred leaders, because placement decides these; elections change the others. As in
plans, internal topics do not count.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation


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
