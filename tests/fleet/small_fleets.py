"""Small fleets by hand: states and specs of a few clusters, as the tables of a collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reconciler.fleet import tables
from reconciler.fleet.rows import describe_reading, make_table, write_specs, write_state
from reconciler.model.cluster import ClusterState, TopicSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def make_state(
    spark: SparkSession, states: Mapping[str, ClusterState | str]
) -> dict[str, DataFrame]:
    """Return the state tables; a text instead of a state says why a cluster was not read."""
    written = [write_state(name, s) for name, s in states.items() if not isinstance(s, str)]
    # In one chunk: Spark loses what comes after an empty one.
    frames = {
        table.name: spark.createDataFrame(
            pa.concat_tables(rows[table.name] for rows in written).combine_chunks()
        )
        for table in tables.STATE[1:]
    }
    return {"readings": spark.createDataFrame(_write_readings(states)), **frames}


def make_specs(spark: SparkSession, specs: Mapping[str, Sequence[TopicSpec]]) -> DataFrame:
    """Return the table `specs`."""
    empty = make_table(tables.SPECS, {})
    written = [write_specs(name, of) for name, of in specs.items()]
    return spark.createDataFrame(pa.concat_tables([empty, *written]), tables.SPECS.schema)


def _write_readings(states: Mapping[str, ClusterState | str]) -> pa.Table:
    rows = [
        {"cluster": name, "read_ms": 1, **_write_reading(state)} for name, state in states.items()
    ]
    columns = {name: [row.get(name) for row in rows] for name in tables.READINGS.columns}
    return make_table(tables.READINGS, columns)


def _write_reading(state: ClusterState | str) -> Mapping[str, Any]:
    if isinstance(state, str):
        return {"status": "unreadable", "error": state}
    read_at = "2026-11-22T03:00:00+00:00"
    return {"status": "read", "read_at": read_at, **describe_reading(state)}
