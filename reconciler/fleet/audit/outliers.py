"""Is it like its peers: configs that differ from the same topic elsewhere, or its owner's topics.

A value in force is compared: an override, or else what its cluster gives; only keys that some
peer overrides are looked at. Shuffles: a row for each such key and peer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.audit.checks import ABOUT, Check, apply_checks, say

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FEWEST_CLUSTERS = 3
FEWEST_TOPICS = 5
MOST, NEARLY_ALL = 0.6, 0.8
"""Shares that have to agree: of the clusters that have a topic, of an owner's topics."""


def find_outliers(topics: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return what differs by cluster, and what differs by owner. Out: `findings`.

    A topic that is as its file has it is meant to differ from the same topic elsewhere.
    """
    rows = topics.where(F.col("minded"))
    given = F.broadcast(clusters.select("cluster", F.explode("defaults").alias("key", "default")))
    same_name = _find_unusual(rows, given, ["topic"], FEWEST_CLUSTERS, MOST)
    untold = same_name.where(~F.col("told"))
    owned = rows.where(F.col("owner").isNotNull())
    same_owner = _find_unusual(owned, given, ["cluster", "owner"], FEWEST_TOPICS, NEARLY_ALL)
    by_cluster = apply_checks(untold, [_differ("config-differs-by-cluster", "clusters")])
    by_owner = apply_checks(same_owner, [_differ("config-differs-by-owner", "topics of its owner")])
    return by_cluster.unionByName(by_owner)


def _find_unusual(
    rows: DataFrame, given: DataFrame, peers: list[str], fewest: int, share: float
) -> DataFrame:
    """Return rows with a `key` whose `value` is not the `usual` one among peers.

    In: the defaults `given` by clusters; `share`, which has to agree at the least. Adds `agreeing`
    of `voting` peers, and `told`, whether its file has this very value.
    """
    keys = rows.select(*peers, F.explode(F.map_keys("config")).alias("key")).distinct()
    lived, wished = (
        F.try_element_at(F.col(name), F.col("key")) for name in ("config", "wished_config")
    )
    values = rows.join(keys, peers, how="inner").select(
        *ABOUT,
        "key",
        lived.alias("value"),
        (F.col("managed") & lived.eqNullSafe(wished)).alias("told"),
    )
    in_force = F.coalesce("value", "default")  # null where its cluster does not tell the default
    votes = values.join(given, ["cluster", "key"], how="left").withColumn("value", in_force)
    votes = votes.where(F.col("value").isNotNull()).drop("default")
    counted = votes.groupBy(*peers, "key", "value").agg(F.count("*").alias("agreeing"))
    usual = counted.groupBy(*peers, "key").agg(
        F.max_by("value", F.struct("agreeing", "value")).alias("usual"),
        F.max("agreeing").alias("agreeing"),
        F.sum("agreeing").alias("voting"),
    )
    enough = (F.col("voting") >= fewest) & (F.col("agreeing") >= share * F.col("voting"))
    split = enough & (F.col("agreeing") < F.col("voting"))
    judged = votes.join(usual.where(split), [*peers, "key"], how="inner")
    return judged.where(F.col("value") != F.col("usual"))


def _differ(rule: str, peers: str) -> Check:
    names = ("key", "value", "usual", "agreeing", "voting")
    return Check(
        rule,
        F.lit(True),  # noqa: FBT003
        say(f"%s is %s; %s of %s {peers} have %s", "key", "value", "agreeing", "voting", "usual"),
        evidence={name: F.col(name) for name in names},
        subject="key",
    )
