"""What a history says of a small fleet: each happening beside the event that it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from shorthand import brokers, cluster, topic
from small_fleets import make_state

from reconciler.fleet import tables
from reconciler.fleet.history.events import EVENT_KINDS
from reconciler.fleet.history.growth import find_drift
from reconciler.fleet.lake.attempts import PLAN
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.tracing import trace_collections
from reconciler.model.cluster import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.fleet.lake.attempts import Published

pytestmark = pytest.mark.fleet

FIRST, SECOND, THIRD, FOURTH = (f"2026112{day}T030000Z" for day in range(1, 5))
GIB = 2**30

STATES = {
    FIRST: {
        "prod": cluster(
            topic("1,2 2,3", "grows", size_bytes=(0, 0)),
            topic("1,2", "goes"),
            topic("1,2", "again", topic_id="old"),
            topic("1,2", "tuned", config={"retention.ms": "1", "flush.ms": "5"}),
            topic("1,2 2,3", "moves"),
            topic("1,2 2,3", "turns"),
            topic("1,2", "still", config={"flush.ms": "5"}),
            nodes=brokers("a", "b", "c"),
        ),
        "flaky": cluster(topic("1", "kept")),
    },
    SECOND: {
        "prod": cluster(
            topic("1,2 2,3 3,1", "grows", size_bytes=(GIB, GIB, 0)),
            topic("1,2", "comes"),
            topic("1,2", "again", topic_id="new"),
            topic("1,2", "tuned", config={"retention.ms": "2", "segment.ms": "7"}),
            topic("1,3 2,3", "moves"),
            topic("2,1 2,3", "turns"),
            topic("1,2", "still", config={"flush.ms": "5"}),
            nodes=(Broker(1, "a"), Broker(2, "b", alive=False), Broker(3, "z"), Broker(4, "c")),
        ),
        "flaky": "no answer within 10 s",
    },
    THIRD: {
        "prod": cluster(
            topic("1,2 2,3 3,1", "grows", size_bytes=(GIB, GIB, 0)),
            topic("1,2", "comes"),
            topic("1,2", "again", topic_id="new"),
            topic("1,2", "tuned", config={"retention.ms": "2", "segment.ms": "7"}),
            topic("1,3 2,3", "moves"),
            topic("2,1 2,3", "turns"),
            topic("1,2", "still", config={"flush.ms": "5"}),
            nodes=(Broker(1, "a"), Broker(2, "b"), Broker(3, "z")),
        ),
        "flaky": cluster(topic("1", "kept")),
    },
}

EXPECTED = {
    # cluster, topic, event, subject, previous, first seen, before, after, affected
    ("prod", "grows", "topic-grown", "grows", FIRST, SECOND, "2", "3", 1),
    ("prod", "goes", "topic-deleted", "goes", FIRST, SECOND, "1", None, 1),
    ("prod", "comes", "topic-created", "comes", FIRST, SECOND, None, "1", 1),
    ("prod", "again", "topic-recreated", "again", FIRST, SECOND, "old", "new", 1),
    ("prod", "tuned", "topic-configured", "flush.ms", FIRST, SECOND, "5", None, None),
    ("prod", "tuned", "topic-configured", "retention.ms", FIRST, SECOND, "1", "2", None),
    ("prod", "tuned", "topic-configured", "segment.ms", FIRST, SECOND, None, "7", None),
    ("prod", "moves", "replicas-moved", "moves", FIRST, SECOND, None, None, 1),
    ("prod", "turns", "leaders-reordered", "turns", FIRST, SECOND, None, None, 1),
    ("prod", None, "broker-down", "2", FIRST, SECOND, None, None, None),
    ("prod", None, "broker-rack-changed", "3", FIRST, SECOND, "c", "z", None),
    ("prod", None, "broker-added", "4", FIRST, SECOND, None, "c", None),
    ("prod", None, "broker-back", "2", SECOND, THIRD, None, None, None),
    ("prod", None, "broker-removed", "4", SECOND, THIRD, "c", None, None),
    ("flaky", None, "cluster-lost", "flaky", FIRST, SECOND, "read", "unreadable", None),
    ("flaky", None, "cluster-found", "flaky", SECOND, THIRD, "unreadable", "read", None),
}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Return a lake of three collections."""
    kept = Lake(spark, str(tmp_path_factory.mktemp("lake")))
    for collection, states in STATES.items():
        with kept.begin(collection) as draft:
            for name, rows in make_state(spark, states).items():
                draft.append(tables.TABLES[name], rows)
            draft.publish(len(states))
    return kept


