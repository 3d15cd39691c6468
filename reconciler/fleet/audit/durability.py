"""Is it safe: enough replicas, and writes that survive the loss of one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.audit.checks import Check, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column


def check_durability() -> Iterator[Check]:
    """Check topics. Those that are none of the estate's business are held to no policy of it."""
    yield from _check_asked()
    yield Check(
        "replication-single",
        F.col("minded") & (F.col("least_replicas") == 1) & (F.col("brokers") > 1),
        say("1 replica, on a cluster of %s brokers", "brokers"),
        F.col("partitions"),
        {"replication_factor": F.col("least_replicas"), "brokers": F.col("brokers")},
    )
    yield Check(
        "replication-uneven",
        (F.col("least_replicas") < F.col("most_replicas")) & (F.col("moving") == 0),
        say("partitions have between %s and %s replicas", "least_replicas", "most_replicas"),
        F.col("partitions"),
        {"least": F.col("least_replicas"), "most": F.col("most_replicas")},
    )
    yield _check_min_in_sync()


def _check_asked() -> Iterator[Check]:
    """Hold the factor against the policy; where that is silent, against file and defaults."""
    spared = _or_false(F.regexp_like("topic", F.col("exempt")))
    broken = F.col("minded") & ~spared & (F.col("least_replicas") < F.col("least_replication"))
    policy = F.col("least_replication")
    yield _compare("replication-below-policy", broken, policy, "the policy asks for")
    inherited = F.coalesce("wished_replication", "default_replication")
    below = F.col("minded") & (F.col("least_replicas") < inherited) & ~_or_false(broken)
    yield _compare("replication-below-default", below, inherited, "its file or the defaults give")


def _or_false(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))  # noqa: FBT003


def _compare(rule: str, broken: Column, asked: Column, whoever: str) -> Check:
    return Check(
        rule,
        broken,
        say(f"replication factor %s, where {whoever} %s", "least_replicas", asked),
        F.col("partitions"),
        {"replication_factor": F.col("least_replicas"), "asked": asked},
    )


def _check_min_in_sync() -> Check:
    """One replica alone is another rule's: there min.insync.replicas cannot be any lower."""
    needed, factor = F.col("min_in_sync"), F.col("least_replicas")
    return Check(
        "min-in-sync-equals-replication",
        F.col("minded") & (factor > 1) & (needed >= factor),
        say("min.insync.replicas %s of %s replicas", "min_in_sync", "least_replicas"),
        F.col("partitions"),
        {"min.insync.replicas": needed, "replication_factor": factor},
    )
