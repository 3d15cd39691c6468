"""How long a cluster stays other than its files: a change that plan after plan asks for.

Plans of a cluster are numbered; a change in plans n, n + 1, … without a gap is one stretch of
drift. A plan that could not be made ends none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import PLANNED, tables
from reconciler.fleet.history.readings import number_readings, seconds_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REMARK = "note"
KEY = ("cluster", "topic", "action")


def find_drift(plans: DataFrame, changes: DataFrame) -> DataFrame:
    """Return stretches of drift. In: `plans` and `changes` of several collections. Out: `drift`.

    Shuffles: the changes by cluster, topic and action.
    """
    numbered = number_readings(plans, well=PLANNED)
    wanted = changes.where(F.col("action") != REMARK)
    asked = wanted.join(F.broadcast(numbered), ["cluster", "collection"], how="inner")
    gap = F.col("number") - F.row_number().over(Window.partitionBy(*KEY).orderBy("number"))
    stretches = asked.withColumn("stretch", gap).groupBy(*KEY, "stretch")
    found = stretches.agg(
        F.max_by("steps", "number").alias("steps"),
        F.min("collection").alias("first_seen"),
        F.max("collection").alias("last_seen"),
        F.max_by("next", "number").alias("gone_in"),
        F.count("*").cast("int").alias("plans"),
    )
    until = F.coalesce(seconds_of("gone_in"), seconds_of("last_seen"))
    return found.withColumns(
        {"pending": F.col("gone_in").isNull(), "lasted_s": until - seconds_of("first_seen")}
    ).select(*tables.DRIFT.columns)
