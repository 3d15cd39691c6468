"""What the page shows is what the lake holds: two collections of three clusters, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from shorthand import brokers, cluster, rows, spec, topic

from reconciler.api.planning import load_estate
from reconciler.cli.app import run
from reconciler.fleet import tables
from reconciler.fleet.health import Health
from reconciler.fleet.jobs import collect_fleet, plan_collection
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.page.contents import (
    DriftPoint,
    FleetPage,
    Kept,
    PlanTotals,
    Standing,
    describe_change_row,
)
from reconciler.fleet.page.gather import gather_page
from reconciler.fleet.page.measures import measure_topics
from reconciler.fleet.planning import join_tables
from reconciler.fleet.rows import make_table, write_specs, write_state
from reconciler.model.cluster import ClusterState
from reconciler.placement.measure import measure_balance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fleet

FIRST, SECOND = "20261120T030000Z", "20261121T030000Z"
COMMIT = "9f3c2ab0" * 5
NODES = brokers("a", "b", "c", "a")
SKEWED = topic("1,2 1,3 1,2 2,3", "shop.orders")
EVEN = topic("1,2 2,3 3,4 4,1", "shop.clicks")
OFFSETS = topic("1,2 1,2 1,2", "__consumer_offsets", internal=True)  # counts in nothing below
STATES = {
    FIRST: {"prod": cluster(EVEN, nodes=NODES), "test": cluster(topic("1", "shop.orders"))},
    SECOND: {
        "prod": cluster(SKEWED, EVEN, OFFSETS, nodes=NODES),
        "test": cluster(topic("1", "odd")),
    },
}
# Broker 4 is drained: two partitions of shop.clicks leave it.
CLUSTERS = """
version: 1
clusters:
  prod: {moves: {allow: [drain], rate: 1MiB}, drain_brokers: [4]}
  test: {moves: {allow: [replication], rate: 1MiB}}
  down: {moves: {allow: [drain], rate: 1MiB}}
