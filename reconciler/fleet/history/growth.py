"""The growth of topics and clusters, and the duration of drift.

In: the rows of `describe_read_topics`; plans and their changes. The plans of each cluster are
numbered. A change in plans n, n + 1, … without a gap is one stretch of drift. A failed plan has no
number, so it ends no stretch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import PLANNED, tables
from reconciler.fleet.health import COUNTS
from reconciler.fleet.history.readings import number_readings, seconds_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AMOUNTS = ("topics", "partitions", "size_bytes")
DAY_S = 86_400


def measure_trend(
    topics: DataFrame, brokers: DataFrame, numbered: DataFrame, health: DataFrame
) -> DataFrame:
    """Return the totals of each reading of a cluster. In: `count_health` too. Out: `trend`."""
    key = ["cluster", "collection"]
    held = topics.groupBy(*key).agg(
        F.count("*").alias("topics"),
        F.sum("partitions").alias("partitions"),
        F.sum("size_bytes").alias("size_bytes"),
    )
    alive = brokers.groupBy(*key).agg(F.count(F.when(F.col("alive"), 1)).alias("brokers"))
    rows = numbered.join(alive, key, how="left").join(held, key, how="left")
    rows = rows.join(health.select(*key, *COUNTS), key, how="left")
    counted = rows.fillna(0, ["brokers", "topics", "partitions"])
    return _declare(counted.withColumnRenamed("collection", "seen"), tables.TREND)


def measure_growth(topics: DataFrame, trend: DataFrame) -> DataFrame:
    """Return the first and the last size of every topic and of every cluster. Out: `growth`."""
    each = topics.withColumn("topics", F.lit(1)).withColumnRenamed("collection", "seen")
    whole = trend.withColumn("topic", F.lit(None).cast("string"))
    of_topics = _compare_ends(each, ["cluster", "topic"])
    return of_topics.unionByName(_compare_ends(whole, ["cluster", "topic"]))


def _compare_ends(rows: DataFrame, key: list[str]) -> DataFrame:
    seen = F.col("seen")
    ends = {
        f"{name}_{end}": take(F.col(name), seen)
        for name in AMOUNTS
        for end, take in (("first", F.min_by), ("last", F.max_by))
    }
    compared = rows.groupBy(*key).agg(
        F.min(seen).alias("first_seen"),
        F.max(seen).alias("last_seen"),
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


def find_drift(plans: DataFrame, changes: DataFrame) -> DataFrame:
    """Return stretches of drift. In: `plans` and `changes` of several collections. Out: `drift`.

    Shuffles: the changes by cluster, topic and action.
    """
    numbered = number_readings(plans, well=PLANNED)
    wanted = changes.where(F.col("action") != REMARK)
    asked = wanted.join(F.broadcast(numbered), ["cluster", "collection"], how="inner")
    # The number of a plan, minus the number of the plans with this change so far, is constant as
    # long as no plan in between lacks the change: so it names the stretch.
    gap = F.col("number") - F.row_number().over(Window.partitionBy(*KEY).orderBy("number"))
    stretches = asked.withColumn("stretch", gap).groupBy(*KEY, "stretch")
    found = stretches.agg(
        F.max_by("steps", "number").alias("steps"),
        F.min("collection").alias("first_seen"),
        F.max("collection").alias("last_seen"),
        F.max_by("next", "number").alias("gone_in"),
        F.count("*").cast("int").alias("plans"),
    )
    until = F.coalesce(seconds_of("gone_in"), seconds_of("last_seen"))
    return found.withColumns(
        {"pending": F.col("gone_in").isNull(), "lasted_s": until - seconds_of("first_seen")}
    ).select(*tables.DRIFT.columns)
