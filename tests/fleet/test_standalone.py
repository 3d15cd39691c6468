"""The same job on a Spark cluster of two workers: the same rows, byte for byte after sorting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconciler.api.planning import load_estate
from reconciler.fleet import tables
from reconciler.fleet.generator.job import generate_fleet, write_estate
from reconciler.fleet.generator.shapes import FleetSize
from reconciler.fleet.jobs import plan_collection
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.standalone import run_fleet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.fleet, pytest.mark.slow]

SIZE = FleetSize(clusters=6, topics=2_000, partitions=20_000, seed=5)


def read_plans(lake: Lake) -> list[str]:
    made = lake.find_attempt(what="plan")
    rows = [row for table in MADE for row in lake.read(table, made).toArrow().to_pylist()]
    return sorted(map(str, rows))


MADE = (tables.PLANS, tables.CHANGES)


def test_two_workers_plan_what_one_process_plans(spark: SparkSession, tmp_path: Path) -> None:
    lake, estate = Lake(spark, str(tmp_path / "lake")), tmp_path / "estate"
    write_estate(SIZE, estate)
    generate_fleet(lake, SIZE, "20261121T030000Z", root=str(estate))
    plan_collection(lake, load_estate(estate))
    here, attempt = read_plans(lake), lake.find_attempt(what="plan").id
    assert run_fleet(["plan", str(estate), "--lake", lake.root]) == 1  # some of it is refused
    assert lake.find_attempt(what="plan").id != attempt
    assert read_plans(lake) == here