"""
SPECS = {
    "prod": [
        spec("shop.orders", partitions=6, replication_factor=2),
        spec("shop.clicks", partitions=2),
    ],
    "test": [spec("shop.orders", partitions=1, replication_factor=1)],
}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    estate = tmp_path_factory.mktemp("estate")
    (estate / "clusters.yaml").write_text(CLUSTERS)
    made = Lake(spark, str(tmp_path_factory.mktemp("lake")))
    specs = pa.concat_tables(write_specs(name, wanted) for name, wanted in SPECS.items())
    for collection, states in STATES.items():
        facts = join_tables(_make_state(spark, states))
        wanted = spark.createDataFrame(specs)
        collect_fleet(made, facts, wanted, collection, commit=COMMIT)
        plan_collection(made, load_estate(str(estate)), collection)
    return made


def _make_state(spark: SparkSession, states: Mapping[str, ClusterState]) -> dict[str, object]:
    """Return the state tables of some clusters, and of one more that is down."""
    readings = {
        "cluster": ["down", *states],
        "status": ["unreachable", *("read" for _ in states)],
        "error": ["connection refused", *(None for _ in states)],
        "synthetic": [False, False, True],
    }
    written = [write_state(name, state) for name, state in states.items()]
    tabled = {name: pa.concat_tables(each[name] for each in written) for name in written[0]}
    tabled["readings"] = make_table(tables.READINGS, readings)
    return {name: spark.createDataFrame(rows) for name, rows in tabled.items()}


@pytest.fixture(scope="module")
def page(lake: Lake) -> FleetPage:
    return gather_page(lake, None, "now")


def test_it_is_of_the_latest_collection(page: FleetPage) -> None:
    assert (page.collection, page.commit, page.made_at) == (SECOND, COMMIT, "now")


def test_clusters_come_worst_first(page: FleetPage) -> None:
    standings = [(cluster.name, cluster.standing) for cluster in page.clusters.rows]
    assert standings == [
        ("down", Standing.UNREADABLE),
        ("prod", Standing.REFUSED),
        ("test", Standing.PENDING),
    ]
    assert page.clusters.rows[0].trouble == ("unreachable", "connection refused")


def test_the_fleet_is_counted(page: FleetPage) -> None:
    totals = page.totals
    assert (totals.clusters, totals.read, totals.synthetic, totals.planned) == (3, 2, 1, 2)
    assert (totals.brokers, totals.topics, totals.partitions) == (7, 3, 9)
    assert totals.plan == PlanTotals(changed=2, refused=1, unchanged=0, unmanaged=1)


def test_brokers_hold_what_their_partitions_say(page: FleetPage) -> None:
    held = [(b.id, b.rack, b.leaders, b.replicas) for b in page.clusters.rows[1].brokers]
    assert held == [(1, "a", 4, 5), (4, "a", 1, 2), (2, "b", 2, 5), (3, "c", 1, 4)]


def test_drift_is_followed_through_the_collections(page: FleetPage) -> None:
    assert page.drift == (
        DriftPoint(FIRST, planned=2, unplanned=1, changed=1, refused=1, unchanged=1),
        DriftPoint(SECOND, planned=2, unplanned=1, changed=2, refused=1, unchanged=0),
    )
    drifts = {cluster.name: cluster.drifts for cluster in page.clusters.rows}
    assert drifts == {"down": (None, None), "prod": (2, 2), "test": (0, 1)}


def test_drift_ends_with_the_collection_that_is_reported(lake: Lake) -> None:
    earlier = gather_page(lake, FIRST, "now")
    assert [point.collection for point in earlier.drift] == [FIRST]


def test_plans_of_moves_are_those_that_move_something(page: FleetPage) -> None:
    """The cluster `test` allows moves and needs none, `down` was not read."""
    (row,) = page.rows("moves")
    assert (row["cluster"], row["changed"], row["partitions"], row["replicas"]) == ("prod", 1, 2, 2)
    assert (row["drained"], row["refused"], row["seconds"]) == ([4], 0, None)
    assert page.tables["moves"].total == 1


def test_the_least_even_topics_come_with_what_the_plan_does(page: FleetPage) -> None:
    (worst,) = page.rows("topics")
    assert (worst["cluster"], worst["topic"], worst["partitions"]) == ("prod", "shop.orders", 4)
    assert (worst["leader_skew"], worst["replica_skew"], worst["action"]) == (3, 3, "update")
    assert page.tables["topics"].total == 1


def test_refusals_come_first_with_their_reasons(page: FleetPage) -> None:
    refused, *others = page.rows("changes")
    assert (refused["topic"], refused["action"], refused["refusals"]) == (
        "shop.clicks",
        "refuse",
        ["partitions-never-shrink"],
    )
    assert "4 → 2 partitions" in refused["reasons"][0]
    place = f"{refused['file']}:{refused['line']}"
    assert describe_change_row(refused) == f"partitions 4 → 2 ({place})"
    assert [(row["topic"], row["action"], describe_change_row(row)) for row in others] == [
        ("shop.orders", "update", "4 → 6 partitions"),
        ("shop.orders", "create", "1 partition"),
    ]
    assert page.tables["changes"].total == 3


def test_the_page_opens_with_problems_and_the_topics_that_have_them(page: FleetPage) -> None:
    assert (page.health.offline, page.health.brokers_down) == (0, 0)
    assert page.tables["problems"] == Kept()
    assert [cluster.health for cluster in page.clusters.rows] == [
        Health.UNREAD,
        Health.HEALTHY,
        Health.HEALTHY,
    ]


def test_topics_are_listed_without_internal_ones(page: FleetPage) -> None:
    found = [
        (row["topic"], row["partitions"], row["least"], row["most"])
        for row in page.rows("inventory")
    ]
    assert found == [("shop.clicks", 4, 2, 2), ("shop.orders", 4, 2, 2), ("odd", 1, 1, 1)]
    assert describe_change_row(page.rows("inventory")[1]) == "4 → 6 partitions"
    assert page.tables["inventory"].total == 3
    assert page.rows("trend") == ()


def test_skew_is_what_the_measure_of_placements_says(spark: SparkSession) -> None:
    shapes = {
        "idle": rows("1,2 1,2"),
        "level": rows("1,2 2,3 3,4 4,1"),
        "narrow": rows("4"),
        "wide": rows("1,2,3 2,1,4 2,3,1 2,4,1 2,1,3"),
    }
    state = cluster(*(topic(shape, name) for name, shape in shapes.items()), nodes=NODES)
    found = {name: spark.createDataFrame(t) for name, t in write_state("prod", state).items()}
    measured = measure_topics(found["partitions"], found["brokers"]).collect()
    assert {row["topic"]: (row["leader_skew"], row["replica_skew"]) for row in measured} == {
        name: (balance.leaders.skew, balance.replicas.skew)
        for name, shape in shapes.items()
        for balance in [measure_balance([shape], [broker.id for broker in NODES])]
    }


def test_the_command_writes_the_page(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    words = ["fleet", "page", "--lake", lake.root, "--out", str(out), "--collection", FIRST]
    code = run(words)
    said = capsys.readouterr()
    assert (code, said.out) == (0, "")
    assert f"wrote {out}" in said.err
    assert f"Collection <b>{FIRST}</b>" in out.read_text(encoding="utf-8")


def test_a_place_that_cannot_be_written_is_told_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "no" / "page.html"
    assert run(["fleet", "page", "--lake", "x", "--out", str(out)]) == 64
    assert "is not a directory" in capsys.readouterr().err
