"""Jobs in trouble: one line with the reason and the way out, and what is sound goes on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from shorthand import cluster, topic
from small_fleets import make_specs, make_state

import reconciler
from reconciler.cli.app import run
from reconciler.fleet import tables
from reconciler.fleet.jobs import collect_fleet
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.planning import join_tables
from reconciler.fleet.trouble import explain_spark, explain_system

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fleet

WHEN, LATER = "20261121T030000Z", "20261122T030000Z"
LAYOUT = Path(__file__).parents[2] / "docs" / "reference" / "lake-layout.md"
SIZE = ["--clusters", "6", "--topics", "300", "--partitions", "3000"]


@pytest.fixture(scope="module")
def fleet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a lake of one collection, its estate, and its plans."""
    place = tmp_path_factory.mktemp("fleet")
    words = ["--lake", str(place / "lake"), "--estate", str(place / "estate"), *SIZE]
    assert run(["fleet", "generate", *words, "--collection", WHEN]) == 0
    assert plan(place, "--out", str(place / "plans")) == 1  # some of it is refused
    return place


@pytest.fixture
def copy(fleet: Path, tmp_path: Path) -> Path:
    """Return the same, to be damaged."""
    return Path(shutil.copytree(fleet, tmp_path / "copy"))


def plan(place: Path, *words: str) -> int:
    return run(["fleet", "plan", str(place / "estate"), "--lake", str(place / "lake"), *words])


def files_of(place: Path, table: str) -> list[Path]:
    return sorted((place / "lake" / table).rglob("*-state-*/**/part-*.parquet"))


def truncate(file: Path) -> set[str]:
    """Cut a file in half. Returns: the clusters that it had rows of."""
    (held,) = duckdb.sql(
        f"SELECT list(DISTINCT cluster) FROM read_parquet('{file}', hive_partitioning=true)"
    ).fetchall()
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return set(held[0])


