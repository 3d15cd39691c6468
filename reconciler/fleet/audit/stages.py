"""Topics that most clusters of a stage have, and others lack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.audit.checks import FEWEST_CLUSTERS
from reconciler.fleet.audit.rules import Check, apply_checks, say
from reconciler.fleet.audit.topics import is_minded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from reconciler.spec.forms import AuditForm


def find_missing(
    topics: DataFrame, specs: DataFrame, clusters: DataFrame, limits: AuditForm
) -> DataFrame:
    """Return a finding for each topic that a cluster of a stage lacks. Out: `findings`.

    A topic whose file does not name the cluster is meant to be missing there. Shuffles: the names
    of topics.
    """
    staged = clusters.where(F.col("stage").isNotNull())
    members = staged.groupBy("stage").agg(F.collect_list("cluster").alias("members"))
    named = topics.where("minded").join(
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
        ~meant & is_minded(),
        say("missing, where %s of %s clusters of its stage have it", "on", "of"),
        F.col("on"),
        {"on": F.col("on"), "of": F.col("of")},
    )
    return apply_checks(judged, [check])
