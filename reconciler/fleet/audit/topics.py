"""The input of checks: a row for each topic, and one for each cluster.

A topic's row has its counts, its configs and what its file says. Partitions are judged one by one
and counted into it: shuffled once, by cluster and topic; counting by broker, then by topic, follows
in place. A cluster's row has its brokers and racks, and what the estate expects of it: no secret is
among that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation
from pyspark.sql.types import ArrayType, StructField, StructType

from reconciler.fleet import READ
from reconciler.fleet.audit.balance import measure_loads, violates_racks
from reconciler.fleet.globs import translate_globs
from reconciler.fleet.tables import COUNT, FLAG, TEXT
from reconciler.spec import choose_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from reconciler.spec import ClusterEntry, Estate

MIN_IN_SYNC = "min.insync.replicas"


def describe_live_topics(
    state: Mapping[str, DataFrame], specs: DataFrame, clusters: DataFrame
) -> DataFrame:
    """Return a row for each live topic of the clusters that were read. Grain: a topic.

    `minded`: managed by the estate, so not internal, not ignored, and not owned by another.
    `managed`: in a file, to which owner, file, line and what starts with `wished_` belong. What is
    the cluster's alone is left out again, for these rows are kept. Shuffles: each table once, by
    cluster and topic.
    """
    live = state["topics"].select(*TOPIC, "internal")
    counted = count_partitions(state["partitions"], clusters)
    unwritable = _count_unwritable(state["partitions"], state["configs"], clusters)
    return (
        live.join(counted, [*TOPIC], how="inner")
        .join(_gather_configs(state["configs"]), [*TOPIC], how="left")
        .join(_select_wishes(specs), [*TOPIC], how="left")
        .join(unwritable, [*TOPIC], how="left")
        .join(F.broadcast(clusters), "cluster", how="inner")
        .withColumns({"min_in_sync": _min_in_sync("config"), "minded": _is_minded()})
        .withColumns({"managed": F.col("file").isNotNull(), **measure_loads()})
        .fillna(0, ["unwritable"])
        .drop("able", "rack_of", "racks", "defaults", "owned", "ignored", "excluded")
    )


def _gather_configs(configs: DataFrame) -> DataFrame:
    entry = F.struct("config", F.coalesce("value", F.lit("")).alias("value"))
    gathered = F.map_from_entries(F.collect_list(entry)).alias("config")
    return configs.groupBy(*TOPIC).agg(gathered)


def _select_wishes(specs: DataFrame) -> DataFrame:
    return specs.select(
        *TOPIC,
        "owner",
        "file",
        "line",
        F.col("replication_factor").alias("wished_replication"),
        F.col("config").alias("wished_config"),
        (F.get_json_object("spec", "$.rack_aware") == "false").alias("wished_rackless"),
    )


def _min_in_sync(own: str) -> Column:
    """Return the value in force: that of the map `own`, its cluster's, or Kafka's."""
    values = (F.try_element_at(F.col(name), F.lit(MIN_IN_SYNC)) for name in (own, "defaults"))
    return F.coalesce(*(value.try_cast("int") for value in values), F.lit(1))


def _is_minded() -> Column:
    owned, ignored = (F.regexp_like("topic", F.col(name)) for name in ("owned", "ignored"))
    return ~F.col("internal") & F.coalesce(owned, F.lit(True)) & ~F.coalesce(ignored, F.lit(False))  # noqa: FBT003


def _count_unwritable(partitions: DataFrame, configs: DataFrame, clusters: DataFrame) -> DataFrame:
    """Count, by topic, partitions with fewer replicas in sync than acks=all needs.

    Few partitions lack replicas, so this second pass costs little more than a scan.
    """
    own = _gather_configs(configs.where(F.col("config") == MIN_IN_SYNC))
    inherited = F.broadcast(clusters.select("cluster", "defaults"))
    short = select_under_replicated(partitions).join(own, [*TOPIC], how="left")
    below = short.join(inherited, "cluster", how="inner").where(
        F.col("in_sync") < _min_in_sync("config")
    )
    return below.groupBy(*TOPIC).agg(F.count("*").alias("unwritable"))


TOPIC = ("cluster", "topic")
JUDGED = ("under_replicated", "offline", "off_preferred", "moving", "rack_violations")


def count_partitions(partitions: DataFrame, clusters: DataFrame) -> DataFrame:
    """Count what is wrong with a topic's partitions, and what its brokers hold.

    Grain: a topic of a cluster that was read. `loads` is an array of {broker, leaders, replicas,
    size_bytes}; leaders are preferred ones.
    """
    placed = F.broadcast(clusters.select("cluster", "able", "rack_of", "racks"))
    judged = partitions.join(placed, "cluster", how="inner").select(
        *TOPIC, "replicas", "size_bytes", *(_count(name) for name in JUDGED)
    )
    apart = judged.repartition(*TOPIC).select("*", F.posexplode_outer("replicas"))
    return _gather_topics(_count_loads(apart))


def select_under_replicated(partitions: DataFrame) -> DataFrame:
    """Return cluster, topic and `in_sync` as a number, of led partitions that lack replicas."""
    short = partitions.where(_is_under_replicated() & (F.coalesce("leader", F.lit(0)) >= 0))
    return short.select(*TOPIC, F.array_size("in_sync").alias("in_sync"))


def _count(name: str) -> Column:
    judge = {
        "under_replicated": _is_under_replicated,
        "offline": _is_offline,
        "off_preferred": _is_off_preferred,
        "moving": lambda: F.col("moving"),
        "rack_violations": violates_racks,
    }[name]
    return F.coalesce(judge(), F.lit(False)).cast("int").alias(name)  # noqa: FBT003


def _is_under_replicated() -> Column:
    """Judge by the in-sync replicas; a moving partition has replicas that must still catch up."""
    return ~F.col("moving") & (F.array_size("in_sync") < F.array_size("replicas"))


def _is_offline() -> Column:
    return F.col("leader") < 0


def _is_off_preferred() -> Column:
    """Exempt a partition that moves or has no leader from the check of its leader."""
    elsewhere = F.col("leader") != F.try_element_at("replicas", F.lit(1))
    return ~F.col("moving") & (F.col("leader") >= 0) & elsewhere


def _count_loads(apart: DataFrame) -> DataFrame:
    """Count by broker. A partition itself is counted if its preferred leader is."""
    first = F.coalesce(F.col("pos"), F.lit(0)) == 0
    factor = F.size("replicas")
    return apart.groupBy(*TOPIC, F.col("col").alias("broker")).agg(
        F.count(F.when(first, 1)).alias("leaders"),
        F.count("col").alias("replicas"),
        F.sum("size_bytes").alias("size_bytes"),
        F.sum(F.when(first, F.col("size_bytes"))).alias("led_bytes"),
        F.min(factor).alias("least_replicas"),
        F.max(factor).alias("most_replicas"),
        *(F.sum(F.when(first, F.col(name))).alias(name) for name in JUDGED),
    )


def _gather_topics(loads: DataFrame) -> DataFrame:
    load = F.struct("broker", "leaders", "replicas", "size_bytes")
    return loads.groupBy(*TOPIC).agg(
        F.collect_list(load).alias("loads"),
        F.sum("leaders").alias("partitions"),
        F.sum("replicas").alias("replicas"),
        F.sum("led_bytes").alias("size_bytes"),
        F.min("least_replicas").alias("least_replicas"),
        F.max("most_replicas").alias("most_replicas"),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in JUDGED),
    )


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
    """Return whether a broker's rack is known; that of a removed broker may be unknown."""
    return F.col("rack").isNotNull() | F.col("alive")


