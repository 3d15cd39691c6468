"""The growth of topics and clusters, and the duration of drift.

In: the rows of `describe_read_topics`; plans and their changes. The plans of each cluster are
numbered. A change in plans n, n + 1, … without a gap is one stretch of drift. A failed plan has no
number, so it ends no stretch.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import tables
from reconciler.fleet.history.readings import seconds_of
from reconciler.fleet.lake.attempts import PLANNED
from reconciler.model.health import PROBLEMS

AMOUNTS = ("topics", "partitions", "size_bytes")
DAY_S = 86_400


def measure_trend(
    topics: DataFrame,
    brokers: DataFrame,
    numbered: DataFrame,
    health: DataFrame,
    after: str | None = None,
) -> DataFrame:
    """Return the totals of each reading of a cluster since `after`. Out: `trend`.

    In: `health`, the rows of `count_health`, by collection.
    """
    key = ["cluster", "collection"]
    held = topics.groupBy(*key).agg(
        F.count("*").alias("topics"),
        F.sum("partitions").alias("partitions"),
        F.sum("size_bytes").alias("size_bytes"),
    )
    alive = brokers.groupBy(*key).agg(F.count(F.when(F.col("alive"), 1)).alias("brokers"))
    own = numbered.where(
        (F.col("source") == F.col("cluster")) & (F.col("collection") > (after or ""))
    )
    rows = own.select(*key).join(alive, key, how="left").join(held, key, how="left")
    rows = rows.join(health.select(*key, *PROBLEMS), key, how="left")
    counted = rows.fillna(0, ["brokers", "topics", "partitions"])
    return _declare(counted.withColumnRenamed("collection", "seen"), tables.TREND)


def measure_growth(topics: DataFrame, trend: DataFrame) -> DataFrame:
    """Return the first and the last size of every topic and of every cluster. Out: `growth`."""
    own = topics.where(F.col("source") == F.col("cluster"))
    each = own.withColumn("topics", F.lit(1)).withColumnRenamed("collection", "seen")
    whole = trend.withColumn("topic", F.lit(None).cast("string"))
    columns = ["cluster", "topic", "seen", *AMOUNTS]
    rows = each.select(columns).unionByName(whole.select(columns))
    ends = {
        f"{name}_{end}": F.col(name) for name in ("seen", *AMOUNTS) for end in ("first", "last")
    }
    named = {"seen_first": "first_seen", "seen_last": "last_seen"}
    return extend_growth(rows.withColumns(ends).withColumnsRenamed(named))


def extend_growth(*parts: DataFrame) -> DataFrame:
    """Return growth from the first of several parts to the last. In, out: `growth`."""
    columns = ["cluster", "topic", "first_seen", "last_seen"]
    columns += [f"{name}_{end}" for name in AMOUNTS for end in ("first", "last")]
    rows = reduce(DataFrame.unionByName, (part.select(columns) for part in parts))
    ends = {
        f"{name}_{end}": take(F.col(f"{name}_{end}"), F.col(f"{end}_seen"))
        for name in AMOUNTS
        for end, take in (("first", F.min_by), ("last", F.max_by))
    }
    compared = rows.groupBy("cluster", "topic").agg(
        F.min("first_seen").alias("first_seen"),
        F.max("last_seen").alias("last_seen"),
        *(column.alias(name) for name, column in ends.items()),
    )
    grown = F.col("size_bytes_last") - F.col("size_bytes_first")
    days = (seconds_of("last_seen") - seconds_of("first_seen")) / DAY_S
    # `try_divide` gives null for a single reading: it says nothing about growth.
    return _declare(compared.withColumn("bytes_per_day", F.try_divide(grown, days)), tables.GROWTH)


def _declare(rows: DataFrame, table: tables.LakeTable) -> DataFrame:
    return rows.select(*(F.col(f.name).cast(f.dataType).alias(f.name) for f in table.schema))


REMARK = "note"
KEY = ("cluster", "topic", "action")


def find_drift(plans: DataFrame, changes: DataFrame, pending: DataFrame | None = None) -> DataFrame:
    """Return stretches of drift. In: `plans` and `changes` of several collections. Out: `drift`.

    `pending` is what earlier plans left pending, as rows of `drift`: it goes on, or ends.
    Shuffles: the changes by cluster, topic and action.
    """
    order = Window.partitionBy("cluster").orderBy("collection")
    made = plans.where(F.col("status") == PLANNED).select("cluster", "collection")
    places = {"number": F.row_number().over(order), "next": F.lead("collection").over(order)}
    numbered = made.withColumns(places)
    wanted = changes.where(F.col("action") != REMARK)
    asked = wanted.join(F.broadcast(numbered), ["cluster", "collection"], how="inner").select(
        *KEY,
        *("steps", "number", "next", F.col("collection").alias("first_seen")),
        *(F.col("collection").alias("last_seen"), F.lit(1).alias("plans")),
    )
    if pending is not None:
        # As a plan before the first one: number 0.
        first = numbered.where("number = 1").select("cluster", F.col("collection").alias("next"))
        left = pending.select(*KEY, "steps", "first_seen", "last_seen", "plans")
        left = left.join(F.broadcast(first), "cluster", "left").withColumn("number", F.lit(0))
        asked = asked.unionByName(left)
    # The number of a plan, minus the number of the plans with this change so far, is constant as
    # long as no plan in between lacks the change: so it names the stretch.
    gap = F.col("number") - F.row_number().over(Window.partitionBy(*KEY).orderBy("number"))
    stretches = asked.withColumn("stretch", gap).groupBy(*KEY, "stretch")
    found = stretches.agg(
        F.max_by("steps", "number").alias("steps"),
        F.min("first_seen").alias("first_seen"),
        F.max("last_seen").alias("last_seen"),
        F.max_by("next", "number").alias("gone_in"),
        F.sum("plans").cast("int").alias("plans"),
    )
    until = F.coalesce(seconds_of("gone_in"), seconds_of("last_seen"))
    return found.withColumns(
        {"pending": F.col("gone_in").isNull(), "lasted_s": until - seconds_of("first_seen")}
    ).select(*tables.DRIFT.columns)
