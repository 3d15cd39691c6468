"""The checks of moves: what a run left behind, what does not get on, and what should be empty."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.audit.rules import Check, apply_checks, say
from reconciler.fleet.audit.topics import TOPIC
from reconciler.model.cluster import RateSource, ThrottleSide


def check_throttles() -> Iterator[Check]:
    """Check topics for throttled replicas while nothing of them moves."""
    lists = {
        side.list_key: F.try_element_at("config", F.lit(side.list_key)) for side in ThrottleSide
    }
    said = F.concat_ws("; ", *(F.when(value != "", value) for value in lists.values()))
    yield Check(
        "throttle-left",
        (F.col("moving") == 0) & (said != ""),
        say("its replicas are throttled (%s), and none is under reassignment", said),
        F.col("partitions"),
        lists,
    )


def find_idle_rates(topics: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return a finding for each cluster with rates left over while nothing moves. Out: `findings`.

    Left over are the rates that `moves status` names: of single brokers, and a cluster default with
    the mark of moves (`DefaultRate`). Another default, and a rate in server.properties, are to
    stay. Shuffles: a row for each cluster and task.
    """
    moving = topics.groupBy("cluster").agg(F.sum("moving").alias("moving"))
    leader, follower = map(_find_default, ThrottleSide)
    marked = clusters.withColumn("marked", follower == leader + (leader > 0).cast("long"))
    left = F.filter(
        "throttle_rates",
        lambda rate: (
            (rate["source"] == RateSource.BROKER)
            | ((rate["source"] == RateSource.CLUSTER_DEFAULT) & F.col("marked"))
        ),
    )
    rated = marked.withColumn("left_over", left).where(F.size("left_over") > 0)
    rated = rated.join(moving, "cluster", how="inner")
    brokers = F.array_distinct(F.transform("left_over", lambda rate: rate["broker"]))
    lowest = F.array_min(F.transform("left_over", lambda rate: rate["bytes_per_s"]))
    check = Check(
        "throttle-rate-left",
        F.col("moving") == 0,
        say("%s of its brokers limit replication, and nothing moves", F.size(brokers)),
        F.size(brokers),
        {"brokers": F.size(brokers), "lowest_bytes_per_s": lowest},
        subject="cluster",
    )
    return apply_checks(rated, [check])


def _find_default(side: ThrottleSide) -> Column:
    """Return the cluster default of one side; null if there is none."""
    rates = F.filter(
        "throttle_rates",
        lambda rate: (rate["side"] == side) & (rate["source"] == RateSource.CLUSTER_DEFAULT),
    )
    return F.array_min(F.transform(rates, lambda rate: rate["bytes_per_s"]))


def find_stalled(
    topics: DataFrame, partitions: DataFrame, earlier: DataFrame, since: str
) -> DataFrame:
    """Return a finding for each topic whose partitions move since an earlier collection, or longer.

    In: `partitions` of both collections, and the name of the earlier one. A partition counts if it
    moves to the same replicas in both. Out: `findings`. Shuffles: the moving partitions.
    """
    keys = [*TOPIC, "partition", "replicas"]
    now, then = (rows.where("moving").select(*keys) for rows in (partitions, earlier))
    counted = now.join(then, keys, how="left_semi").groupBy(*TOPIC)
    stalled = counted.agg(F.count("*").alias("stalled"))
    check = Check(
        "move-stalled",
        F.col("stalled") > 0,
        say(
            "%s of %s partitions are under reassignment since %s or longer",
            "stalled",
            "partitions",
            F.lit(since),
        ),
        F.col("stalled"),
        {"since": F.lit(since), "partitions": F.col("partitions")},
    )
    return apply_checks(topics.join(stalled, [*TOPIC], how="inner"), [check])


def check_drains() -> Iterator[Check]:
    """Check brokers that are to be empty. In: as `check_brokers`, with `drained` of the estate."""
    drained = F.array_contains("drained", F.col("broker"))
    yield _check_broker(
        "drain-unfinished",
        drained & (F.col("replicas") > 0),
        say("broker %s must be empty, and holds %s replicas", "broker", "replicas"),
    )
    # The estate says nothing of a cluster that it does not have: null is not broken.
    yield _check_broker(
        "cordon-left",
        ~drained & F.col("alive") & F.col("cordoned"),
        say("broker %s is cordoned, and drain_brokers does not name it", "broker"),
    )


def _check_broker(rule: str, broken: Column, what: Column) -> Check:
    replicas = F.col("replicas")
    return Check(rule, broken, what, replicas, {"replicas": replicas}, subject="broker")
