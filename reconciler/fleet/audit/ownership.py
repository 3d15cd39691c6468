"""Whose is it: topics in no file, without an owner, or named almost like another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.audit.checks import Check, apply_checks, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

SHOWN = 5


def check_ownership() -> Iterator[Check]:
    """Check topics."""
    yield Check(
        "topic-unmanaged",
        F.col("minded") & ~F.col("managed"),
        say("in no file, with %s partitions", "partitions"),
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


def find_collisions(topics: DataFrame) -> DataFrame:
    """Return a finding for each topic whose metrics are also another's. Shuffles: the names."""
    alike = F.regexp_replace("topic", r"\.", "_").alias("metric")
    rows = topics.where(F.col("minded")).select("cluster", "topic", "owner", "file", "line", alike)
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
