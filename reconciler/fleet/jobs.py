"""What `reconciler fleet` runs: from sources to the lake, and from the lake to plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.fleet import tables
from reconciler.fleet.lake import PLAN, Attempt, read_commit, start_attempt
from reconciler.fleet.planning import join_tables, plan_fleet, split_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, Row

    from reconciler.fleet.lake import Lake
    from reconciler.spec import Estate


@dataclass(frozen=True, slots=True)
class Collected:
    """A collection that was finished, and how the reading of each cluster went."""

    attempt: Attempt
    readings: Sequence[Row]


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
    readings = kept.where(kept["table"] == tables.READINGS.name).collect()
    for table in tables.STATE:
        announce(f"writing {table.name}")
        lake.append(table, kept.where(kept["table"] == table.name), attempt)
    announce("writing specs")
    lake.append(tables.SPECS, specs, attempt)
    kept.unpersist()
    lake.finish(attempt, len(readings), commit)
    return Collected(attempt, sorted(readings, key=lambda row: row["cluster"]))


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
