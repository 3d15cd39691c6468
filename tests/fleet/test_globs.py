"""Java reads a translated pattern as Python does."""

from __future__ import annotations

from fnmatch import fnmatchcase
from random import Random
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.globs import translate_globs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fleet

LETTERS, SIGNS = "ab.-", "***??[[]]!!^\\$|({&~"


def test_java_matches_what_fnmatch_matches(spark: SparkSession) -> None:
    dice = Random(6)
    rows = [(draw(dice, LETTERS * 4 + SIGNS, 6), draw(dice, LETTERS, 3)) for _ in range(20_000)]
    rows.append(("*a" * 40 + "*b", "a" * 240))  # Java gives up on nothing: it tries for ever
    patterns = [(glob, name, translate_globs([glob])) for glob, name in rows]
    table = spark.createDataFrame(patterns, "glob string, name string, pattern string")
    found = table.select("glob", "name", F.regexp_like("name", F.col("pattern")).alias("holds"))
    wanted = {(glob, name): fnmatchcase(name, glob) for glob, name in rows}
    assert {(row["glob"], row["name"]): row["holds"] for row in found.collect()} == wanted
    assert sum(wanted.values()) > 200


def draw(dice: Random, letters: str, most: int) -> str:
    return "".join(dice.choice(letters) for _ in range(dice.randint(1, most)))
