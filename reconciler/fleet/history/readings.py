"""The readings of each cluster in their order, and a row for each topic of each reading."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.lake.attempts import READ

WHEN = "yyyyMMdd'T'HHmmss'Z'"


def number_readings(readings: DataFrame) -> DataFrame:
    """Number the successful readings of each cluster. Grain: a reading. Small.

    In: every reading of several collections. Adds `number`, and the collections `previous` and
    `next` of the readings to compare with; consecutive numbers are compared. `source` is the name
    of the cluster in that collection: a renamed cluster has the last reading under its old name
    (`renamed_from`) before its first one. `rebuilt_from` is the id of another cluster that had the
    name before, in the collection `rebuilt_after`; these two are not compared.
    """
    order = Window.partitionBy("cluster").orderBy("collection")
    well = readings.where(F.col("status") == READ).select("cluster", "collection", "cluster_id")
    was_id, was = F.lag("cluster_id").over(order), F.lag("collection").over(order)
    # A reading without an id may be of the same cluster.
    differs = F.coalesce(F.col("was_id") != F.col("cluster_id"), F.lit(False))  # noqa: FBT003
    read = well.withColumns(
        {"was_id": was_id, "was": was, "then": F.lead("collection").over(order)}
    ).withColumn("is_other", F.col("was").isNull() | differs)
    named = read.join(F.broadcast(_find_renamed(read, readings)), ["cluster", "collection"], "left")
    # Each other cluster skips a number, so that it is not compared with the one before.
    skipped = F.sum(F.col("is_other").cast("int")).over(order)
    is_renamed, is_other = F.col("renamed_from").isNotNull(), F.col("is_other")
    is_rebuilt = is_other & ~is_renamed & F.col("was").isNotNull()
    numbered = named.select(
        "cluster",
        F.col("cluster").alias("source"),
        "collection",
        (F.row_number().over(order) + skipped).cast("int").alias("number"),
        F.when(~is_other, F.col("was")).otherwise(F.col("renamed_in")).alias("previous"),
        F.when(~F.lead("is_other").over(order), F.col("then")).alias("next"),
        "renamed_from",
        F.when(is_rebuilt, F.col("was_id")).alias("rebuilt_from"),
        F.when(is_rebuilt, F.col("was")).alias("rebuilt_after"),
        "cluster_id",
    )
    nothing = F.lit(None).cast("string")
    old = numbered.where("renamed_from IS NOT NULL").select(
        "cluster",
        F.col("renamed_from").alias("source"),
        F.col("previous").alias("collection"),
        (F.col("number") - 1).alias("number"),
        nothing.alias("previous"),
        F.col("collection").alias("next"),
        *(nothing.alias(name) for name in ("renamed_from", "rebuilt_from", "rebuilt_after")),
        "cluster_id",
    )
    return numbered.unionByName(old)


def _find_renamed(read: DataFrame, readings: DataFrame) -> DataFrame:
    """Return the readings whose cluster had another name before, and its last reading under that.

    A cluster that the collection still has under the old name, read or not, has two names.
    """
    first = read.where(F.col("is_other") & F.col("cluster_id").isNotNull())
    first = first.select("cluster", "collection", "cluster_id")
    last = read.select(
        F.col("cluster").alias("renamed_from"),
        F.col("collection").alias("renamed_in"),
        "then",
        "cluster_id",
    )
    is_before = F.col("renamed_in") < F.col("collection")
    is_last = F.col("then").isNull() | (F.col("then") >= F.col("collection"))
    is_another = F.col("renamed_from") != F.col("cluster")
    pairs = first.join(last, "cluster_id", "inner").where(is_before & is_last & is_another)
    there = readings.select(
        F.col("cluster").alias("renamed_from"),
        "collection",
        "status",
        F.col("cluster_id").alias("has_id"),
    )
    has_both = (F.col("status") != READ) | F.col("has_id").eqNullSafe(F.col("cluster_id"))
    seen = pairs.join(there, ["renamed_from", "collection"], "left")
    stays = F.max(F.coalesce(F.col("status").isNotNull() & has_both, F.lit(False)))  # noqa: FBT003
    moved = seen.groupBy("cluster", "collection", "renamed_from", "renamed_in").agg(
        stays.alias("stays")
    )
    latest = F.max(F.struct("renamed_in", "renamed_from")).alias("latest")
    chosen = moved.where("NOT stays").groupBy("cluster", "collection").agg(latest)
    return chosen.select("cluster", "collection", "latest.*")


def pick_rows(rows: DataFrame, numbered: DataFrame) -> DataFrame:
    """Return the rows of numbered readings, of renamed clusters under the new name as well.

    Adds `source`, the name in the collection, and `number`, `previous` and `next`.
    """
    told = numbered.select(
        F.col("cluster").alias("told"),
        F.col("source").alias("cluster"),
        *("collection", "number", "previous", "next"),
    )
    found = rows.join(F.broadcast(told), ["cluster", "collection"], how="inner")
    return found.withColumnsRenamed({"cluster": "source", "told": "cluster"})


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
    tables = {
        name: pick_rows(state[name], numbered) for name in ("topics", "partitions", "configs")
    }
    row = F.struct("partition", "replicas")
    placed = tables["partitions"].repartition("cluster", "topic").groupBy(*KEY)
    gathered = placed.agg(
        F.transform(F.array_sort(F.collect_list(row)), lambda of: of["replicas"]).alias("placed"),
        F.sum("size_bytes").alias("size_bytes"),
    )
    entry = F.struct("config", F.coalesce("value", F.lit("(unknown)")).alias("value"))
    config = F.map_from_entries(F.collect_list(entry)).alias("config")
    columns = ("source", "collection", "previous", "next", "topic_id")
    topics = tables["topics"].select(*KEY, *columns)
    return (
        topics.join(gathered, [*KEY], how="left")
        .join(tables["configs"].groupBy(*KEY).agg(config), [*KEY], how="left")
        .withColumn("partitions", F.coalesce(F.size("placed"), F.lit(0)))
        .withColumn("config", F.coalesce("config", F.create_map().cast("map<string,string>")))
    )
