"""Whoever waits for a long job is told how far it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from reconciler.fleet.trouble import watch_tasks

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fleet

TASKS = 8


def test_tasks_are_counted_while_they_run(spark: SparkSession) -> None:
    def dawdle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        time.sleep(0.5)
        yield from batches

    told: list[tuple[int, int]] = []
    slow = spark.range(TASKS, numPartitions=TASKS).mapInArrow(dawdle, "id long")
    with watch_tasks(spark, lambda done, of: told.append((done, of))):
        assert len(slow.collect()) == TASKS
    heard = len(told)
    assert {of for _, of in told} == {TASKS}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert len({done for done, _ in told}) > 1
    spark.range(TASKS, numPartitions=TASKS).mapInArrow(dawdle, "id long").count()
    assert len(told) == heard
