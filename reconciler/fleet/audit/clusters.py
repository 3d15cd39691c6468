"""What checks need of each cluster that was read: its brokers, its racks, what is asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import READ

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def describe_clusters(
    readings: DataFrame, brokers: DataFrame, expectations: DataFrame
) -> DataFrame:
    """Return a row for each cluster that was read. Grain: a cluster. Small: made to be broadcast.

    Adds `able`, the brokers that may take something new; `rack_of`, a map of those whose place is
    known; `racks`, an array of {rack, room}, room for how many of the able.
    """
    read = readings.where(F.col("status") == READ).select("cluster", "defaults")
    asked = read.join(expectations, "cluster", how="left")
    known = brokers.join(expectations.select("cluster", "excluded"), "cluster", how="left")
    gathered = known.groupBy("cluster").agg(
        F.array_sort(F.collect_list(F.when(_is_able(), F.col("id")))).alias("able"),
        F.map_from_entries(F.collect_list(F.when(_is_placed(), _place()))).alias("rack_of"),
    )
    return asked.join(gathered, "cluster", how="inner").withColumn("racks", _list_racks())


def _is_able() -> Column:
    excluded = F.coalesce(F.array_contains("excluded", F.col("id")), F.lit(False))  # noqa: FBT003
    return F.col("alive") & ~F.col("cordoned") & ~excluded


def _is_placed() -> Column:
    """Tell whether a broker's place is known; of one that is gone, it may not be."""
    return F.col("rack").isNotNull() | F.col("alive")


def _place() -> Column:
    return F.struct(F.col("id"), F.coalesce("rack", F.lit("")).alias("rack"))


def _list_racks() -> Column:
    def room(rack: Column) -> Column:
        within = F.filter("able", lambda broker: F.try_element_at("rack_of", broker) == rack)
        return F.struct(rack.alias("rack"), F.size(within).alias("room"))

    return F.transform(F.array_sort(F.array_distinct(F.map_values("rack_of"))), room)