@pytest.fixture(scope="module")
def traced(lake: Lake) -> Published:
    return trace_collections(lake)


def test_every_happening_is_one_event(lake: Lake, traced: Published) -> None:
    found = lake.read(tables.EVENTS, traced).collect()
    columns = ("cluster", "topic", "event", "subject", "previous", "first_seen", "before", "after")
    assert {tuple(row[name] for name in (*columns, "affected")) for row in found} == EXPECTED
    assert len(found) == len(EXPECTED)


def test_every_event_there_is_has_its_example() -> None:
    elsewhere = {"cluster-rebuilt", "cluster-renamed"}  # test_lake_maintenance.py
    assert {event for _, _, event, *_ in EXPECTED} == set(EVENT_KINDS) - elsewhere


def test_growth_is_from_the_first_to_the_last(lake: Lake, traced: Published) -> None:
    rows = lake.read(tables.GROWTH, traced).where("cluster = 'prod'").collect()
    found = {row["topic"]: row for row in rows}
    assert (found["grows"]["partitions_first"], found["grows"]["partitions_last"]) == (2, 3)
    assert found["grows"]["bytes_per_day"] == GIB
    assert found["still"]["bytes_per_day"] is None  # nobody knows its size
    assert (found[None]["topics_first"], found[None]["topics_last"]) == (7, 7)
    assert (found["goes"]["first_seen"], found["goes"]["last_seen"]) == (FIRST, FIRST)


def test_a_trend_has_a_row_for_each_reading(lake: Lake, traced: Published) -> None:
    rows = lake.read(tables.TREND, traced).collect()
    found = {(row["cluster"], row["seen"]): (row["brokers"], row["partitions"]) for row in rows}
    assert found == {
        ("prod", FIRST): (3, 10),
        ("prod", SECOND): (3, 11),
        ("prod", THIRD): (3, 11),
        ("flaky", FIRST): (3, 1),
        ("flaky", THIRD): (3, 1),
    }


def test_drift_lasts_from_plan_to_plan(spark: SparkSession, tmp_path: Path) -> None:
    kept = Lake(spark, str(tmp_path))
    pending = {FIRST: ["a", "b"], SECOND: ["a"], THIRD: None, FOURTH: ["a", "b"]}
    for collection, topics in pending.items():
        status = "unreadable" if topics is None else "planned"
        plans = spark.createDataFrame([("prod", status)], "cluster string, status string")
        rows = [("prod", name, "update", ["configure"]) for name in topics or ()]
        rows.append(("prod", "c", "note", []))
        schema = "cluster string, topic string, action string, steps array<string>"
        changes = spark.createDataFrame(rows, schema)
        with kept.begin(collection, PLAN) as draft:
            draft.append(tables.PLANS, _widen(plans, tables.PLANS))
            draft.append(tables.CHANGES, _widen(changes, tables.CHANGES))
            draft.publish(1)
    attempts = kept.list_attempts(PLAN)
    both = [kept.read_all(table, attempts) for table in (tables.PLANS, tables.CHANGES)]
    columns = ("topic", "first_seen", "last_seen", "gone_in", "pending", "plans", "lasted_s")
    assert {tuple(row[name] for name in columns) for row in find_drift(*both).collect()} == {
        ("a", FIRST, FOURTH, None, True, 3, 3 * 86_400),
        ("b", FIRST, FIRST, SECOND, False, 1, 86_400),
        ("b", FOURTH, FOURTH, None, True, 1, 0),
    }


def _widen(rows: DataFrame, table: tables.LakeTable) -> DataFrame:
    return rows.sparkSession.createDataFrame([], table.schema).unionByName(
        rows, allowMissingColumns=True
    )
