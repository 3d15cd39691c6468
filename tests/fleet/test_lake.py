"""The lake: what was finished is seen, whole and once; what was not is as if it had never been."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fleets import frame

from reconciler.cli.app import run
from reconciler.errors import FleetError
from reconciler.fleet import tables
from reconciler.fleet.lake import PLAN, Lake, read_commit, start_attempt, write_commit
from reconciler.fleet.rows import make_table
from reconciler.model import Commit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.fleet.lake import Attempt

WHEN = "20261121T030000Z"
ODD = ["prod eu/1", "a=b", "ü%2F", "..", "NULL", "123", "'\"\\", "__HIVE_DEFAULT_PARTITION__x"]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, str(tmp_path / "lake"))


def append(lake: Lake, attempt: Attempt, *brokers: int, clusters: tuple[str, ...] = ("a",)) -> None:
    pairs = [(cluster, broker) for cluster in clusters for broker in brokers]
    columns = {"cluster": [c for c, _ in pairs], "id": [b for _, b in pairs]}
    lake.append(
        tables.BROKERS,
        frame(lake.session, tables.BROKERS, make_table(tables.BROKERS, columns)),
        attempt,
    )


def collect(
    lake: Lake, *brokers: int, when: str = WHEN, clusters: tuple[str, ...] = ("a",)
) -> None:
    attempt = start_attempt(when)
    append(lake, attempt, *brokers, clusters=clusters)
    lake.finish(attempt, len(clusters), None)


def ids(lake: Lake, when: str | None = None) -> list[int]:
    rows = lake.read(tables.BROKERS, lake.find_attempt(when)).collect()
    return sorted(row["id"] for row in rows)


@pytest.mark.fleet
class TestCollections:
    def test_collecting_again_replaces(self, lake: Lake, tmp_path: Path) -> None:
        collect(lake, 1, 2)
        collect(lake, 3)
        assert ids(lake) == [3]
        assert len(lake.list_attempts()) == 1
        assert len(list(tmp_path.glob("lake/brokers/*/attempt=*"))) == 1

    def test_the_latest_collection_is_found_unless_one_is_named(self, lake: Lake) -> None:
        collect(lake, 2, when="20261122T030000Z")
        collect(lake, 1)
        assert ids(lake) == [2]
        assert ids(lake, WHEN) == [1]
        found = lake.read_all(tables.BROKERS, lake.list_attempts()).collect()
        assert {(row["collection"], row["id"]) for row in found} == {
            (WHEN, 1),
            ("20261122T030000Z", 2),
        }

    def test_a_half_written_one_is_never_seen(self, lake: Lake, tmp_path: Path) -> None:
        collect(lake, 1)
        append(lake, start_attempt(WHEN), 2)
        append(lake, start_attempt("20261123T030000Z"), 3)
        assert ids(lake) == [1]
        assert [attempt.collection for attempt in lake.list_attempts()] == [WHEN]
        collect(lake, 4)
        assert ids(lake) == [4]
        left = {path.name for path in tmp_path.glob("lake/brokers/*/attempt=*")}
        assert sorted(name[8:24] for name in left) == [WHEN, "20261123T030000Z"]

    def test_reading_goes_on_while_another_is_written(self, lake: Lake) -> None:
        collect(lake, 1)
        rows = lake.read(tables.BROKERS, lake.find_attempt())
        append(lake, start_attempt("20261124T030000Z"), 2)
        assert [row["id"] for row in rows.collect()] == [1]
        assert ids(lake) == [1]

    def test_a_table_without_rows_is_empty(self, lake: Lake) -> None:
        collect(lake)
        for table in tables.STATE:
            rows = lake.read(table, lake.find_attempt())
            assert rows.columns == table.columns
            assert rows.count() == 0

    def test_names_of_clusters_may_hold_anything(self, lake: Lake) -> None:
        collect(lake, 1, clusters=tuple(ODD))
        rows = lake.read(tables.BROKERS, lake.find_attempt())
        assert sorted(row["cluster"] for row in rows.collect()) == sorted(ODD)
        for name in ODD:
            assert rows.where(rows["cluster"] == name).count() == 1

    def test_plans_stand_beside_states(self, lake: Lake) -> None:
        collect(lake, 1)
        made = start_attempt(WHEN, PLAN)
        lake.finish(made, 1, "abc")
        assert ids(lake) == [1]
        assert lake.find_attempt(what=PLAN) == replace(made, commit="abc")

    def test_reading_leaves_the_declared_columns_alone(self, lake: Lake) -> None:
        collect(lake, 1)
        before = {name: list(table.columns) for name, table in tables.TABLES.items()}
        assert ids(lake) == ids(lake) == [1]
        assert {name: table.columns for name, table in tables.TABLES.items()} == before
        assert all(t.schema.names == [f.name for f in t.schema] for t in tables.TABLES.values())

    def test_an_empty_lake_says_how_to_begin(self, lake: Lake) -> None:
        with pytest.raises(FleetError, match="holds no state; start with: reconciler fleet coll"):
            lake.find_attempt()

    def test_an_unknown_collection_is_told_the_known_ones(self, lake: Lake) -> None:
        collect(lake, 1)
        with pytest.raises(FleetError, match=f"the latest are: {WHEN}"):
            lake.find_attempt("20200101T000000Z")

    def test_a_format_that_spark_lacks_is_told_in_words(
        self, lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Java's error has no Python of its own: it must not end in a traceback."""
        (tmp_path / "clusters.yaml").write_text("version: 1\nclusters: {one: {}}\n")
        words = ["--lake", lake.root, "--lake-format", "no.such.format"]
        assert run(["fleet", "plan", str(tmp_path), *words]) == 1
        said = capsys.readouterr().err
        assert said.startswith("error: Spark gave up: [DATA_SOURCE_NOT_FOUND]")
        assert said.count("\n") == 1


KILLED = """
import os, sys
from reconciler.fleet.session import Engine, open_session
from reconciler.fleet import lake as kept, tables
from reconciler.fleet.rows import make_table

session = open_session(Engine(master="local[1]"))
lake = kept.Lake(session, sys.argv[1])
rows = make_table(tables.BROKERS, {"cluster": ["a"], "id": [9]})
lake.append(tables.BROKERS, session.createDataFrame(rows, tables.BROKERS.schema),
            kept.start_attempt(sys.argv[2]))
print("written", flush=True)
sys.stdin.read()
"""


@pytest.mark.fleet
@pytest.mark.slow
def test_a_killed_collection_is_never_seen(lake: Lake) -> None:
    """Killed between two tables, as a machine that loses its power is."""
    collect(lake, 1)
    command = [sys.executable, "-c", KILLED, lake.root, "20261125T030000Z"]
    environment = {**os.environ, "PYTHONPATH": str(Path(tables.__file__).parents[2])}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        process.send_signal(signal.SIGKILL)
    assert ids(lake) == [1]
    collect(lake, 2, when="20261125T030000Z")
    assert ids(lake) == [2]


@pytest.mark.parametrize("name", ["", "now", "20261121", "20261121T030000", "../x", f"{WHEN}\n"])
def test_a_collection_is_named_by_its_time(name: str) -> None:
    with pytest.raises(FleetError, match="is no collection; write when, as in"):
        start_attempt(name)


@pytest.mark.parametrize("commit", [None, Commit("ab12"), Commit("ab12", dirty=True)])
def test_a_commit_survives(commit: Commit | None) -> None:
    assert read_commit(write_commit(commit)) == commit
