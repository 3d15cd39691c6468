"""The plan of every cluster, by the code that plans for one: a group of Arrow rows per cluster.

In: the states and specs of a collection. Out: `plans`, and their topics as `changes`; of clusters
that allow moves also `move_plans`, and their partitions as `moves`.
Shuffles: once, by cluster; a partition crosses into Python as a row, never as a group.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation
from pyspark.sql.types import ArrayType, StructField, StructType

from reconciler.api.planning import build_moves, build_plan
from reconciler.errors import Finding, FindingsError, ReconcilerError
from reconciler.fleet import tables
from reconciler.fleet.lake.attempts import READ
from reconciler.fleet.outcome import (
    describe_changes,
    describe_move_plan,
    describe_moves,
    describe_plan,
)
from reconciler.fleet.rows import read_specs, read_state
from reconciler.fleet.source.kafka_metadata import settle_readings
from reconciler.model.cluster import ClusterState, TopicSpec
from reconciler.model.plan import Commit
from reconciler.show.view import view_plan
from reconciler.spec.entry import ClusterEntry
from reconciler.spec.estate import Estate


def _within(table: tables.LakeTable) -> StructType:
    """Return the columns of a table for the rows of one cluster."""
    return StructType([field for field in table.schema.fields if field.name != "cluster"])


_ANSWER = StructType(
    [
        *tables.PLANS.schema.fields,
        StructField("changes", ArrayType(_within(tables.CHANGES))),
        StructField("move_plan", _within(tables.MOVE_PLANS)),
        StructField("moves", ArrayType(_within(tables.MOVES))),
    ]
)
_FACTS = ("topics", "partitions", "configs")
"""The tables of large rows, in the order of the parameters of `read_state`."""

_OF_TOPICS = ("topic", "topic_id", "internal", "config", "value")
_OF_HEALTH = ("leader", "in_sync", "moving")
_NEEDED = ("table", "cluster", *_OF_TOPICS, "partition", "replicas", *_OF_HEALTH)
"""The columns that a plan needs; it needs no partition sizes."""

_FOR_MOVES = ("size_bytes", "rate_bytes_per_s", "reassignment")
"""What a plan of moves needs besides: it is null for clusters that allow none."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of an estate that the plan of one cluster needs, made from rows."""

    clusters: Mapping[str, ClusterEntry]
    specs: tuple[TopicSpec, ...]
    findings: tuple[Finding, ...]

    def topics_for(self, cluster: str) -> tuple[TopicSpec, ...]:  # noqa: ARG002  # there is one
        """Return the cluster's topics."""
        return self.specs


@dataclass(frozen=True, slots=True)
class Known:
    """The input of every planner: a few rows per cluster, and its part of the estate.

    Spark sends it to the executors, so it has no secret: entries have no properties of clients.
    """

    readings: Mapping[str, Mapping[str, Any]]
    brokers: Mapping[str, Sequence[Mapping[str, Any]]]
    entries: Mapping[str, ClusterEntry]
    findings: tuple[Finding, ...]
    commit: Commit | None = None


def join_tables(state: Mapping[str, DataFrame]) -> DataFrame:
    """Put the rows of the state tables into one table, as a source of live clusters does."""
    labelled = [state[table.name].withColumn("table", F.lit(table.name)) for table in tables.STATE]
    together = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), labelled)
    return together.select(*tables.FACTS.columns)


def plan_fleet(
    facts: DataFrame,
    specs: DataFrame,
    estate: Estate,
    commit: Commit | None = None,
    clusters: Sequence[str] = (),
) -> DataFrame:
    """Plan every cluster of the estate, or the named ones.

    In: `facts`, the rows of a collection or of live clusters; `specs`, and their commit. Out:
    `plans`, with an array `changes`, a `move_plan` and its array `moves` in each row.
    """
    few = facts.where(F.col("table").isin("readings", "brokers")).toArrow().to_pylist()
    brokers: dict[str, list[Mapping[str, Any]]] = {}
    for row in few:
        if row["table"] == "brokers":
            brokers.setdefault(row["cluster"], []).append(row)
    readings = settle_readings(row for row in few if row["table"] == "readings")
    names = clusters or estate.declared or sorted(readings.keys() & estate.clusters)
    entries = {name: replace(estate.clusters[name], client={}) for name in names}
    known = Known(readings, brokers, entries, estate.findings, commit)
    here = F.col("cluster").isin(sorted(readings.keys() & entries))
    movable = F.col("cluster").isin([name for name, entry in entries.items() if entry.moves])
    rows = facts.where(here & (F.col("table") != "brokers")).select(
        *_NEEDED, *(F.when(movable, F.col(name)).alias(name) for name in _FOR_MOVES)
    )
    groups = rows.groupBy("cluster").cogroup(specs.where(here).groupBy("cluster"))
    answers = groups.applyInArrow(partial(_plan_group, known=known), schema=_ANSWER)
    missing = sorted(entries.keys() - readings)
    if not missing:
        return answers
    said = "the collection does not have it"
    failed = [_fail(cluster, "not-collected", said) for cluster in missing]
    table = pa.Table.from_pylist(failed, schema=_answer_schema())
    return answers.unionByName(facts.sparkSession.createDataFrame(table, _ANSWER))


