"""What a job keeps is released with it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import pytest

from reconciler.fleet.caching import caching, computing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.fleet.caching import Cache

pytestmark = pytest.mark.fleet


def count_cached(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())


@pytest.mark.parametrize("keeping", [caching, computing])
def test_what_is_kept_is_released_also_after_an_error(
    spark: SparkSession, keeping: Callable[[], AbstractContextManager[Cache]]
) -> None:
    before, seen = count_cached(spark), 0
    with pytest.raises(RuntimeError), keeping() as keep:  # noqa: PT012
        for size in (3, 4):
            assert keep(spark.range(size)).count() == size
        seen = count_cached(spark)
        raise RuntimeError
    assert (seen, count_cached(spark)) == (before + 2, before)


def test_what_is_computed_has_no_plan(spark: SparkSession) -> None:
    rows = spark.range(3).join(spark.range(2), "id", how="inner")
    with computing() as compute:
        computed = compute(rows)
        assert computed._jdf.queryExecution().analyzed().children().isEmpty()
        assert sorted(row["id"] for row in computed.collect()) == [0, 1]
