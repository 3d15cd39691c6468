"""A synthetic fleet: what was asked, the same for a seed, with drift that plans find."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from reconciler.api.planning import load_estate
from reconciler.errors import UsageError
from reconciler.fleet import tables
from reconciler.fleet.generator.job import draw_table, generate_fleet, write_estate
from reconciler.fleet.generator.shapes import FleetSize, divide, draw_shapes
from reconciler.fleet.generator.specs import list_specs
from reconciler.fleet.generator.state import write_partitions
from reconciler.fleet.generator.topics import SHARES, Drift, draw_cluster_topics
from reconciler.fleet.jobs import plan_collection
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.rows import write_specs

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from reconciler.fleet.tables import LakeTable

pytestmark = pytest.mark.fleet

SIZE = FleetSize(clusters=4, topics=2_000, partitions=12_000, seed=7)
WRITTEN = (*tables.STATE, tables.SPECS)
WHEN = "20261121T030000Z"


def rows_of(spark: SparkSession, table: LakeTable, size: FleetSize = SIZE) -> list[Any]:
    return draw_table(spark, table, size).toArrow().to_pylist()


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("fleet") / "estate"
    write_estate(SIZE, directory)
    return directory


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, estate: Path) -> Lake:
    lake = Lake(spark, str(tmp_path_factory.mktemp("lake")))
    generate_fleet(lake, SIZE, WHEN, root=str(estate))
    return lake


@pytest.fixture(scope="module")
def changes(lake: Lake, estate: Path) -> dict[tuple[str, str], Row]:
    plan_collection(lake, load_estate(estate))
    made = lake.find_attempt(what="plan")
    found = lake.read(tables.CHANGES, made).collect()
    return {(row["cluster"], row["topic"]): row for row in found}


def topics_that(*kinds: Drift) -> list[tuple[str, str]]:
    """Name every topic of the fleet that drifts in one of these ways."""
    found = []
    for shape in draw_shapes(SIZE):
        topics = draw_cluster_topics(SIZE, shape.number)
        rows = np.flatnonzero(np.isin(topics.drift, kinds))
        found += [(shape.name, topics.names[row]) for row in rows if row != topics.internal]
    return found


@pytest.mark.parametrize("clusters", [1, 3, 150])
def test_live_counts_are_as_asked(clusters: int) -> None:
    size = FleetSize(clusters, 3_000, 50_000, seed=3)
    drawn = [draw_cluster_topics(size, n) for n in range(clusters)]
    assert sum(topics.live for topics in drawn) == 3_000
    assert sum(int(topics.partitions.sum()) for topics in drawn) == 50_000


def test_a_topic_of_one_partition_each_is_possible() -> None:
    topics = draw_cluster_topics(FleetSize(1, 50, 50), 0)
    assert topics.partitions[: topics.live].tolist() == [1] * 50


def test_sizes_are_skewed() -> None:
    shapes = draw_shapes(FleetSize(150, 400_000, 7_000_000))
    counts = sorted(shape.partitions for shape in shapes)
    assert counts[-1] > 20 * counts[len(counts) // 2] / 3
    assert min(shape.brokers for shape in shapes) == 3
    assert 40 <= max(shape.brokers for shape in shapes) <= 60
    assert {shape.racks for shape in shapes} == {1, 2, 3}


def test_division_is_exact_and_in_proportion() -> None:
    assert divide(10, np.array([1.0, 1.0, 2.0])).tolist() == [3, 2, 5]


def test_more_clusters_than_topics_are_refused() -> None:
    with pytest.raises(UsageError, match="every cluster needs a topic"):
        FleetSize(10, 5, 100)


def test_the_same_seed_gives_the_same_rows_however_many_draw(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in WRITTEN:
        found = sorted(map(str, rows_of(spark, table)))
        with monkeypatch.context() as patch:
            patch.setattr("reconciler.fleet.generator.job.MOST_TASKS", 1)
            assert sorted(map(str, rows_of(spark, table))) == found, table.name


def test_another_seed_gives_another_fleet(spark: SparkSession) -> None:
    other = replace(SIZE, seed=8)
    assert rows_of(spark, tables.PARTITIONS) != rows_of(spark, tables.PARTITIONS, other)


@pytest.mark.parametrize("table", WRITTEN, ids=lambda table: table.name)
def test_no_two_rows_have_the_same_key(spark: SparkSession, table: LakeTable) -> None:
    keys = Counter(tuple(row[name] for name in table.key) for row in rows_of(spark, table))
    assert max(keys.values()) == 1


def test_every_reading_is_marked(spark: SparkSession) -> None:
    assert all(row["synthetic"] for row in rows_of(spark, tables.READINGS))


def test_replicas_are_on_brokers_of_their_own_and_racks_where_there_are_three() -> None:
    for shape in draw_shapes(SIZE):
        topics = draw_cluster_topics(SIZE, shape.number)
        rows = write_partitions(SIZE.seed, shape, topics)["replicas"].to_pylist()
        turn = {broker: n % shape.racks for n, broker in enumerate(shape.ids.tolist())}
        assert all(len(set(row)) == len(row) for row in rows)
        assert all(len({turn[b] for b in row}) == min(len(row), shape.racks) for row in rows)


def test_some_replicas_lag_and_some_leaders_are_not_the_preferred(spark: SparkSession) -> None:
    rows = rows_of(spark, tables.PARTITIONS)
    assert any(len(row["in_sync"]) < len(row["replicas"]) for row in rows)
    assert any(row["leader"] not in (-1, row["replicas"][0]) for row in rows)
    assert all(row["leader"] in (-1, *row["in_sync"]) for row in rows)


def test_a_broker_is_gone_and_leads_nothing(spark: SparkSession) -> None:
    dead = {(r["cluster"], r["id"]) for r in rows_of(spark, tables.BROKERS) if not r["alive"]}
    rows = rows_of(spark, tables.PARTITIONS)
    assert dead
    assert not any((row["cluster"], row["leader"]) in dead for row in rows)
    assert any((row["cluster"], broker) in dead for row in rows for broker in row["replicas"])


def test_shares_of_drift_are_met() -> None:
    size = FleetSize(20, 20_000, 100_000)
    found = Counter(kind for n in range(20) for kind in draw_cluster_topics(size, n).drift.tolist())
    for kind, share in SHARES.items():
        assert found[kind] == pytest.approx(share * 20_000, rel=0.35, abs=21), kind.name


def test_the_files_say_what_the_specs_table_says(estate: Path) -> None:
    loaded = load_estate(estate)
    for shape in draw_shapes(SIZE):
        topics = draw_cluster_topics(SIZE, shape.number)
        drawn = write_specs(shape.name, [*list_specs(str(estate), shape, topics)])
        written = write_specs(shape.name, loaded.topics_for(shape.name))
        assert [read_fields(row) for row in drawn.to_pylist()] == [
            read_fields(row) for row in written.to_pylist()
        ]


def read_fields(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose spec is parsed: maps in JSON have no order."""
    return {**row, "spec": json.loads(row["spec"])}


