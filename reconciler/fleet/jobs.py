"""What `reconciler fleet` runs: from sources to the lake, and from the lake to plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reconciler.fleet import tables
from reconciler.fleet.lake import PLAN, Attempt, read_commit, start_attempt
from reconciler.fleet.planning import join_tables, plan_fleet, split_changes
from reconciler.fleet.rows import make_table
from reconciler.fleet.source.kafka_metadata import READ, settle_readings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from reconciler.fleet.lake import Lake
    from reconciler.spec import Estate


@dataclass(frozen=True, slots=True)
class Collected:
    """A collection that was finished, and how the reading of each cluster went."""

    attempt: Attempt
    readings: Sequence[Mapping[str, Any]]


def collect_fleet(
    lake: Lake,
    facts: DataFrame,
    specs: DataFrame,
    collection: str,
    *,
    commit: str | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> Collected:
    """Add a collection to the lake: every state table, and the specs beside them.

    A cluster that could not be read is a row of `readings`; the collection is finished all the
    same. Nothing of it is seen before its end.
    """
    attempt = start_attempt(collection)
    announce("reading the clusters")
    kept = facts.persist()
    rows = kept.where(kept["table"] == tables.READINGS.name).select(*tables.READINGS.columns)
    settled = settle_readings(rows.toArrow().to_pylist())
    readings = [settled[cluster] for cluster in sorted(settled)]
    _write_readings(lake, readings, attempt)
    well = kept["cluster"].isin([row["cluster"] for row in readings if row["status"] == READ])
    for table in tables.STATE[1:]:
        announce(f"writing {table.name}")
        lake.append(table, kept.where(well & (kept["table"] == table.name)), attempt)
    announce("writing specs")
    lake.append(tables.SPECS, specs, attempt)
    kept.unpersist()
    lake.finish(attempt, len(readings), commit)
    return Collected(attempt, readings)


def _write_readings(lake: Lake, readings: Sequence[Mapping[str, Any]], attempt: Attempt) -> None:
    columns = {name: [row[name] for row in readings] for name in tables.READINGS.columns}
    rows = make_table(tables.READINGS, columns)
    lake.append(
        tables.READINGS, lake.session.createDataFrame(rows, tables.READINGS.schema), attempt
    )


def plan_collection(
    lake: Lake,
    estate: Estate,
    collection: str | None = None,
    *,
    announce: Callable[[str], None] = lambda _: None,
) -> DataFrame:
    """Plan every cluster of a collection, and keep plans and changes in the lake.

    Out: `plans`.
    """
    attempt = lake.find_attempt(collection)
    facts = join_tables(_read_state(lake, attempt))
    announce(f"planning {attempt.collection}")
    specs, commit = lake.read(tables.SPECS, attempt), read_commit(attempt.commit)
    answers = plan_fleet(facts, specs, estate, commit).persist()
    made = start_attempt(attempt.collection, PLAN)
    lake.append(tables.PLANS, answers, made)
    lake.append(tables.CHANGES, split_changes(answers), made)
    count = answers.count()
    answers.unpersist()
    lake.finish(made, count, attempt.commit)
    return lake.read(tables.PLANS, made)


def _read_state(lake: Lake, attempt: Attempt) -> Mapping[str, DataFrame]:
    return {table.name: lake.read(table, attempt) for table in tables.STATE}
