"""The readings of each cluster in their order, and a row for each topic of each reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import READ

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

WHEN = "yyyyMMdd'T'HHmmss'Z'"


def number_readings(readings: DataFrame, well: str = READ) -> DataFrame:
    """Number the successful readings of each cluster. Grain: a reading. Small.

    In: `collection`, `cluster`, `status`. Adds `number`, from 1, and the collections `previous`
    and `next` that read the cluster too.
    """
    order = Window.partitionBy("cluster").orderBy("collection")
    read = readings.where(F.col("status") == well).select("cluster", "collection")
    return read.withColumns(
        {
            "number": F.row_number().over(order),
            "previous": F.lag("collection").over(order),
            "next": F.lead("collection").over(order),
        }
    )


def beside_previous(rows: DataFrame, key: list[str], columns: list[str]) -> DataFrame:
    """Join rows of numbered readings with those of the previous reading. Shuffles: by `key`.

    Adds `was_X` for each column X; `stays` if the reading before has the key too; `appears` if it
    does not; `vanishes` if the reading after does not have the key.
    """
    order = Window.partitionBy(*key).orderBy("number")
    before, after = F.lag("number").over(order), F.lead("number").over(order)
    number = F.col("number")
    # Without a reading before, a row is not new; without one after, it has not vanished.
    stays = F.coalesce(before == number - 1, F.lit(False))  # noqa: FBT003
    followed = F.coalesce(after == number + 1, F.lit(False))  # noqa: FBT003
    return rows.withColumns(
        {
            "stays": stays,
            "appears": ~stays & F.col("previous").isNotNull(),
            "vanishes": ~followed & F.col("next").isNotNull(),
            **{f"was_{name}": F.lag(name).over(order) for name in columns},
        }
    )


def seconds_of(collection: str) -> Column:
    """Return the time of a collection. Units: seconds since 1970."""
    return F.unix_timestamp(F.to_timestamp(collection, WHEN))


KEY = ("cluster", "topic", "number")


def describe_read_topics(state: Mapping[str, DataFrame], numbered: DataFrame) -> DataFrame:
    """Return a row for each topic of each numbered reading.

    In: state tables of several collections, with their `collection`. Adds `placed`, an array of
    the replicas of each partition in order, and `config`, a map. Shuffles: each table once, by
    cluster and topic.
    """
    order = F.broadcast(numbered)
    tables = {
        name: state[name].join(order, ["cluster", "collection"], how="inner")
        for name in ("topics", "partitions", "configs")
    }
    row = F.struct("partition", "replicas")
    placed = tables["partitions"].repartition("cluster", "topic").groupBy(*KEY)
    gathered = placed.agg(
        F.transform(F.array_sort(F.collect_list(row)), lambda of: of["replicas"]).alias("placed"),
        F.sum("size_bytes").alias("size_bytes"),
    )
    entry = F.struct("config", F.coalesce("value", F.lit("(unknown)")).alias("value"))
    config = F.map_from_entries(F.collect_list(entry)).alias("config")
    topics = tables["topics"].select(*KEY, "collection", "previous", "next", "topic_id")
    return (
        topics.join(gathered, [*KEY], how="left")
        .join(tables["configs"].groupBy(*KEY).agg(config), [*KEY], how="left")
        .withColumn("partitions", F.coalesce(F.size("placed"), F.lit(0)))
        .withColumn("config", F.coalesce("config", F.create_map().cast("map<string,string>")))
    )
