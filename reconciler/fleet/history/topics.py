"""A topic as each reading of its cluster found it, in one row: what events and growth rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

KEY = ("cluster", "topic", "number")


def describe_topics(state: Mapping[str, DataFrame], numbered: DataFrame) -> DataFrame:
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
