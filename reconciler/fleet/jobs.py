"""What `reconciler fleet` runs: from sources to the lake, and from the lake to plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame

from reconciler.fleet import tables
from reconciler.fleet.audit.audit import Earlier, audit_fleet
from reconciler.fleet.audit.causes import Pending
from reconciler.fleet.audit.topics import make_expectations
from reconciler.fleet.caching import caching, computing
from reconciler.fleet.complete import read_collection
from reconciler.fleet.lake.attempts import AUDIT, PLAN, READ, Published, decode_commit, read_time
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.planning import (
    join_tables,
    plan_fleet,
    split_changes,
    split_moves,
    take_move_plans,
)
from reconciler.fleet.rows import make_table
from reconciler.fleet.source.kafka_metadata import settle_readings
from reconciler.spec.estate import Estate


@dataclass(frozen=True, slots=True)
class Collected:
    """A published collection, and the row of `readings` of each cluster."""

    attempt: Published
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
    """Add a collection to the lake: every state table, and the specs next to them.

    A cluster that could not be read is a row of `readings`; the collection is still published.
    Returns: the collection, and the reading of each cluster.
    """
    with lake.begin(collection) as draft:
        announce("reading the clusters")
        # Spark computes a DataFrame again for each use, and clusters would be read again with other
        # answers. So the facts are stored first, and every table is made from the stored rows.
        stored = draft.store(tables.FACTS, facts)
        found = stored.where(stored["table"] == tables.READINGS.name)
        settled = settle_readings(found.select(*tables.READINGS.columns).toArrow().to_pylist())
        readings = [settled[cluster] for cluster in sorted(settled)]
        columns = {name: [row[name] for row in readings] for name in tables.READINGS.columns}
        rows = make_table(tables.READINGS, columns)
        framed = lake.session.createDataFrame(rows, tables.READINGS.schema)
        draft.append(tables.READINGS, framed)
        healthy = [row["cluster"] for row in readings if row["status"] == READ]
        well = stored.where(stored["cluster"].isin(healthy))
        for table in (one for one in tables.STATE if one is not tables.READINGS):
            announce(f"writing {table.name}")
            draft.append(table, well.where(stored["table"] == table.name))
        announce("writing specs")
        draft.write(tables.SPECS, specs.sortWithinPartitions("cluster"))
        draft.drop(tables.FACTS)
        return Collected(draft.publish(len(readings), commit), readings)


def plan_collection(
    lake: Lake,
    estate: Estate,
    collection: str | None = None,
    *,
    clusters: Sequence[str] = (),
    announce: Callable[[str], None] = lambda _: None,
) -> Published:
    """Plan every cluster of a collection, or the named ones; keep the plans in the lake.

    Clusters that allow moves get a plan of moves as well.
    Returns: the attempt by which plans, changes and moves are read.
    """
    attempt = lake.find_attempt(collection)
    state = read_collection(lake, attempt)
    announce(f"planning {attempt.collection}")
    facts, commit = join_tables(state), decode_commit(attempt.commit)
    with caching() as cache, lake.begin(attempt.collection, PLAN) as draft:
        # Cached: four tables are written from the answers, and planning again could take minutes.
        answers = cache(plan_fleet(facts, state["specs"], estate, commit, clusters))
        draft.append(tables.PLANS, answers)
        draft.append(tables.CHANGES, split_changes(answers))
        draft.append(tables.MOVE_PLANS, take_move_plans(answers))
        draft.append(tables.MOVES, split_moves(answers))
        return draft.publish(answers.count(), attempt.commit)


def audit_collection(
    lake: Lake,
    estate: Estate,
    collection: str | None = None,
    *,
    announce: Callable[[str], None] = lambda _: None,
) -> Published:
    """Audit every cluster of a collection, and keep findings and balance in the lake.

    Where the collection was planned, findings say which of them the plans fix.
    Returns: the attempt by which both are read.
    """
    attempt = lake.find_attempt(collection)
    announce(f"reading {attempt.collection}")
    state = read_collection(lake, attempt)
    clusters = [row["cluster"] for row in state["readings"].select("cluster").collect()]
    expectations = make_expectations(lake.session, estate, clusters)
    with computing() as compute, lake.begin(attempt.collection, AUDIT) as draft:
        announce("looking for faults")
        audit = audit_fleet(
            state,
            state["specs"],
            expectations,
            _read_earlier(lake, attempt),
            compute=compute,
            pending=_read_pending(lake, attempt),
            limits=estate.audit,
        )
        announce("writing balance and findings")
        draft.append(tables.BALANCE, audit.balance)
        draft.append(tables.BANDS, audit.bands)
        draft.append(tables.FINDINGS, audit.findings)
        return draft.publish(len(clusters), attempt.commit)


STALLED_AFTER = timedelta(hours=20)
"""A move that takes longer is stalled. A nightly collection sees the one of the night before."""


def _read_earlier(lake: Lake, attempt: Published) -> Earlier | None:
    """Return the last collection before which a move that still runs is stalled."""
    latest = read_time(attempt.collection) - STALLED_AFTER
    before = [one for one in lake.list_attempts() if read_time(one.collection) <= latest]
    if not before:
        return None
    frames, _ = lake.read_complete([tables.PARTITIONS], before[-1:])
    since = read_time(attempt.collection) - read_time(before[-1].collection)
    days = since / timedelta(days=1)
    return Earlier(before[-1].collection, frames[tables.PARTITIONS.name], days)


def _read_pending(lake: Lake, attempt: Published) -> Pending | None:
    """Return the plans of a collection, if it was planned: they show what they will fix."""
    made = (one for one in lake.list_attempts(PLAN) if one.collection == attempt.collection)
    planned = next(made, None)
    if planned is None:
        return None
    frames = lake.read_each(tables.PLANNED, [planned])
    return Pending(*(frames[table.name].select(*table.columns) for table in tables.PLANNED))
