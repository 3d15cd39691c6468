"""The distribution of leaders and replicas over topics, brokers, racks and clusters.

In: topics with their `loads`, as reconciler.fleet.audit.topics describes them. Out: `balance`.
Evenness is measured as in reconciler.placement, but in SQL; a law holds the two equal.
"""

from __future__ import annotations

from functools import partial, reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import tables
from reconciler.fleet.audit.next_leaders import NEXT_LEADERS

HELD = ("leaders", "replicas", "size_bytes")


def weigh_brokers(topics: DataFrame, brokers: DataFrame) -> DataFrame:
    """Return every broker of the clusters that were read, with its load of all topics.

    Grain: a broker, also one without replicas, and one that only partitions name. Shuffles: a row
    for each broker and task.
    """
    loads = topics.select("cluster", F.explode("loads").alias("load")).select("cluster", "load.*")
    held = loads.where(F.col("broker").isNotNull()).groupBy("cluster", "broker")
    sums = held.agg(*(F.sum(name).alias(name) for name in HELD))
    read = topics.select("cluster").distinct()
    # A full join: brokers do not list one that left the cluster, but partitions still name it.
    known = brokers.join(read, "cluster", how="left_semi").withColumnRenamed("id", "broker")
    every = known.join(sums, ["cluster", "broker"], how="full")
    return every.fillna(0, ["leaders", "replicas"]).fillna(value=False, subset=["alive"])


def weigh_clusters(
    brokers: DataFrame, clusters: DataFrame, topics: DataFrame, next_leaders: DataFrame
) -> DataFrame:
    """Return the columns of `balance` for clusters, and `mean_replicas` of the eligible brokers.

    In: `brokers` from `weigh_brokers`, the rows of `count_next_leaders`. Grain: a cluster.
    """
    load = F.struct("broker", *HELD)
    sums = [F.sum(name).alias(name) for name in HELD]
    gathered = brokers.groupBy("cluster").agg(F.collect_list(load).alias("loads"), *sums)
    judged = topics.groupBy("cluster").agg(F.sum("rack_violations").alias("rack_violations"))
    rows = gathered.join(clusters, "cluster", how="inner").join(judged, "cluster", how="inner")
    rows = rows.join(next_leaders, "cluster", how="left").fillna(0, [*NEXT_LEADERS])
    measured = {**measure_loads(), "mean_replicas": mean_replicas(), "subject": F.col("cluster")}
    return rows.withColumns(measured).withColumn("misplaced_share", _share("leaders"))


def weigh_racks(brokers: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return the columns of `balance` for racks, and `part`: the rack's fair share of leaders.

    The share follows the number of its brokers. Only eligible brokers count. Grain: a rack; brokers
    without a rack form none.
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


def measure_loads() -> dict[str, Column]:
    """Return the columns of `balance` that follow from `loads` over the brokers `able`."""
    leaders, replicas = _hold("leaders"), _hold("replicas")
    return {
        "brokers": F.size("able"),
        "leaders_least": _least(leaders),
        "leaders_most": _most(leaders),
        "replicas_least": _least(replicas),
        "replicas_most": _most(replicas),
        "misplaced": sum_misplaced(leaders),
    }


def mean_replicas() -> Column:
    """Return the mean replicas of `loads` per broker in `able`; null if there is no such broker."""
    return F.try_divide(_sum(_hold("replicas")), F.size("able"))


def sum_misplaced(leaders: Column) -> Column:
    """Count the partitions whose leader must move to make leaders even.

    Of D leaders on N brokers, each broker keeps D div N, and D mod N brokers keep one more.
    `leaders` omits brokers that lead nothing.
    """
    # The brokers with more than D div N keep the extra leaders, so that as few as possible move.
    total, brokers = _sum(leaders), F.size("able")
    even = F.floor(total / F.greatest(brokers, F.lit(1)))
    extra = total - even * brokers
    above = F.filter(leaders, lambda held: held > even)
    beyond = _sum(F.transform(above, lambda held: held - even))
    return (beyond - F.least(extra, F.size(above).cast("long"))).cast("long")


def violates_racks() -> Column:
    """Return whether the row's `replicas` are less spread over the racks than possible.

    They are if a rack holds two more than another rack with a free broker. A broker with an unknown
    rack, because it was removed, counts as if it were in the best rack.
    """
    placed = F.transform("replicas", lambda broker: F.try_element_at("rack_of", broker))
    known = F.filter(placed, lambda rack: rack.isNotNull())
    racks, used, replicas = F.size("racks"), F.size(F.array_distinct(known)), F.size(known)
    # Most rows skip the expensive comparison: each replica is in a rack of its own, or every rack
    # has one and one rack a second.
    even = (used == replicas) | ((used == racks) & (replicas == racks + 1))
    return F.when((racks > 1) & ~even, _is_lopsided(placed)).otherwise(F.lit(False))  # noqa: FBT003


def _is_lopsided(placed: Column) -> Column:
    def held(rack: Column) -> Column:
        return F.size(F.filter(placed, lambda other: other == rack))

    able = F.filter("replicas", lambda broker: F.array_contains("able", broker))
    taken = F.transform(able, lambda broker: F.try_element_at("rack_of", broker))
    free = F.filter(
        "racks",
        lambda rack: F.size(F.filter(taken, lambda other: other == rack["rack"])) < rack["room"],
    )
    levels = F.array_sort(F.transform(free, lambda rack: held(rack["rack"])))
    unknown = F.size(F.filter(placed, lambda rack: rack.isNull()))
    most = F.array_max(F.transform("racks", lambda rack: held(rack["rack"])))
    return most - F.coalesce(F.array_min(_fill(levels, unknown)), most) > 1


def _fill(levels: Column, units: Column) -> Column:
    """Raise the lowest of sorted levels by one, `units` times: replicas whose rack is unknown."""

    def raise_lowest(sorted_levels: Column, _: Column) -> Column:
        others = F.slice(sorted_levels, 2, F.size(sorted_levels))
        lowest = F.array_min(sorted_levels) + 1
        return F.array_sort(F.concat(others, F.array(lowest)))

    filled = F.aggregate(F.sequence(F.lit(1), units), levels, raise_lowest)
    return F.when((units > 0) & (F.size(levels) > 0), filled).otherwise(levels)


def _hold(name: str) -> Column:
    """Return what each broker in `able` holds; brokers that hold nothing are left out."""
    within = F.filter("loads", lambda load: F.array_contains("able", load["broker"]))
    return F.transform(within, lambda load: load[name])


def _least(held: Column) -> Column:
    empty = F.size(held) < F.size("able")
    return F.when(empty, F.lit(0)).otherwise(F.coalesce(F.array_min(held), F.lit(0))).cast("long")


def _most(held: Column) -> Column:
    return F.coalesce(F.array_max(held), F.lit(0)).cast("long")


def _sum(numbers: Column) -> Column:
    return F.aggregate(numbers, F.lit(0).cast("long"), lambda total, one: total + one)