class TestDamage:
    def test_a_truncated_file_takes_only_its_clusters_plans(
        self, fleet: Path, copy: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        hurt = truncate(files_of(copy, "partitions")[-1])
        assert plan(copy, "--out", str(copy / "new")) == 1
        said, _ = capsys.readouterr()
        kept = {path.name: path.read_text() for path in (fleet / "plans").iterdir()}
        made = {path.name: path.read_text() for path in (copy / "new").iterdir()}
        assert 0 < len(hurt) < len(kept)
        assert made == {name: text for name, text in kept.items() if name[:-5] not in hurt}
        for name in hurt:
            assert f"{name}  " in said
            assert f"partitions of {name} in {WHEN} has 0 readable rows, but" in said
        assert f"{len(hurt)} cluster" in said.splitlines()[-1]

    def test_a_cluster_without_a_plan_of_moves_keeps_no_older_one(
        self, fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """No cluster of this fleet allows moves; what an earlier run saved must not be applied."""
        names = [path.name for path in (fleet / "plans").iterdir()]
        for name in [*names, "notes.json"]:
            (tmp_path / name).write_text("{}")
        assert plan(fleet, "--moves", "--out", str(tmp_path)) == 0
        assert [path.name for path in tmp_path.iterdir()] == ["notes.json"]
        assert capsys.readouterr().out.count("allows no moves") == len(names)

    def test_a_missing_table_is_an_error(
        self, copy: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """It once read as a table without rows: no topic had a config."""
        for directory in (copy / "lake" / "configs").rglob("attempt=*-state-*"):
            shutil.rmtree(directory)
        assert plan(copy) == 1
        out, said = capsys.readouterr()
        assert out == ""
        assert "is missing from" in said
        assert said.endswith("[lake-table-missing]\n")

    @pytest.mark.slow
    def test_audit_and_page_name_a_damaged_cluster(
        self, copy: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        hurt = truncate(files_of(copy, "partitions")[-1])
        lake = ["--lake", str(copy / "lake")]
        assert run(["fleet", "audit", str(copy / "estate"), *lake, "--show", "99"]) == 1
        said, _ = capsys.readouterr()
        assert "cluster-unread" in said
        assert all(f"partitions of {name} in {WHEN} has 0" in said for name in hurt)
        page = copy / "page.html"
        assert run(["fleet", "page", *lake, "--out", str(page)]) == 0
        assert all(f"partitions of {name} in {WHEN} has 0" in page.read_text() for name in hurt)
        assert run(["fleet", "history", *lake]) == 0

    def test_a_damaged_plan_is_an_error(
        self, copy: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for file in (copy / "lake" / "changes").rglob("part-*.parquet"):
            file.unlink()
        page = copy / "page.html"
        assert run(["fleet", "page", "--lake", str(copy / "lake"), "--out", str(page)]) == 1
        _, said = capsys.readouterr()
        assert said.endswith("[lake-rows]\n")
        assert not page.exists()


def test_a_broker_is_read_once(spark: SparkSession, tmp_path: Path) -> None:
    """Where Spark loses what it has cached, it would read the cluster at another instant."""
    asked = str(tmp_path / "asked")

    def ask(batches: Any) -> Any:
        with Path(asked).open("a") as file:
            file.write("x")
        yield from batches

    states = make_state(spark, {"prod": cluster(topic("1,2 2,1", "a"), topic("1", "b"))})
    facts = join_tables(states).coalesce(1).mapInArrow(ask, tables.FACTS.schema)
    lake = Lake(spark, str(tmp_path / "lake"))
    specs = make_specs(spark, {})
    collect_fleet(lake, facts, specs, WHEN, announce=lambda _: spark.catalog.clearCache())
    assert Path(asked).read_text() == "x"
    kept = {table.name: lake.read(table, lake.find_attempt()).count() for table in tables.STATE}
    assert kept == {"readings": 1, "brokers": 3, "topics": 2, "partitions": 3, "configs": 0}
    assert not list(Path(lake.root).glob("facts/attempt=*"))


class TestNames:
    @pytest.mark.parametrize("verb", ["collect", "generate"])
    def test_a_name_that_is_no_time_is_refused(
        self, verb: str, fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        estate = [str(fleet / "estate")] if verb == "collect" else SIZE
        words = [*estate, "--lake", str(tmp_path / "lake"), "--collection", "20261399T996199Z"]
        assert run(["fleet", verb, *words]) == 1
        _, said = capsys.readouterr()
        assert "'20261399T996199Z' is not a valid time" in said
        assert not (tmp_path / "lake").exists()

    @pytest.mark.slow
    def test_a_collection_ahead_of_the_clock_is_warned_of_and_removed(
        self, copy: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ahead, lake = "20990101T000000Z", ["--lake", str(copy / "lake")]
        assert run(["fleet", "generate", *lake, *SIZE, "--collection", ahead]) == 0
        _, said = capsys.readouterr()
        assert said.startswith(f"warning: collection {ahead} is in the future")
        plan(copy)
        _, said = capsys.readouterr()
        assert f"reconciler fleet lake remove {ahead} --lake {copy / 'lake'}" in said
        assert run(["fleet", "lake", "remove", ahead, *lake]) == 0
        plan(copy, "--out", str(copy / "new"))
        _, said = capsys.readouterr()
        assert "warning" not in said


class TestReasons:
    @pytest.mark.parametrize("memory", ["300m", "lots", "2", "0g", "-1g", ""])
    def test_a_memory_that_spark_cannot_start_with_is_refused(
        self, memory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        words = ["--lake", str(tmp_path / "lake"), "--memory", memory]
        assert run(["fleet", "generate", *words]) == 64
        _, said = capsys.readouterr()
        assert said == f"error: --memory {memory}: write a size of at least 512m, as 4g\n"

    def test_a_format_that_spark_lacks_is_told_in_words(
        self, fleet: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Java's error has no Python of its own: it must not end in a traceback."""
        assert plan(fleet, "--lake-format", "no.such.format") == 1
        said = capsys.readouterr().err
        assert said.startswith("error: Spark failed: [DATA_SOURCE_NOT_FOUND]")
        assert said.count("\n") == 1

    def test_a_lake_that_cannot_be_written_is_told_in_words(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "file").touch()
        assert run(["fleet", "generate", "--lake", str(tmp_path / "file"), *SIZE]) == 1
        said = capsys.readouterr().err
        assert said.startswith(f"error: {tmp_path}/file")
        assert said.endswith("[fleet-file]\n")
        assert said.count("\n") == 1

    def test_reasons_are_found_among_what_spark_says(self) -> None:
        for said, rule in {
            "x\nCaused by: java.io.IOException: No space left on device": "fleet-disk-full",
            "java.lang.OutOfMemoryError: Java heap space": "fleet-memory",
            "An error occurred while trying to connect to the Java server": "fleet-memory",
            "Job 0 cancelled because SparkContext was shut down": "fleet-memory",
            'because the return value of "org.apache.spark.SparkContext.dagScheduler()" is null': (
                "fleet-memory"
            ),
            "": "fleet-spark",
        }.items():
            assert str(explain_spark(said)).endswith(f"[{rule}]")
        full = OSError(28, "No space left on device", "/lake/collections/x.json")
        assert "while /lake/collections/x.json is written" in str(explain_system(full))


def start(place: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """Start a job as a person does, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "reconciler", "fleet", *words],
        env={**os.environ, "PYTHONPATH": str(Path(reconciler.__file__).parents[1]), **environment},
        cwd=place,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
def test_two_jobs_at_once_lose_no_row(tmp_path: Path) -> None:
    size = ["--clusters", "20", "--topics", "20000", "--partitions", "400000"]
    names = (WHEN, LATER)
    jobs = [start(tmp_path, "generate", "--lake", "lake", *size, "--collection", n) for n in names]
    ended = [(*job.communicate(), job.returncode) for job in jobs]
    assert [code for *_, code in ended] == [0, 0], ended
    for name in names:
        files = [
            str(f) for f in (tmp_path / "lake" / "partitions").rglob(f"*{name}-*/**/*.parquet")
        ]
        assert duckdb.read_parquet(files).aggregate("count(*)").fetchall() == [(400_000,)]


SMALL_DISK = 'mkdir -p $1 && mount -t tmpfs -o size=$2 tmpfs $1 && shift 2 && exec "$@"'


@pytest.mark.slow
@pytest.mark.parametrize("full", ["lake", "spark"])
def test_a_full_disk_is_told_in_words(full: str, fleet: Path, tmp_path: Path) -> None:
    """On a file system of a few hundred kilobytes, in a name space of its own."""
    small = tmp_path / "small"
    within = ["unshare", "-rm", "sh", "-c", SMALL_DISK, "sh", str(small), "400k"]
    if subprocess.run([*within, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this account may not mount a small disk")
    lake = small / "lake" if full == "lake" else tmp_path / "lake"
    local = small if full == "spark" else tmp_path
    words = ["generate", "--lake", str(lake), "--topics", "2000", "--partitions", "100000"]
    done = subprocess.run(
        [*within, sys.executable, "-m", "reconciler", "fleet", *words],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(reconciler.__file__).parents[1]),
            "SPARK_LOCAL_DIRS": str(local),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no space is left on a disk")
    assert done.stderr.endswith("[fleet-disk-full]\n")
    assert done.stderr.count("\n") == 1


HUNGRY = """
from pyspark.sql import functions as F
from reconciler.fleet.session import Engine, open_session
from reconciler.fleet.trouble import plain_reasons

session = open_session(Engine(master="local[1]", memory="512m"))
with plain_reasons():
    session.range(10**9).agg(F.size(F.collect_list("id"))).collect()
"""


@pytest.mark.slow
def test_a_heap_that_is_too_small_is_told_in_words() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HUNGRY],
        env={**os.environ, "PYTHONPATH": str(Path(reconciler.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.splitlines()[-1]
    assert "; give it more with --memory 4g" in last
    assert last.endswith("[fleet-memory]")


def test_the_documented_query_counts_the_latest_collection(fleet: Path, copy: Path) -> None:
    """Next to an earlier collection, its plans, and one that was made again."""
    size = ["--clusters", "4", "--topics", "200", "--partitions", "1234"]
    lake = ["--lake", str(copy / "lake"), "--collection", LATER]
    for words in (SIZE, size):
        assert run(["fleet", "generate", *lake, *words]) == 0
    sql = LAYOUT.read_text().partition("```sql\n")[2].partition("```")[0]
    for place, partitions, clusters in ((fleet, 3000, 6), (copy, 1234, 4)):
        with duckdb.connect() as connection:
            asked = sql.replace("'lake/", f"'{place}/lake/")
            found = dict(connection.execute(asked).fetchall())
        assert (sum(found.values()), len(found)) == (partitions, clusters)


def test_published_rows_say_what_is_there(fleet: Path) -> None:
    """Counted by another reader."""
    for file in (fleet / "lake" / "collections").iterdir():
        published = json.loads(file.read_text())
        for table, rows in published["rows"].items():
            files = fleet / "lake" / table / f"attempt={published['attempt']}" / "*.parquet"
            found = duckdb.read_parquet(str(files)).aggregate("cluster, count(*)")
            assert dict(found.fetchall()) == rows