def _place() -> Column:
    return F.struct(F.col("id"), F.coalesce("rack", F.lit("")).alias("rack"))


def _list_racks() -> Column:
    def room(rack: Column) -> Column:
        within = F.filter("able", lambda broker: F.try_element_at("rack_of", broker) == rack)
        return F.struct(rack.alias("rack"), F.size(within).alias("room"))

    return F.transform(F.array_sort(F.array_distinct(F.map_values("rack_of"))), room)


EXPECTATIONS = StructType(
    [
        StructField("cluster", TEXT),
        StructField("owned", TEXT),  # regular expressions of topic names
        StructField("ignored", TEXT),
        StructField("exempt", TEXT),  # from the policy's replication
        StructField("least_replication", COUNT),  # of the policy; null: it asks for none
        StructField("default_replication", COUNT),
        StructField("excluded", ArrayType(COUNT)),  # brokers that take nothing new
        StructField("weighted", FLAG),  # brokers are not meant to hold the same
    ]
)


def make_expectations(
    session: SparkSession, estate: Estate, clusters: Iterable[str] = ()
) -> DataFrame:
    """Return a row for each cluster of the estate. Grain: a cluster.

    `clusters` adds those of a collection that the estate does not have, without expectations.
    """
    known = {*estate.declared, *clusters} if estate.declared else {*estate.clusters, *clusters}
    rows = [_expect(estate, name) for name in sorted(known)]
    return session.createDataFrame(rows, EXPECTATIONS)


def _expect(estate: Estate, cluster: str) -> tuple[Any, ...]:
    entry = estate.clusters.get(cluster)
    if entry is None:
        return (cluster, translate_globs("*"), translate_globs(()), translate_globs(()), *_NOTHING)
    return (
        cluster,
        translate_globs(entry.owns or "*"),
        translate_globs(entry.ignore),
        translate_globs(entry.policy.exempt.get("policy-replication", ())),
        _least_replication(entry),
        _default_replication(estate, cluster),
        sorted(entry.exclude_brokers),
        bool(entry.capacity),
    )


_NOTHING: tuple[Any, ...] = (None, None, [], False)


def _least_replication(entry: ClusterEntry) -> int | None:
    bounds = entry.policy.replication_factor
    return None if bounds is None or bounds.least is None else int(bounds.least.number)


def _default_replication(estate: Estate, cluster: str) -> int | None:
    """Return the factor that topics inherit without a profile."""
    return estate.inherit(cluster, None, choose_catalogue(None)).replication_factor
