"""The health of clusters, counted from the state tables: one definition for every job.

Counts are of all topics, internal ones too. A count is about partitions, except `brokers_down` and
`directories_offline`, the log directories that have failed on living brokers:

- `offline`: no leader, so no reads and no writes;
- `unwritable`: a leader, and fewer replicas in sync than min.insync.replicas: writes with acks=all
  fail. The value of the topic counts, else the default of its cluster, else Kafka's 1;
- `under_replicated`: a replica is not in sync, also where one of the two above holds. New replicas
  of a partition that moves do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.lake.attempts import READ

MIN_IN_SYNC = "min.insync.replicas"
FAULTS = ("offline", "unwritable", "under_replicated")
"""The faults of a partition, worst first: the columns of `find_unhealthy_topics`."""

COUNTS = (*FAULTS, "brokers_down", "directories_offline")
"""The columns of `count_health` that are 0 on a healthy cluster."""

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
    rest = ("under_replicated", "brokers_down", "directories_offline")
    return Health.DEGRADED if any(row[name] for name in rest) else Health.HEALTHY


def count_health(
    state: Mapping[str, DataFrame],
    unhealthy: DataFrame | None = None,
    by: Sequence[str] = BY_CLUSTER,
) -> DataFrame:
    """Count the faults of each cluster, read or not. Grain: a reading. Small.

    In: the state tables; `unhealthy` are the rows of `find_unhealthy_topics`, where they are at
    hand. `by` is BY_COLLECTION where the tables hold several collections. Out: `by`, `status`,
    `brokers`, and COUNTS; all counts are null for a cluster that was not read.
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
    amounts = {name: F.when(is_read, F.coalesce(name, F.lit(0))) for name in ("brokers", *COUNTS)}
    return rows.select(*by, "status", *(each.alias(name) for name, each in amounts.items()))


def find_unhealthy_topics(
    state: Mapping[str, DataFrame], by: Sequence[str] = BY_CLUSTER
) -> DataFrame:
    """Return the topics with a faulty partition. Grain: a topic.

    Out: `by`, `topic`, FAULTS, and `lagging`: the brokers whose replicas are not in sync, by id.
    Shuffles: faulty partitions only, by topic; they are few on most days.
    """
    key = [*by, "topic"]
    own = state["configs"].where(F.col("config") == MIN_IN_SYNC)
    own = own.select(*key, F.col("value").alias("own"))
    inherited = F.broadcast(state["readings"].select(*by, "defaults"))
    faulty = state["partitions"].where(is_offline() | is_under_replicated())
    in_sync = F.array_size("in_sync")
    judged = (
        faulty.join(own, key, how="left")
        .join(inherited, [*by], how="inner")
        .select(
            *key,
            is_offline().alias("offline"),
            (is_under_replicated() & ~is_offline() & (in_sync < min_in_sync(F.col("own")))).alias(
                "unwritable"
            ),
            is_under_replicated().alias("under_replicated"),
            F.array_except("replicas", "in_sync").alias("lagging"),
        )
    )
    lagging = F.array_sort(F.array_distinct(F.flatten(F.collect_list("lagging"))))
    counts = (F.count_if(name).alias(name) for name in FAULTS)
    return judged.groupBy(*key).agg(*counts, lagging.alias("lagging"))


def is_offline() -> Column:
    """Return whether a partition has no leader. An unknown leader is no fault."""
    return _or_false(F.col("leader") < 0)


def is_under_replicated() -> Column:
    """Return whether a replica of a partition is not in sync."""
    # The new replicas of a moving partition are not in sync yet: this is no fault.
    return _or_false(~F.col("moving") & (F.array_size("in_sync") < F.array_size("replicas")))


def min_in_sync(own: Column) -> Column:
    """Return min.insync.replicas in force. `own` is the topic's value as text, null if not set.

    In: `defaults`, the config of the cluster.
    """
    default = F.try_element_at(F.col("defaults"), F.lit(MIN_IN_SYNC))
    return F.coalesce(own.try_cast("int"), default.try_cast("int"), F.lit(1))


def _or_false(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))  # noqa: FBT003
