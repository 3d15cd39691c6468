"""Next leaders of clusters: what one broker takes over if another one, or a rack, is lost.

The counts are those of reconciler.placement.next_leaders, but in SQL; a law holds the two equal.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

NEXT_LEADERS = (
    "next_leaders_most",
    "next_leaders_bound",
    "rack_next_leaders_most",
    "rack_next_leaders_bound",
)


def count_next_leaders(partitions: DataFrame, topics: DataFrame, clusters: DataFrame) -> DataFrame:
    """Count the most leaders that one broker takes over, and the least that is possible.

    Dead brokers lead nothing: the living replica behind one leads, or is next. Leaders on brokers
    that are not in `able`, and what these take over, are not counted, and neither are internal
    topics. The bound is for the leaders that the brokers and racks have: nothing is below their
    number, divided by that of the brokers that can take them over.
    In: the tables `partitions` and `topics`, and the rows of `describe_clusters`.
    Out: NEXT_LEADERS, and the worst losses as `worst` and `rack_worst`: {lost, broker, leaders}.
    Grain: a cluster with a next leader. Shuffles: a row for each pair of brokers and task, because
    pairs are counted where partitions are read.
    """
    internal = topics.where("internal").select("cluster", "topic")
    users = partitions.join(F.broadcast(internal), ["cluster", "topic"], how="left_anti")
    placed = F.broadcast(clusters.select("cluster", "able", "living", "rack_of"))
    living = F.filter("replicas", lambda broker: F.array_contains("living", broker))
    rows = users.join(placed, "cluster", how="inner").withColumn("row", living)
    leader, home = F.try_element_at("row", F.lit(1)), _rack_of(F.try_element_at("row", F.lit(1)))
    outside = F.filter("row", lambda broker: _rack_of(broker) != home)
    counted = rows.where(F.array_contains("able", leader)).select(
        "cluster",
        leader.alias("leader"),
        home.alias("rack"),
        _if_able(F.try_element_at("row", F.lit(2))).alias("following"),
        _if_able(F.try_element_at(outside, F.lit(1))).alias("beyond"),
        (F.size(outside) == F.size("row") - 1).alias("apart"),
    )
    kinds = ("cluster", "leader", "rack", "following", "beyond", "apart")
    pairs = counted.groupBy(*kinds).agg(F.count("*").alias("leaders"))
    by_broker = _measure(pairs, clusters, F.col("leader").cast("string"), "following")
    # The rack "" is that of brokers without one: they are not lost together.
    racked = pairs.where(F.col("rack") != "")
    by_rack = _measure(racked, clusters, F.col("rack"), "beyond")
    named = {name: f"rack_{name}" for name in ("worst", *NEXT_LEADERS[:2])}
    found = by_broker.join(by_rack.withColumnsRenamed(named), "cluster", how="full")
    return found.fillna(0, [*NEXT_LEADERS])


def _rack_of(broker: Column) -> Column:
    return F.try_element_at(F.col("rack_of"), broker)


def _if_able(broker: Column) -> Column:
    return F.when(F.array_contains("able", broker), broker)


def _measure(pairs: DataFrame, clusters: DataFrame, lost: Column, taker: str) -> DataFrame:
    """Return the worst loss of a kind, and its bound. Grain: a cluster."""
    taken = pairs.where(F.col(taker).isNotNull()).withColumns({"lost": lost, "taker": F.col(taker)})
    lines = taken.groupBy("cluster", "lost", "rack", "taker").agg(
        F.sum("leaders").alias("leaders"),
        F.sum(F.when(F.col("apart"), F.col("leaders"))).alias("apart"),
    )
    totals = lines.groupBy("cluster", "lost", "rack").agg(
        F.sum("leaders").alias("leaders"),
        F.coalesce(F.sum("apart"), F.lit(0)).alias("apart"),
        # The most leaders; of equals, the lowest id.
        F.max_by(
            F.struct("lost", F.col("taker").alias("broker"), "leaders"),
            F.struct("leaders", -F.col("taker")),
        ).alias("worst"),
    )
    sized = totals.join(F.broadcast(clusters.select("cluster", "able", "racks")), "cluster")
    within = F.filter("racks", lambda rack: rack["rack"] == F.col("rack"))
    outside = F.size("able") - F.try_element_at(within, F.lit(1))["room"]
    if taker == "beyond":
        bound = _divide_up("leaders", outside)
    else:
        # A row with no second replica in its leader's rack has its next leader in another rack.
        bound = F.greatest(_divide_up("leaders", F.size("able") - 1), _divide_up("apart", outside))
    return (
        sized.withColumn("bound", bound)
        .groupBy("cluster")
        .agg(
            F.max("worst.leaders").alias("next_leaders_most"),
            F.max("bound").alias("next_leaders_bound"),
            F.max_by("worst", F.struct("worst.leaders", "lost")).alias("worst"),
        )
    )


def _divide_up(leaders: str, brokers: Column) -> Column:
    return F.coalesce(F.ceil(F.try_divide(F.col(leaders), brokers)), F.lit(0)).cast("long")
