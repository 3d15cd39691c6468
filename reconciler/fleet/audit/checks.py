"""The checks of an audit: health, safety, ownership, and consistency with peers.

Peers are the same topic on other clusters, and the other topics of an owner. Their values in force
are compared: an override, or else the default of the cluster; only keys that some peer overrides
are looked at. Shuffles: a row for each such key and peer.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.audit.rules import ABOUT, Check, apply_checks, say
from reconciler.fleet.audit.topics import UNCLEAN, is_in_scope
from reconciler.fleet.lake.attempts import READ
from reconciler.spec.forms import AuditForm


def check_durability() -> Iterator[Check]:
    """Check topics for their replicas, and for what acks=all needs of them.

    Topics that the estate does not manage are not checked by its policy.
    """
    # The policy is the first measure. A topic that breaks it is not reported twice.
    policy = F.col("least_replication")
    spared = _or_false(F.regexp_like("topic", F.col("exempt")))
    broken = F.col("in_scope") & ~spared & (F.col("least_replicas") < policy)
    yield _compare("replication-below-policy", broken, policy, "the policy asks for")
    inherited = F.coalesce("wished_replication", "default_replication")
    below = F.col("in_scope") & (F.col("least_replicas") < inherited) & ~_or_false(broken)
    yield _compare("replication-below-default", below, inherited, "its file or the defaults give")
    yield Check(
        "replication-single",
        F.col("in_scope") & (F.col("least_replicas") == 1) & (F.col("brokers") > 1),
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
    # A factor of 1 breaks a rule of its own, and min.insync.replicas cannot be lower than 1.
    needed, factor = F.col("min_in_sync"), F.col("least_replicas")
    yield Check(
        "min-in-sync-equals-replication",
        F.col("in_scope") & (factor > 1) & (needed >= factor),
        say("min.insync.replicas %s of %s replicas", "min_in_sync", "least_replicas"),
        F.col("partitions"),
        {"min.insync.replicas": needed, "replication_factor": factor},
        reason=say("%s of %s replicas", "min_in_sync", "least_replicas"),
    )
    yield Check(
        "min-in-sync-one",
        F.col("in_scope") & (factor > 2) & (needed == 1),
        say("min.insync.replicas 1 of %s replicas", "least_replicas"),
        F.col("partitions"),
        {"min.insync.replicas": needed, "replication_factor": factor},
        reason=say("%s of %s replicas", "min_in_sync", "least_replicas"),
    )
    yield Check(
        "unclean-election-on",
        F.col("in_scope") & (F.col("unclean") == "true") & (factor > 1),
        say("unclean.leader.election.enable is true, with %s replicas", "least_replicas"),
        F.col("partitions"),
        {UNCLEAN: F.col("unclean"), "replication_factor": factor},
    )
    wished = F.coalesce("wished_replication", "most_replicas")
    yield Check(
        "replication-above-brokers",
        F.col("in_scope") & (wished > F.col("brokers")),
        say("replication factor %s, and %s brokers take replicas", wished, "brokers"),
        F.col("partitions"),
        {"replication_factor": wished, "brokers": F.col("brokers")},
        reason=say("%s replicas, %s brokers", wished, "brokers"),
    )


def find_thin_internal(topics: DataFrame) -> DataFrame:
    """Return a finding for each internal topic with fewer replicas than most topics. Shuffles: one.

    Most have at least the lower median of the other topics. Out: `findings`.
    """
    median = F.expr("percentile_disc(0.5) WITHIN GROUP (ORDER BY least_replicas)")
    others = topics.where(~F.col("internal")).groupBy("cluster")
    usual = others.agg(median.cast("int").alias("usual"))
    factor = F.col("least_replicas")
    check = Check(
        "internal-replication-low",
        factor < F.col("usual"),
        say("replication factor %s, where most topics have %s", factor, "usual"),
        F.col("partitions"),
        {"replication_factor": factor, "usual": F.col("usual")},
        reason=say("%s replicas, usually %s", factor, "usual"),
    )
    rows = topics.where("internal").join(F.broadcast(usual), "cluster", how="inner")
    return apply_checks(rows, [check])


def _or_false(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))  # noqa: FBT003


def _compare(rule: str, broken: Column, asked: Column, whoever: str) -> Check:
    return Check(
        rule,
        broken,
        say(f"replication factor %s, where {whoever} %s", "least_replicas", asked),
        F.col("partitions"),
        {"replication_factor": F.col("least_replicas"), "asked": asked},
        reason=say("%s replicas, %s asked", "least_replicas", asked),
    )


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
    """Check topics for partitions that are not led, not in sync, or not writable."""
    for rule, (name, sentence) in _COUNTED.items():
        count = F.col(name)
        evidence = {name: count, "partitions": F.col("partitions")}
        yield Check(rule, count > 0, say(sentence, name, "partitions"), count, evidence)
    sentence = "%s of %s partitions take no writes with acks=all: fewer than %s replicas in sync"
    yield Check(
        "partition-unwritable",
        F.col("unwritable") > 0,
        say(sentence, "unwritable", "partitions", "min_in_sync"),
        F.col("unwritable"),
        {name: F.col(name) for name in ("unwritable", "partitions", "min_in_sync")},
    )


def check_brokers() -> Iterator[Check]:
    """Check brokers. In: the load of each `broker`, with the replicas of internal topics."""
    yield Check(
        "broker-gone",
        ~F.col("alive") & (F.col("replicas") > 0),
        say("broker %s is not alive and holds %s replicas", "broker", "replicas"),
        F.col("replicas"),
        {"replicas": F.col("replicas"), "rack": F.col("rack")},
        subject="broker",
    )


def check_readings() -> Iterator[Check]:
    """Check that clusters could be read. In: `readings`."""
    yield Check(
        "cluster-unread",
        F.col("status") != READ,
        F.coalesce("error", "status"),
        evidence={"status": F.col("status"), "read_ms": F.col("read_ms")},
        subject="cluster",
    )


SHOWN = 5
"""The number of topics that a message about a collision names."""


def check_ownership() -> Iterator[Check]:
    """Check topics for their file, and for the owner in it."""
    yield Check(
        "topic-unmanaged",
        F.col("in_scope") & ~F.col("managed"),
        say("unmanaged, with %s partitions", "partitions"),
        F.col("partitions"),
        {"partitions": F.col("partitions")},
    )
    yield Check(
        "topic-unowned",
        F.col("managed") & F.col("owner").isNull(),
        F.lit("its file names no owner"),
        F.col("partitions"),
        {"file": F.col("file")},
    )


def find_metric_collisions(topics: DataFrame) -> DataFrame:
    """Return a finding for each topic that shares its metrics with another. Shuffles: the names."""
    # Kafka replaces '.' by '_' in the names of metrics. It refuses a new topic that collides with
    # an existing one, but creates two that collide in one request.
    alike = F.regexp_replace("topic", r"\.", "_").alias("metric")
    rows = topics.where(F.col("in_scope")).select(
        "cluster", "topic", "owner", "file", "line", alike
    )
    names = F.array_sort(F.collect_set("topic")).alias("names")
    groups = rows.groupBy("cluster", "metric").agg(names).where(F.size("names") > 1)
    found = rows.join(groups, ["cluster", "metric"], how="inner")
    others = F.array_except("names", F.array("topic"))
    shown = F.array_join(F.slice(others, 1, SHOWN), ", ")
    check = Check(
        "name-collision",
        F.lit(True),  # noqa: FBT003
        say("its metrics are also those of %s", shown),
        F.size(others),
        {"metric": F.col("metric"), "others": shown},
    )
    return apply_checks(found, [check])


def check_rack_names() -> Iterator[Check]:
    """Check that all brokers of a cluster name their racks."""
    racks = F.map_values("rack_of")
    brokers, without = F.size(racks), F.size(F.filter(racks, lambda rack: rack == ""))
    evidence = {"brokers": brokers, "without_rack": without}
    yield Check(
        "rack-unknown",
        (without > 0) & (without < brokers),
        say("%s of %s brokers name no rack", without, brokers),
        without,
        evidence,
        subject="cluster",
    )
    yield Check(
        "rack-none",
        (brokers > 1) & (without == brokers),
        say("none of %s brokers has a rack", brokers),
        brokers,
        evidence,
        subject="cluster",
    )


FEWEST_CLUSTERS = 3
FEWEST_TOPICS = 5
"""The fewest peers that are compared: clusters with a topic, and topics of an owner."""


def find_outliers(topics: DataFrame, clusters: DataFrame, limits: AuditForm) -> DataFrame:
    """Find configs that differ from those of peers, by cluster and by owner. Out: `findings`.

    A value that is also in the topic's file counts as intended, and does not differ by cluster.
    """
    rows = topics.where(F.col("in_scope"))
    given = F.broadcast(clusters.select("cluster", F.explode("defaults").alias("key", "default")))
    same_name = _find_unusual(rows, given, ["topic"], FEWEST_CLUSTERS, limits.clusters_agree)
    untold = same_name.where(~F.col("told"))
    owned = rows.where(F.col("owner").isNotNull())
    same_owner = _find_unusual(
        owned, given, ["cluster", "owner"], FEWEST_TOPICS, limits.topics_agree
    )
    by_cluster = apply_checks(untold, [_differ("config-differs-by-cluster", "clusters")])
    by_owner = apply_checks(same_owner, [_differ("config-differs-by-owner", "topics of its owner")])
    return by_cluster.unionByName(by_owner)


def _find_unusual(
    rows: DataFrame, given: DataFrame, peers: list[str], fewest: int, percent: int
) -> DataFrame:
    """Return rows with a `key` whose `value` is not the `usual` one among peers.

    In: the defaults `given` by clusters; the least share of peers that must agree, in `percent`.
    Adds `agreeing` of `voting` peers, and `told`: whether the topic's file has this value.
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
    in_force = F.coalesce("value", "default")  # null if its cluster does not report the default
    votes = values.join(given, ["cluster", "key"], how="left").withColumn("value", in_force)
    votes = votes.where(F.col("value").isNotNull()).drop("default")
    counted = votes.groupBy(*peers, "key", "value").agg(F.count("*").alias("agreeing"))
    usual = counted.groupBy(*peers, "key").agg(
        F.max_by("value", F.struct("agreeing", "value")).alias("usual"),
        F.max("agreeing").alias("agreeing"),
        F.sum("agreeing").alias("voting"),
    )
    enough = (F.col("voting") >= fewest) & (F.col("agreeing") * 100 >= percent * F.col("voting"))
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
        reason=say("%s is %s, usually %s", "key", "value", "usual"),
    )


