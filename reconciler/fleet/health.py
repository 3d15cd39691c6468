"""The health of clusters, counted from the state tables, as `reconciler.model.health` defines it.

A lake always knows who leads, and each dead broker in it holds replicas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.lake.attempts import READ
from reconciler.model.health import PROBLEMS, Fault
from reconciler.model.moves import MIN_INSYNC

FAULTS = tuple(map(str, Fault))
"""The faults of a partition, worst first: the columns of `find_unhealthy_topics`."""

BY_CLUSTER = ("cluster",)
BY_COLLECTION = ("collection", "cluster")


class Health(StrEnum):
    """The health of a cluster, worst first."""

    UNREAD = "unread"
    OFFLINE = "partitions offline"
    UNWRITABLE = "below min.insync.replicas"
    DEGRADED = "degraded"
    HEALTHY = "healthy"


def judge_health(row: Mapping[str, Any]) -> Health:
    """Return the health that a row of `count_health` shows. One fault is enough."""
    if row["status"] != READ:
        return Health.UNREAD
    if row["offline"]:
        return Health.OFFLINE
    if row["unwritable"]:
        return Health.UNWRITABLE
    return Health.DEGRADED if any(row[name] for name in PROBLEMS) else Health.HEALTHY


def count_health(
    state: Mapping[str, DataFrame],
    unhealthy: DataFrame | None = None,
    by: Sequence[str] = BY_CLUSTER,
) -> DataFrame:
    """Count the faults of each cluster, read or not. Grain: a reading. Small.

    In: the state tables; `unhealthy` are the rows of `find_unhealthy_topics`, where they are at
    hand. `by` is BY_COLLECTION where the tables hold several collections. Out: `by`, `status`,
    `brokers`, and PROBLEMS; all counts are null for a cluster that was not read.
    """
    topics = find_unhealthy_topics(state, by) if unhealthy is None else unhealthy
    faults = topics.groupBy(*by).agg(*(F.sum(name).alias(name) for name in FAULTS))
    down = ~_or_false(F.col("alive"))
    brokers = state["brokers"].groupBy(*by)
    failed = F.when(~down, F.array_size("failed_directories"))
    counted = brokers.agg(
        F.count("*").alias("brokers"),
        F.count_if(down).alias("brokers_down"),
        F.sum(failed).alias("directories_offline"),
    )
    readings = state["readings"].select(*by, "status")
    rows = readings.join(counted, [*by], how="left").join(faults, [*by], how="left")
    is_read = F.col("status") == READ
    amounts = {name: F.when(is_read, F.coalesce(name, F.lit(0))) for name in ("brokers", *PROBLEMS)}
    return rows.select(*by, "status", *(each.alias(name) for name, each in amounts.items()))


def find_unhealthy_topics(
    state: Mapping[str, DataFrame], by: Sequence[str] = BY_CLUSTER
) -> DataFrame:
    """Return the topics with a faulty partition. Grain: a topic.

    Out: `by`, `topic`, FAULTS, and `lagging`: the brokers whose replicas are not in sync, by id.
    Shuffles: faulty partitions only, by topic; they are few on most days.
    """
    key = [*by, "topic"]
    own = state["configs"].where(F.col("config") == MIN_INSYNC)
    own = own.select(*key, F.col("value").alias("own"))
    inherited = F.broadcast(state["readings"].select(*by, "defaults"))
    faulty = state["partitions"].where(is_offline() | lacks_replicas())
    judged = (
        faulty.join(own, key, how="left")
        .join(inherited, [*by], how="inner")
        .select(
            *key,
            is_offline().alias("offline"),
            (~is_offline() & is_below(min_in_sync(F.col("own")))).alias("unwritable"),
            is_under_replicated().alias("under_replicated"),
            F.array_except("replicas", "in_sync").alias("lagging"),
        )
    )
    any_fault = F.greatest(*FAULTS)
    lagging = F.array_sort(F.array_distinct(F.flatten(F.collect_list("lagging"))))
    counts = (F.count_if(name).alias(name) for name in FAULTS)
    return judged.where(any_fault).groupBy(*key).agg(*counts, lagging.alias("lagging"))


def is_offline() -> Column:
    """Return whether a partition has no leader. An unknown leader is no fault."""
    return _or_false(F.col("leader") < 0)


def is_under_replicated() -> Column:
    """Return whether a replica of a partition is not in sync."""
    # The new replicas of a moving partition are not in sync yet: this is no fault.
    return _or_false(~F.col("moving") & (F.array_size("in_sync") < F.array_size("replicas")))


def lacks_replicas() -> Column:
    """Return whether a replica of a partition is not in sync, be it a new one that copies."""
    return _or_false(F.array_size("in_sync") < _count_required())


def is_below(needed: Column) -> Column:
    """Return whether fewer replicas are in sync than writes with acks=all need."""
    return _or_false(F.array_size("in_sync") < F.least(needed, _count_required()))


def _count_required() -> Column:
    """Return the most replicas in sync that Kafka requires: the old ones of a move among them."""
    return F.array_size(F.array_union("replicas", "in_sync"))


def min_in_sync(own: Column) -> Column:
    """Return min.insync.replicas in force. `own` is the topic's value as text, null if not set.

    In: `defaults`, the config of the cluster.
    """
    default = F.try_element_at(F.col("defaults"), F.lit(MIN_INSYNC))
    return F.coalesce(own.try_cast("int"), default.try_cast("int"), F.lit(1))


def _or_false(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))  # noqa: FBT003