def split_changes(answers: DataFrame) -> DataFrame:
    """Turn the array `changes` into the rows of that table. Grain: a topic of a plan."""
    rows = answers.select("cluster", F.explode("changes").alias("change"))
    return rows.select("cluster", "change.*").select(*tables.CHANGES.columns)


def take_move_plans(answers: DataFrame) -> DataFrame:
    """Turn `move_plan` into the rows of that table. Grain: a cluster that allows moves."""
    rows = answers.where(F.col("move_plan").isNotNull()).select("cluster", "move_plan.*")
    return rows.select(*tables.MOVE_PLANS.columns)


def split_moves(answers: DataFrame) -> DataFrame:
    """Turn the array `moves` into the rows of that table. Grain: a partition of a plan."""
    rows = answers.select("cluster", F.explode("moves").alias("move"))
    return rows.select("cluster", "move.*").select(*tables.MOVES.columns)


def _plan_group(
    key: tuple[pa.Scalar, ...], facts: pa.Table, specs: pa.Table, *, known: Known
) -> pa.Table:
    """Plan one cluster. Errors: none; an error is the answer."""
    cluster = key[0].as_py()
    # A state is millions of tuples that all stay in use: the collector would visit them in vain.
    gc.disable()
    try:
        answer = _plan_cluster(cluster, facts, specs, known)
    except FindingsError as error:
        answer = _fail(cluster, error.findings[0].rule, str(error))
    except ReconcilerError as error:
        answer = _fail(cluster, "failed", str(error))
    except Exception as error:  # noqa: BLE001  # one cluster's rows must not end the fleet's job
        answer = _fail(cluster, "failed", f"its rows cannot be read: {error!r}")
    finally:
        gc.enable()
    return pa.Table.from_pylist([answer], schema=_answer_schema())


def _plan_cluster(cluster: str, facts: pa.Table, specs: pa.Table, known: Known) -> dict[str, Any]:
    reading = known.readings[cluster]
    if reading["status"] != READ:
        return _fail(cluster, reading["status"], reading["error"])
    split = (facts.filter(pc.equal(facts["table"], name)) for name in _FACTS)
    state = read_state(reading, known.brokers.get(cluster, ()), *split)
    part = Slice({cluster: known.entries[cluster]}, read_specs(specs), known.findings)
    plan = build_plan(part, cluster, state, commit=known.commit)
    view = view_plan(plan)
    answer = {**describe_plan(plan, view), "changes": [*describe_changes(plan, view)]}
    return {**answer, **_plan_moves(cluster, part, state, known)}


def _plan_moves(cluster: str, part: Slice, state: ClusterState, known: Known) -> dict[str, Any]:
    """Plan the moves of one cluster; nothing if it allows none. Errors: none."""
    if known.entries[cluster].moves is None:
        return {}
    try:
        plan = build_moves(part, cluster, state, commit=known.commit)
    except FindingsError as error:
        return {"move_plan": {"status": error.findings[0].rule, "error": str(error)}}
    except ReconcilerError as error:
        return {"move_plan": {"status": "failed", "error": str(error)}}
    return {"move_plan": describe_move_plan(plan), "moves": [*describe_moves(plan)]}


def _fail(cluster: str, status: str, error: str) -> dict[str, Any]:
    return {"cluster": cluster, "status": status, "error": error, "changes": []}


def _answer_schema() -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(_ANSWER)