def test_a_large_fleet_gets_clusters_only(tmp_path: Path) -> None:
    assert write_estate(FleetSize(3, 5_001, 6_000), tmp_path / "estate") == 0
    assert [file.name for file in (tmp_path / "estate").iterdir()] == ["clusters.yaml"]
    assert len(load_estate(tmp_path / "estate").declared) == 3


def test_a_directory_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").touch()
    with pytest.raises(UsageError, match="is not empty"):
        write_estate(SIZE, tmp_path)


@pytest.mark.parametrize(
    ("drift", "actions"),
    [
        (Drift.MISSING, {"create"}),
        (Drift.GROW, {"update", "refuse"}),  # a compacted topic has to acknowledge it
        (Drift.CONFIG, {"update", "refuse"}),  # to lower retention has to be acknowledged
        (Drift.OVERRIDE, {"update"}),
        (Drift.SHRINK, {"refuse"}),
        (Drift.REPLICATION, {"refuse"}),
        (Drift.MIXED, {"refuse"}),
        (Drift.MOVING, {"refuse"}),
    ],
)
def test_a_plan_finds_each_kind_of_drift(
    changes: dict[tuple[str, str], Row], drift: Drift, actions: set[str]
) -> None:
    wanted = topics_that(drift)
    assert wanted
    assert {changes[topic]["action"] for topic in wanted} == actions


def test_a_plan_changes_nothing_else(changes: dict[tuple[str, str], Row]) -> None:
    assert set(changes) == set(topics_that(*set(SHARES) - {Drift.UNMANAGED}))


def test_unmanaged_topics_are_counted(lake: Lake, changes: dict[tuple[str, str], Row]) -> None:
    plans = lake.read(tables.PLANS, lake.find_attempt(what="plan")).collect()
    assert sum(row["unmanaged"] for row in plans) == len(topics_that(Drift.UNMANAGED))
