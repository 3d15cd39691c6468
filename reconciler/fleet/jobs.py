"""What `reconciler fleet` runs: from sources to the lake, and from the lake to plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reconciler.fleet import READ, tables
from reconciler.fleet.audit import audit_fleet, make_expectations
from reconciler.fleet.history import (
    describe_topics,
    find_drift,
    find_events,
    measure_growth,
    measure_trend,
    number_readings,
)
from reconciler.fleet.lake import AUDIT, HISTORY, PLAN, Attempt, read_commit, start_attempt
from reconciler.fleet.planning import join_tables, plan_fleet, split_changes
from reconciler.fleet.rows import make_table
from reconciler.fleet.source.kafka_metadata import settle_readings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from reconciler.fleet.lake import Lake
    from reconciler.fleet.tables import Table
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
    for table in (one for one in tables.STATE if one is not tables.READINGS):
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
    clusters: Sequence[str] = (),
    announce: Callable[[str], None] = lambda _: None,
) -> DataFrame:
    """Plan every cluster of a collection, or those named; keep plans and changes in the lake.

    Out: `plans`.
    """
    attempt = lake.find_attempt(collection)
    facts = join_tables(_read_state(lake, attempt))
    announce(f"planning {attempt.collection}")
    specs, commit = lake.read(tables.SPECS, attempt), read_commit(attempt.commit)
    answers = plan_fleet(facts, specs, estate, commit, clusters).persist()
    made = start_attempt(attempt.collection, PLAN)
    lake.append(tables.PLANS, answers, made)
    lake.append(tables.CHANGES, split_changes(answers), made)
    count = answers.count()
    answers.unpersist()
    lake.finish(made, count, attempt.commit)
    return lake.read(tables.PLANS, made)


def audit_collection(
    lake: Lake,
    estate: Estate,
    collection: str | None = None,
    *,
    announce: Callable[[str], None] = lambda _: None,
) -> Attempt:
    """Audit every cluster of a collection, and keep findings and balance in the lake.

    Returns: the attempt by which both are read.
    """
    attempt = lake.find_attempt(collection)
    state = _read_state(lake, attempt)
    announce(f"reading {attempt.collection}")
    clusters = [row["cluster"] for row in state["readings"].select("cluster").collect()]
    expectations = make_expectations(lake.session, estate, clusters)
    audit = audit_fleet(state, lake.read(tables.SPECS, attempt), expectations)
    made = start_attempt(attempt.collection, AUDIT)
    announce("counting leaders and replicas")
    _append_gathered(lake, tables.BALANCE, audit.balance, made)
    announce("looking for faults")
    _append_gathered(lake, tables.FINDINGS, audit.findings, made)
    audit.topics.unpersist()
    lake.finish(made, len(clusters), attempt.commit)
    return made


def trace_collections(
    lake: Lake,
    since: str | None = None,
    *,
    announce: Callable[[str], None] = lambda _: None,
) -> Attempt:
    """Compare the collections of a lake, and keep events, growth, trend and drift in it.

    `since` leaves out what was first seen before; the last collection before it is what the first
    one after is compared with. Returns: the attempt by which the tables are read. Errors:
    FleetError where there is no collection.
    """
    made = start_attempt(lake.find_attempt().collection, HISTORY)
    attempts = _choose_since(lake.list_attempts(), since)
    state = {table.name: lake.read_all(table, attempts) for table in tables.STATE}
    numbered = number_readings(state["readings"]).persist()
    topics = describe_topics(state, numbered).persist()
    brokers = state["brokers"].join(numbered, ["cluster", "collection"], how="inner")
    announce(f"comparing {len(attempts)} collections")
    events = find_events(topics, brokers, state["readings"])
    _append_gathered(lake, tables.EVENTS, events, made)
    announce("measuring growth")
    trend = measure_trend(topics, brokers, numbered)
    _append_gathered(lake, tables.TREND, trend, made)
    _append_gathered(lake, tables.GROWTH, measure_growth(topics, trend), made)
    topics.unpersist()
    if plans := _choose_since(lake.list_attempts(PLAN), since):
        announce(f"comparing {len(plans)} plans")
        asked = (lake.read_all(table, plans) for table in (tables.PLANS, tables.CHANGES))
        _append_gathered(lake, tables.DRIFT, find_drift(*asked), made)
    clusters = numbered.select("cluster").distinct().count()
    numbered.unpersist()
    lake.finish(made, clusters, None)
    return made


def _append_gathered(lake: Lake, table: Table, rows: DataFrame, attempt: Attempt) -> None:
    """Add rows that many tasks have of each cluster: a file a cluster, not one a task besides."""
    lake.append(table, rows.repartition("cluster"), attempt)


def _choose_since(attempts: Sequence[Attempt], since: str | None) -> list[Attempt]:
    """Return the attempts since then, and the one before them."""
    before = [attempt for attempt in attempts if attempt.collection < (since or "")]
    return [*before[-1:], *attempts[len(before) :]]


def _read_state(lake: Lake, attempt: Attempt) -> Mapping[str, DataFrame]:
    return {table.name: lake.read(table, attempt) for table in tables.STATE}
