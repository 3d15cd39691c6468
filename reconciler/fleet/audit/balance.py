"""How leaders and replicas lie: on topics, brokers, racks and clusters.

In: topics with their `loads`, as reconciler.fleet.audit.topics describes them. Out: `balance`.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import tables
from reconciler.fleet.audit.measures import mean_replicas, measure_loads

if TYPE_CHECKING:
    from pyspark.sql import Column

HELD = ("leaders", "replicas", "size_bytes")


def weigh_brokers(topics: DataFrame, brokers: DataFrame) -> DataFrame:
    """Return every broker of the clusters that were read, with what it holds of all topics.

    Grain: a broker; those that hold nothing are among them, and those that are only named by
    partitions. Shuffles: a row for each broker and task.
    """
    loads = topics.select("cluster", F.explode("loads").alias("load")).select("cluster", "load.*")
    held = loads.where(F.col("broker").isNotNull()).groupBy("cluster", "broker")
    sums = held.agg(*(F.sum(name).alias(name) for name in HELD))
    read = topics.select("cluster").distinct()
    known = brokers.join(read, "cluster", how="left_semi").withColumnRenamed("id", "broker")
    every = known.join(sums, ["cluster", "broker"], how="full")
    return every.fillna(0, ["leaders", "replicas"]).fillna(value=False, subset=["alive"])


def weigh_clusters(brokers: DataFrame, clusters: DataFrame, topics: DataFrame) -> DataFrame:
    """Return what `balance` says of clusters, and `mean_replicas` of brokers that may take more.

    In: `brokers` as weighed. Grain: a cluster.
    """
    load = F.struct("broker", *HELD)
    sums = [F.sum(name).alias(name) for name in HELD]
    gathered = brokers.groupBy("cluster").agg(F.collect_list(load).alias("loads"), *sums)
    judged = topics.groupBy("cluster").agg(F.sum("rack_violations").alias("rack_violations"))
    rows = gathered.join(clusters, "cluster", how="inner").join(judged, "cluster", how="inner")
    measured = {**measure_loads(), "mean_replicas": mean_replicas(), "subject": F.col("cluster")}
    return rows.withColumns(measured).withColumn("misplaced_share", _share("leaders"))


def weigh_racks(brokers: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return what `balance` says of racks, and `part`: the leaders that are a rack's, by brokers.

    Only brokers that may take something new count. Grain: a rack; brokers without one are none.
    """
    asked = clusters.select("cluster", "able", "weighted")
    able = brokers.join(asked, "cluster", how="inner").where(
        F.array_contains("able", F.col("broker"))
    )
    racks = able.where(F.col("rack").isNotNull()).groupBy("cluster", "rack", "weighted")
    rows = racks.agg(F.count("*").alias("brokers"), *(F.sum(name).alias(name) for name in HELD))
    all_racks = Window.partitionBy("cluster")
    each = F.sum("leaders").over(all_racks) / F.sum("brokers").over(all_racks)
    return rows.withColumn("part", each * F.col("brokers")).withColumn("subject", F.col("rack"))


def join_balance(
    topics: DataFrame, brokers: DataFrame, racks: DataFrame, clusters: DataFrame
) -> DataFrame:
    """Put the rows of all four kinds into the table `balance`."""
    shared = topics.withColumns(
        {"subject": F.col("topic"), "leaders": F.col("partitions")}
    ).withColumn("misplaced_share", _share("leaders"))
    named = brokers.withColumn("subject", F.col("broker").cast("string"))
    kinds = {"cluster": clusters, "topic": shared, "broker": named, "rack": racks}
    rows = [_select(kind, frame) for kind, frame in kinds.items()]
    union = partial(DataFrame.unionByName, allowMissingColumns=True)
    return reduce(union, rows).select(*tables.BALANCE.columns)


def _select(kind: str, rows: DataFrame) -> DataFrame:
    """Return the declared columns that rows of a kind have, in their declared types."""
    fields = [field for field in tables.BALANCE.schema if field.name in rows.columns]
    columns = [F.col(field.name).cast(field.dataType).alias(field.name) for field in fields]
    return rows.select(*columns, F.lit(kind).alias("kind"))


def _share(whole: str) -> Column:
    return F.coalesce(F.try_divide(F.col("misplaced"), F.col(whole)), F.lit(0.0))
