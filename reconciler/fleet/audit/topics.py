"""Everything that checks need of a topic, in one row: counts, configs, what its file says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.audit.measures import measure_loads
from reconciler.fleet.audit.partitions import TOPIC, count_partitions, select_under_replicated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

MIN_IN_SYNC = "min.insync.replicas"


def describe_topics(
    state: Mapping[str, DataFrame], specs: DataFrame, clusters: DataFrame
) -> DataFrame:
    """Return a row for each live topic of the clusters that were read. Grain: a topic.

    `minded`: the estate's business, so neither internal nor ignored nor somebody else's.
    `managed`: in a file, to which owner, file, line and what starts with `wished_` belong.
    What is the cluster's alone is left out again, for these rows are kept. Shuffles: each table
    once, by cluster and topic.
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

    Few partitions lack replicas, so that this second look at them costs a scan and little more.
    """
    own = _gather_configs(configs.where(F.col("config") == MIN_IN_SYNC))
    inherited = F.broadcast(clusters.select("cluster", "defaults"))
    short = select_under_replicated(partitions).join(own, [*TOPIC], how="left")
    below = short.join(inherited, "cluster", how="inner").where(
        F.col("in_sync") < _min_in_sync("config")
    )
    return below.groupBy(*TOPIC).agg(F.count("*").alias("unwritable"))