def find_missing(
    topics: DataFrame, specs: DataFrame, clusters: DataFrame, limits: AuditForm
) -> DataFrame:
    """Return a finding for each topic that a cluster lacks and most of its stage have.

    Out: `findings`. A topic whose file does not name the cluster is meant to be missing there.
    Shuffles: the names of topics.
    """
    staged = clusters.where(F.col("stage").isNotNull())
    members = staged.groupBy("stage").agg(F.collect_list("cluster").alias("members"))
    named = topics.where("in_scope").join(
        F.broadcast(staged.select("cluster", "stage")), "cluster", how="inner"
    )
    having = named.groupBy("stage", "topic").agg(
        F.collect_list("cluster").alias("having"), F.max("managed").alias("managed")
    )
    rows = having.join(F.broadcast(members), "stage", how="inner")
    most = F.size("having") * 100 >= limits.clusters_agree * F.size("members")
    lacking = F.explode(F.array_except("members", "having")).alias("cluster")
    missing = rows.where((F.size("members") >= FEWEST_CLUSTERS) & most).select(
        lacking, "topic", "managed", F.size("having").alias("on"), F.size("members").alias("of")
    )
    wished = specs.select("cluster", "topic", "owner", "file", "line")
    here = F.broadcast(clusters.select("cluster", "owned", "ignored"))
    judged = missing.join(here, "cluster", how="inner").join(
        wished, ["cluster", "topic"], how="left"
    )
    meant = F.col("managed") & F.col("file").isNull()
    check = Check(
        "topic-missing-in-stage",
        ~meant & is_in_scope(),
        say("missing, where %s of %s clusters of its stage have it", "on", "of"),
        F.col("on"),
        {"on": F.col("on"), "of": F.col("of")},
    )
    return apply_checks(judged, [check])
