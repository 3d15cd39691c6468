"""Is it well: partitions without leaders, replicas out of sync, leaders and brokers astray."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import READ
from reconciler.fleet.audit.checks import Check, say

if TYPE_CHECKING:
    from collections.abc import Iterator

_COUNTED = {
    "partition-offline": ("offline", "%s of %s partitions have no leader"),
    "partition-under-replicated": (
        "under_replicated",
        "%s of %s partitions have replicas that are not in sync",
    ),
    "partition-moving": ("moving", "%s of %s partitions are under reassignment"),
    "leader-not-preferred": (
        "off_preferred",
        "%s of %s partitions are led by another than their preferred replica",
    ),
}


def check_health() -> Iterator[Check]:
    """Check topics."""
    for rule, (name, sentence) in _COUNTED.items():
        count = F.col(name)
        evidence = {name: count, "partitions": F.col("partitions")}
        yield Check(rule, count > 0, say(sentence, name, "partitions"), count, evidence)
    yield _check_unwritable()


def check_brokers() -> Iterator[Check]:
    """Check brokers. In: what each `broker` holds, replicas of internal topics among them."""
    yield Check(
        "broker-gone",
        ~F.col("alive") & (F.col("replicas") > 0),
        say("broker %s is not alive and holds %s replicas", "broker", "replicas"),
        F.col("replicas"),
        {"replicas": F.col("replicas"), "rack": F.col("rack")},
        subject="broker",
    )


def check_readings() -> Iterator[Check]:
    """Check what a collection says of its clusters. In: `readings`."""
    yield Check(
        "cluster-unread",
        F.col("status") != READ,
        F.coalesce("error", "status"),
        evidence={"status": F.col("status"), "read_ms": F.col("read_ms")},
        subject="cluster",
    )


def _check_unwritable() -> Check:
    sentence = "%s of %s partitions take no writes with acks=all: fewer than %s replicas in sync"
    return Check(
        "partition-unwritable",
        F.col("unwritable") > 0,
        say(sentence, "unwritable", "partitions", "min_in_sync"),
        F.col("unwritable"),
        {name: F.col(name) for name in ("unwritable", "partitions", "min_in_sync")},
    )
