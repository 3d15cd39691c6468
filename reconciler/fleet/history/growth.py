"""How topics and clusters grew. In: topics as `describe_topics` has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import tables
from reconciler.fleet.history.readings import seconds_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

AMOUNTS = ("topics", "partitions", "size_bytes")
DAY_S = 86_400


def measure_trend(topics: DataFrame, brokers: DataFrame, numbered: DataFrame) -> DataFrame:
    """Return what each reading of a cluster found, in sums. Out: `trend`."""
    key = ["cluster", "collection"]
    held = topics.groupBy(*key).agg(
        F.count("*").alias("topics"),
        F.sum("partitions").alias("partitions"),
        F.sum("size_bytes").alias("size_bytes"),
    )
    alive = brokers.groupBy(*key).agg(F.count(F.when(F.col("alive"), 1)).alias("brokers"))
    rows = numbered.join(alive, key, how="left").join(held, key, how="left")
    counted = rows.fillna(0, ["brokers", "topics", "partitions"])
    return _declare(counted.withColumnRenamed("collection", "seen"), tables.TREND)


def measure_growth(topics: DataFrame, trend: DataFrame) -> DataFrame:
    """Return the first and the last of every topic and of every cluster. Out: `growth`."""
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
    return _declare(compared.withColumn("bytes_per_day", _bytes_per_day()), tables.GROWTH)


def _bytes_per_day() -> Column:
    grown = F.col("size_bytes_last") - F.col("size_bytes_first")
    days = (seconds_of("last_seen") - seconds_of("first_seen")) / DAY_S
    return F.try_divide(grown, days)


def _declare(rows: DataFrame, table: tables.Table) -> DataFrame:
    return rows.select(*(F.col(f.name).cast(f.dataType).alias(f.name) for f in table.schema))
