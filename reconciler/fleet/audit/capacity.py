"""The checks of capacity: replicas per broker and per log directory, and disks that fill up."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.audit.rules import Check, apply_checks, format_gib, say
from reconciler.fleet.audit.topics import TOPIC
from reconciler.model.moves import LoadKind
from reconciler.spec.forms import AuditForm

DAY_MS = 24 * 3_600_000


def check_broker_load(limits: AuditForm) -> Check:
    """Check the replicas of brokers. In: as `check_brokers`."""
    most, replicas = limits.partitions_per_broker, F.col("replicas")
    return Check(
        "broker-partitions-many",
        replicas > most,
        say(f"broker %s holds %s replicas (limit {most})", "broker", "replicas"),
        replicas - most,
        {"replicas": replicas, "limit": F.lit(most)},
        subject="broker",
    )


def find_full_directories(brokers: DataFrame, limits: AuditForm) -> DataFrame:
    """Return a finding for each log directory with too many replicas. In: the table `brokers`."""
    most, replicas = limits.partitions_per_directory, F.col("replicas")
    held = brokers.select("cluster", "id", F.explode("log_directories").alias("directory"))
    rows = held.select("cluster", "id", "directory.path", "directory.replicas").withColumn(
        "subject", F.concat_ws(":", F.col("id").cast("string"), "path")
    )
    check = Check(
        "directory-partitions-many",
        replicas > most,
        say(f"%s on broker %s holds %s replicas (limit {most})", "path", "id", replicas),
        replicas - most,
        {"replicas": replicas, "limit": F.lit(most)},
        subject="subject",
    )
    return apply_checks(rows, [check])


def find_failed_directories(brokers: DataFrame) -> DataFrame:
    """Return a finding for each log directory that is offline. In: the table `brokers`."""
    rows = brokers.where("alive").select(
        "cluster", "id", F.explode("failed_directories").alias("path")
    )
    check = Check(
        "directory-offline",
        F.lit(True),  # noqa: FBT003
        say("%s on broker %s is offline, and so are the replicas in it", "path", "id"),
        evidence={"broker": F.col("id"), "path": F.col("path")},
        subject="subject",
    )
    subject = F.concat_ws(":", F.col("id").cast("string"), "path")
    return apply_checks(rows.withColumn("subject", subject), [check])


def find_uneven_directories(brokers: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return a finding for each broker with a log directory outside its band. Out: `findings`.

    Where balance.by names disk, a directory is to hold its part, by size, of what all directories
    of its broker hold. In: the table `brokers`, and the rows of `describe_clusters`. A broker that
    takes no replicas, or of which a size is unknown, is not judged.
    """
    aimed = clusters.where(F.array_contains("aims", str(LoadKind.DISK)))
    asked = F.broadcast(aimed.select("cluster", "able", "within_percent"))
    rows = brokers.join(asked, "cluster", how="inner").where(F.array_contains("able", F.col("id")))

    def measure(directory: Column) -> Column:
        return F.struct(
            directory["path"].alias("path"),
            directory["total_bytes"].alias("size"),
            (directory["total_bytes"] - directory["usable_bytes"]).alias("used"),
        )

    def sum_up(name: str) -> Column:
        each = F.transform("measured", lambda one: one[name])
        return F.aggregate(each, F.lit(0).cast("long"), lambda total, one: total + one)

    def compare(one: Column) -> Column:
        share = F.try_divide(F.col("used"), F.col("size")) * one["size"]
        off = F.try_divide((one["used"] - share) * 100, share)
        # The one that is furthest off is named; of equals, the fuller one.
        named = {"distance": F.abs(off), "off": off, "share": F.round(share).cast("long")}
        parts = (column.alias(name) for name, column in named.items())
        return F.struct(*parts, one["path"].alias("path"), one["used"].alias("used"))

    # A null in a sum makes it null: then the broker is not judged.
    rows = rows.withColumn("measured", F.transform("log_directories", measure))
    rows = rows.withColumns({"used": sum_up("used"), "size": sum_up("size")})
    worst = {name: F.col(f"worst.{name}") for name in ("path", "used", "share", "off", "distance")}
    check = Check(
        "broker-directories-uneven",
        worst["distance"] > F.col("within_percent"),
        say(
            "%s on broker %s holds %s, its share is %s (%+d %%)",
            worst["path"],
            "id",
            format_gib(worst["used"]),
            format_gib(worst["share"]),
            F.round(worst["off"]).cast("long"),
        ),
        F.round(worst["distance"]),
        {"path": worst["path"], "used_bytes": worst["used"], "share_bytes": worst["share"]},
        subject="id",
    )
    compared = F.array_max(F.transform("measured", compare))
    return apply_checks(rows.withColumn("worst", compared), [check])


def find_filling(
    topics: DataFrame,
    clusters: DataFrame,
    limits: AuditForm,
    earlier: tuple[DataFrame, float] | None = None,
) -> DataFrame:
    """Return a finding for each topic that may fill the free space of a broker. Out: `findings`.

    A topic that an earlier collection shows is expected to grow as since then, up to its
    retention.bytes. Any other may grow up to its retention.bytes; without one, it is not judged.
    In: the earlier `partitions`, and the days since then. Shuffles: their sizes, by topic.
    """
    free_of = F.broadcast(clusters.select("cluster", "free_of"))
    rows = topics.where("in_scope").join(free_of, "cluster", how="inner")
    # The growth of the entire topic, as a share of its size: a replica grows in proportion.
    rows = rows.withColumn("growth", F.lit(None).cast("double"))
    if earlier is not None:
        partitions, days = earlier
        before = partitions.groupBy(*TOPIC).agg(F.sum("size_bytes").alias("before_bytes"))
        added = F.greatest(F.col("size_bytes") - F.col("before_bytes"), F.lit(0))
        ratio = F.coalesce(F.try_divide(added, F.col("size_bytes")), F.lit(0.0))
        lasting = limits.disk_lasts / DAY_MS / days
        known = F.col("before_bytes").isNotNull()
        rows = rows.join(before, [*TOPIC], how="left").withColumn(
            "growth", F.when(known, ratio * F.lit(lasting))
        )
    over = F.filter(F.transform("loads", _expect_growth), lambda load: load["beyond"] > 0)
    worst = F.array_max("over")
    check = Check(
        "topic-fills-disk",
        F.size("over") > 0,
        say(
            "may add %s to broker %s, where %s are free",
            format_gib(worst["coming"]),
            worst["broker"],
            format_gib(worst["free"]),
        ),
        F.size("over"),
        {
            "broker": worst["broker"],
            "coming_bytes": worst["coming"],
            "free_bytes": worst["free"],
            "seen_from": F.when(F.col("growth").isNull(), "retention.bytes").otherwise("growth"),
        },
    )
    return apply_checks(rows.withColumn("over", over), [check])


def _expect_growth(load: Column) -> Column:
    """Return {beyond, broker, coming, free} of a topic on a broker, in bytes; null: unknown."""
    # Spark's greatest and least skip nulls: without a limit, nothing must come out as 0.
    left = F.col("retained") * load["replicas"] - load["size_bytes"]
    kept = F.when(left.isNotNull(), F.greatest(left, F.lit(0)))
    grown = F.floor(load["size_bytes"] * F.col("growth")).cast("long")
    coming = F.when(grown.isNotNull(), F.least(grown, kept)).otherwise(kept)
    free = F.try_element_at("free_of", load["broker"])
    return F.struct(
        (coming - free).alias("beyond"),
        load["broker"].alias("broker"),
        coming.alias("coming"),
        free.alias("free"),
    )
