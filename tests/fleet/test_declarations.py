"""Tables are declared once, and nothing that reads them changes what was declared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconciler.fleet import planning, tables
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.rows import make_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fleet


def test_reading_leaves_the_declaration_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    declared = list(tables.BROKERS.columns)
    lake = Lake(spark, str(tmp_path))
    rows = spark.createDataFrame(make_table(tables.BROKERS, {"cluster": ["eu"], "id": [1]}))
    with lake.begin("20261121T030000Z") as draft:
        draft.append(tables.BROKERS, rows)
        made = draft.publish(1)

    assert lake.read(tables.BROKERS, made).count() == 1
    assert tables.BROKERS.columns == declared
    assert len(tables.BROKERS.schema.fields) == len(declared)


def test_planning_leaves_the_declaration_of_plans_as_it_is() -> None:
    assert planning.plan_fleet
    assert [field.name for field in tables.PLANS.schema.fields] == tables.PLANS.columns
