"""The input of checks: a row for each topic, and one for each cluster.

A topic's row has its counts, its configs and the values of its file. Partitions are checked one by
one and counted into it: shuffled once, by cluster and topic; counting by broker, then by topic,
follows in place. A cluster's row has its brokers, its racks and the expectations of the estate,
without any secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from reconciler.changes.due import RULES
from reconciler.fleet.audit.balance import measure_loads, violates_racks
from reconciler.fleet.globs import translate_globs
from reconciler.fleet.health import (
    is_below,
    is_offline,
    is_under_replicated,
    lacks_replicas,
    min_in_sync,
)
from reconciler.fleet.lake.attempts import READ
from reconciler.fleet.tables import COUNT, FLAG, SHARE, TEXT
from reconciler.model.moves import MIN_INSYNC, LoadKind
from reconciler.spec.configs import choose_catalogue
from reconciler.spec.estate import Estate

UNCLEAN = "unclean.leader.election.enable"


def describe_live_topics(
    state: Mapping[str, DataFrame], specs: DataFrame, clusters: DataFrame
) -> DataFrame:
    """Return a row for each live topic of the clusters that were read. Grain: a topic.

    `in_scope`: in the scope of the estate, so not internal, not ignored, and not owned by another.
    `managed`: in a file, which gives owner, file, line and the columns `wished_…`. Columns of the
    cluster are dropped, because these rows are kept. Shuffles: each table once, by cluster and
    topic.
    """
    live = state["topics"].select(*TOPIC, "internal")
    counted = count_partitions(state["partitions"], clusters)
    unwritable = _count_unwritable(state["partitions"], state["configs"], clusters)
    wishes = specs.select(
        *TOPIC,
        "owner",
        "file",
        "line",
        F.col("replication_factor").alias("wished_replication"),
        F.col("config").alias("wished_config"),
        (F.get_json_object("spec", "$.rack_aware") == "false").alias("wished_rackless"),
    )
    in_scope = ~F.col("internal") & is_in_scope()
    return (
        live.join(counted, [*TOPIC], how="inner")
        .join(_gather_configs(state["configs"]), [*TOPIC], how="left")
        .join(wishes, [*TOPIC], how="left")
        .join(unwritable, [*TOPIC], how="left")
        .join(F.broadcast(clusters), "cluster", how="inner")
        .withColumns({"min_in_sync": _min_in_sync("config"), "in_scope": in_scope})
        .withColumns({"unclean": in_force(UNCLEAN), "retained": _retained_bytes()})
        .withColumns({"managed": F.col("file").isNotNull(), **measure_loads()})
        .fillna(0, ["unwritable"])
        .drop("able", "living", "rack_of", "racks", "defaults", "owned", "ignored", "excluded")
        .drop("drained", "by_service", "throttle_rates", "free_of", "stage")
        .drop("read_at", "spared_expired", "spared_idle", "aims", "within_percent", "capacity")
    )


def is_in_scope() -> Column:
    """Return whether the estate owns the row's topic and does not ignore it."""
    owned, ignored = (F.regexp_like("topic", F.col(name)) for name in ("owned", "ignored"))
    return F.coalesce(owned, F.lit(True)) & ~_or_false(ignored)  # noqa: FBT003


def _gather_configs(configs: DataFrame) -> DataFrame:
    entry = F.struct("config", F.coalesce("value", F.lit("")).alias("value"))
    gathered = F.map_from_entries(F.collect_list(entry)).alias("config")
    return configs.groupBy(*TOPIC).agg(gathered)


def _or_false(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))  # noqa: FBT003


def in_force(key: str, own: str = "config") -> Column:
    """Return the value of a config: of the map `own`, else of its cluster, else null."""
    return F.coalesce(*(F.try_element_at(F.col(name), F.lit(key)) for name in (own, "defaults")))


def _min_in_sync(own: str) -> Column:
    """Return the value in force, from the map `own` of a topic."""
    return min_in_sync(F.try_element_at(F.col(own), F.lit(MIN_INSYNC)))


def _retained_bytes() -> Column:
    """Return the bytes that a partition may hold by its retention.bytes; null: no limit."""
    most = in_force("retention.bytes").try_cast("long")
    deletes = F.coalesce(in_force("cleanup.policy"), F.lit("delete")).contains("delete")
    return F.when(deletes & (most >= 0), most)


