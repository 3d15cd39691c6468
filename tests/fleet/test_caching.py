"""Cached tables are released with their job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconciler.fleet.caching import caching

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fleet


def count_cached(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())


def test_a_cached_table_is_released_also_after_an_error(spark: SparkSession) -> None:
    before, seen = count_cached(spark), 0
    with pytest.raises(RuntimeError), caching() as cache:  # noqa: PT012
        for size in (3, 4):
            assert cache(spark.range(size)).count() == size
        seen = count_cached(spark)
        raise RuntimeError
    assert (seen, count_cached(spark)) == (before + 2, before)
