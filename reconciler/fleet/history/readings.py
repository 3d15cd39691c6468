"""The readings of each cluster in their order, and how rows of one are set beside those before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import READ

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WHEN = "yyyyMMdd'T'HHmmss'Z'"


def number_readings(readings: DataFrame, well: str = READ) -> DataFrame:
    """Number the readings of each cluster that went well. Grain: a reading. Small.

    In: `collection`, `cluster`, `status`. Adds `number`, from 1, and the collections `previous`
    and `next` that read the cluster too.
    """
    order = Window.partitionBy("cluster").orderBy("collection")
    read = readings.where(F.col("status") == well).select("cluster", "collection")
    return read.withColumns(
        {
            "number": F.row_number().over(order),
            "previous": F.lag("collection").over(order),
            "next": F.lead("collection").over(order),
        }
    )


def beside_previous(rows: DataFrame, key: list[str], columns: list[str]) -> DataFrame:
    """Set rows of numbered readings beside those of the reading before. Shuffles: by `key`.

    Adds `was_X` for each column X; `appears`, where the reading before does not have the key, and
    `vanishes`, where the one after has it no more; `stays`, where the reading before has it too.
    """
    order = Window.partitionBy(*key).orderBy("number")
    before, after = F.lag("number").over(order), F.lead("number").over(order)
    number = F.col("number")
    stays = F.coalesce(before == number - 1, F.lit(False))  # noqa: FBT003
    followed = F.coalesce(after == number + 1, F.lit(False))  # noqa: FBT003
    return rows.withColumns(
        {
            "stays": stays,
            "appears": ~stays & F.col("previous").isNotNull(),
            "vanishes": ~followed & F.col("next").isNotNull(),
            **{f"was_{name}": F.lag(name).over(order) for name in columns},
        }
    )


def seconds_of(collection: str) -> Column:
    """Return when a collection was, in seconds since 1970."""
    return F.unix_timestamp(F.to_timestamp(collection, WHEN))