def _count_unwritable(partitions: DataFrame, configs: DataFrame, clusters: DataFrame) -> DataFrame:
    """Count, by topic, partitions with fewer replicas in sync than acks=all needs.

    Few partitions lack replicas, so this second pass costs little more than a scan.
    """
    own = _gather_configs(configs.where(F.col("config") == MIN_INSYNC))
    inherited = F.broadcast(clusters.select("cluster", "defaults"))
    short = select_incomplete(partitions).join(own, [*TOPIC], how="left")
    below = short.join(inherited, "cluster", how="inner").where(is_below(_min_in_sync("config")))
    return below.groupBy(*TOPIC).agg(F.count("*").alias("unwritable"))


TOPIC = ("cluster", "topic")
JUDGED = ("under_replicated", "offline", "off_preferred", "moving", "rack_violations")
"""The faults of a partition that are counted by topic."""


def count_partitions(partitions: DataFrame, clusters: DataFrame) -> DataFrame:
    """Count the faults of a topic's partitions, and what its brokers hold.

    Grain: a topic of a cluster that was read. `loads` is an array of {broker, leaders, replicas,
    size_bytes}; leaders are preferred ones. `largest_bytes` and `smallest_bytes` are those of
    partitions.
    """
    moving, led = F.col("moving"), F.col("leader") >= 0
    elsewhere = F.col("leader") != F.try_element_at("replicas", F.lit(1))
    faults = {
        "under_replicated": is_under_replicated(),
        "offline": is_offline(),
        # While a partition moves, its first replica may still copy, and cannot lead yet.
        "off_preferred": ~moving & led & elsewhere,
        "moving": moving,
        "rack_violations": violates_racks(),
    }
    counts = [_or_false(faults[name]).cast("int").alias(name) for name in JUDGED]
    placed = F.broadcast(clusters.select("cluster", "able", "rack_of", "racks"))
    judged = partitions.join(placed, "cluster", how="inner").select(
        *TOPIC, "replicas", "size_bytes", *counts
    )
    # One shuffle, by topic, serves both groups: by broker, and then by topic.
    apart = judged.repartition(*TOPIC).select("*", F.posexplode_outer("replicas"))
    # A partition is now one row per replica; it is counted in the row of its preferred leader.
    first, factor = F.coalesce(F.col("pos"), F.lit(0)) == 0, F.size("replicas")
    loads = apart.groupBy(*TOPIC, F.col("col").alias("broker")).agg(
        F.count(F.when(first, 1)).alias("leaders"),
        F.count("col").alias("replicas"),
        F.sum("size_bytes").alias("size_bytes"),
        F.sum(F.when(first, F.col("size_bytes"))).alias("led_bytes"),
        F.min(factor).alias("least_replicas"),
        F.max(factor).alias("most_replicas"),
        F.max("size_bytes").alias("largest_bytes"),
        F.min("size_bytes").alias("smallest_bytes"),
        *(F.sum(F.when(first, F.col(name))).alias(name) for name in JUDGED),
    )
    load = F.struct("broker", "leaders", "replicas", "size_bytes")
    return loads.groupBy(*TOPIC).agg(
        F.collect_list(load).alias("loads"),
        F.sum("leaders").alias("partitions"),
        F.sum("replicas").alias("replicas"),
        F.sum("led_bytes").alias("size_bytes"),
        F.min("least_replicas").alias("least_replicas"),
        F.max("most_replicas").alias("most_replicas"),
        F.max("largest_bytes").alias("largest_bytes"),
        F.min("smallest_bytes").alias("smallest_bytes"),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in JUDGED),
    )


def select_incomplete(partitions: DataFrame) -> DataFrame:
    """Return cluster, topic, `replicas` and `in_sync` of led partitions that lack replicas."""
    return partitions.where(lacks_replicas() & ~is_offline()).select(*TOPIC, "replicas", "in_sync")


def describe_clusters(
    readings: DataFrame, brokers: DataFrame, expectations: DataFrame
) -> DataFrame:
    """Return a row for each cluster that was read. Grain: a cluster. Small: made to be broadcast.

    Adds `able`, the brokers that are eligible for new replicas; `living`, those alive; `rack_of`,
    the rack by broker; `free_of`, the free bytes of its disks; `racks`, an array of {rack, room},
    where `room` is the number of its eligible brokers.
    """
    read = readings.where(F.col("status") == READ)
    read = read.select("cluster", "defaults", "throttle_rates", "read_at")
    asked = read.join(expectations, "cluster", how="left")
    known = brokers.join(expectations.select("cluster", "excluded"), "cluster", how="left")
    excluded = _or_false(F.array_contains("excluded", F.col("id")))
    is_able = F.col("alive") & ~F.col("cordoned") & ~excluded
    # A broker that is not alive does not report its rack: then the rack is unknown, not none.
    is_placed = F.col("rack").isNotNull() | F.col("alive")
    place = F.struct(F.col("id"), F.coalesce("rack", F.lit("")).alias("rack"))
    # A disk of unknown size makes the free bytes of its broker unknown: they are left out.
    usable = F.transform("log_directories", lambda directory: directory["usable_bytes"])
    free = F.aggregate(usable, F.lit(0).cast("long"), lambda total, one: total + one)
    room_left = F.struct(F.col("id"), free.alias("free"))
    gathered = known.groupBy("cluster").agg(
        F.array_sort(F.collect_list(F.when(is_able, F.col("id")))).alias("able"),
        F.collect_list(F.when(F.col("alive"), F.col("id"))).alias("living"),
        F.map_from_entries(F.collect_list(F.when(is_placed, place))).alias("rack_of"),
        F.map_from_entries(F.collect_list(F.when(free.isNotNull(), room_left))).alias("free_of"),
    )

    def room(rack: Column) -> Column:
        within = F.filter("able", lambda broker: F.try_element_at("rack_of", broker) == rack)
        return F.struct(rack.alias("rack"), F.size(within).alias("room"))

    racks = F.transform(F.array_sort(F.array_distinct(F.map_values("rack_of"))), room)
    return asked.join(gathered, "cluster", how="inner").withColumn("racks", racks)


EXPECTATIONS = StructType(
    [
        StructField("cluster", TEXT),
        StructField("owned", TEXT),  # regular expressions of topic names
        StructField("ignored", TEXT),
        StructField("exempt", TEXT),  # from the policy's replication
        StructField("least_replication", COUNT),  # of the policy; null: it asks for none
        StructField("default_replication", COUNT),
        StructField("excluded", ArrayType(COUNT)),  # brokers that take nothing new
        StructField("drained", ArrayType(COUNT)),  # brokers that are to be empty
        StructField("by_service", FLAG),  # the brokers place replicas, and no plan moves them
        StructField("weighted", FLAG),  # brokers are not meant to hold the same number
        StructField("aims", ArrayType(TEXT)),  # the loads that a balance aims at: balance.by
        StructField("within_percent", SHARE),  # how far from its share a broker may be
        StructField("capacity", MapType(COUNT, COUNT)),  # by broker
        StructField("spared_expired", TEXT),  # exempt from topic-expired
        StructField("spared_idle", TEXT),
        StructField("stage", COUNT),  # null: the estate has no stages, or the cluster is in none
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
    bounds = entry.policy.replication_factor
    baseline = entry.policy.baseline.values if entry.policy.baseline else ()
    older = (str(broken.who) for broken in baseline if broken.rule == "policy-replication")
    return (
        cluster,
        translate_globs(entry.owns or "*"),
        translate_globs(entry.ignore),
        translate_globs([*entry.policy.exempt.get("policy-replication", ()), *older]),
        None if bounds is None or bounds.least is None else int(bounds.least.number),
        # For topics without a file: the factor that a topic without a profile inherits.
        estate.inherit(cluster, None, choose_catalogue(None)).replication_factor,
        sorted(entry.exclude_brokers),
        sorted(entry.drain_brokers),
        bool(entry.why_no_rows),
        bool(entry.capacity) or LoadKind.COUNT not in entry.balance.by,
        [*map(str, entry.balance.by)],
        float(entry.balance.within_percent),
        dict(entry.capacity),
        *(translate_globs(entry.policy.exempt.get(rule, ())) for rule in RULES),
        next((n for n, of in enumerate(estate.stages, 1) if estate.staged and cluster in of), None),
    )


_NOTHING: tuple[Any, ...] = (None, None, [], None, False, False, *(None,) * 6)
"""The last columns of EXPECTATIONS for a cluster that the estate does not have."""
