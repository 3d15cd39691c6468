"""Every job of a fleet on Delta and Iceberg: the rows, codes and words of a lake of Parquet.

`make test-formats` sets up their jars, and a pyspark that they were built for. Each job is a call
of the command line. The jobs of all formats share one session; some have a process of their own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from table_formats import configure

from reconciler.cli.app import run
from reconciler.fleet import tables
from reconciler.fleet.lake.attempts import AUDIT, HISTORY, PLAN, STATE
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.session import Engine, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREPARED = os.environ.get("RECONCILER_TABLE_FORMATS")
pytestmark = [
    pytest.mark.fleet,
    pytest.mark.slow,
    pytest.mark.skipif(PREPARED is None, reason="needs jars: make test-formats"),
]

FIRST, SECOND = "20260102T030000Z", "20260104T030000Z"
NIGHTS = ("20260101T030000Z", FIRST, "20260103T030000Z", SECOND)
"""Each run of `generate --troubles` adds the collection of the day before as well."""

Rows = dict[tuple[str, str, str], list[str]]
"""The rows of each collection, kind of attempt and table."""

HEALTHY = "--cluster=prod-eu-000"
ESTATE, LAKE = "estate", "lake"
ROOTS = {"parquet": LAKE, "delta": LAKE, "iceberg": "lakes.fleet"}
OTHERS = ("delta", "iceberg")
SIZE = ("--clusters=3", "--topics=60", "--partitions=400", "--troubles")
LARGER = ("--clusters=3", "--topics=70", "--partitions=480", "--troubles")
JOBS = (
    ("generate", *SIZE, f"--collection={FIRST}", f"--estate={ESTATE}"),
    ("plan", ESTATE),
    ("history",),
    ("generate", *LARGER, f"--collection={SECOND}"),
    ("plan", ESTATE, "--out=plans"),
    ("audit", ESTATE),
    ("audit", ESTATE, HEALTHY),
    ("history",),
    ("page", "--out=page.html"),
    ("metrics", "fleet.prom"),
    ("lake", "check"),
)
"""The chain. The second audit shows one cluster, which has no error."""

CODES = (0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0)
"""`plan` exits 1 because some topics are refused, `audit` because of errors."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a job printed, and its exit code. The lake is called LAKE in every format."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Place:
    """A directory of its own, with a lake in one format."""

    session: SparkSession
    path: Path
    form: str

    @property
    def options(self) -> tuple[str, ...]:
        return ("--lake", ROOTS[self.form], "--lake-format", self.form)

    @property
    def lake(self) -> Lake:
        root = ROOTS[self.form] if self.form == "iceberg" else str(self.path / LAKE)
        return Lake(self.session, root, self.form)

    def run(self, *words: str) -> Done:
        out, err, before = StringIO(), StringIO(), Path.cwd()
        os.chdir(self.path)
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = run(["fleet", *words, *self.options])
        finally:
            os.chdir(before)
        return Done(words, code, self.rename(out.getvalue()), self.rename(err.getvalue()))

    def rename(self, said: str) -> str:
        return said.replace(str(self.path), ".").replace(ROOTS[self.form], LAKE)

    def read_rows(self) -> Rows:
        """Return the rows of each table of each attempt that counts."""
        lake = self.lake
        return {
            (one.collection, one.what, name): sorted(
                str(row.asDict(recursive=True))
                for row in lake.read(tables.TABLES[name], one).collect()
            )
            for what in (STATE, PLAN, AUDIT, HISTORY)
            for one in lake.list_attempts(what)
            for name in one.rows
        }

    def list_files(self) -> Mapping[str, int]:
        """Return the number of files of each collection that readers of the lake still see."""
        held = json.loads(self.run("lake", "list", "--format=json").out)
        return {one["collection"]: one["size"]["files"] for one in held}

    def count_stored(self) -> int:
        """Return the number of data files on the disk, whether anything still reads them or not."""
        root = self.path / LAKE if self.form == "delta" else self.path.parent / "warehouse"
        found = (path.relative_to(root).parts for path in root.rglob("*.parquet"))
        return sum("_delta_log" not in parts and parts[-2] != "metadata" for parts in found)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("formats")


@pytest.fixture(scope="module")
def spark(base: Path) -> Iterator[SparkSession]:
    """Open a session with the settings for spark-defaults.conf in docs/how-to/store-a-lake.md."""
    assert PREPARED is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(configure(Path(PREPARED), base)))
        session = open_session(Engine(master="local[2]"))
        yield session
        session.stop()


@pytest.fixture(scope="module")
def places(spark: SparkSession, base: Path) -> dict[str, Place]:
    for form in ROOTS:
        (base / form).mkdir()
    return {form: Place(spark, base / form, form) for form in ROOTS}


@pytest.fixture(scope="module")
def chains(places: dict[str, Place]) -> dict[str, list[Done]]:
    """Run the chain in every format."""
    return {form: [place.run(*words) for words in JOBS] for form, place in places.items()}


@pytest.fixture(scope="module")
def rows(places: dict[str, Place], chains: dict[str, list[Done]]) -> dict[str, Rows]:
    """Return all rows of each format after the chain."""
    return {form: place.read_rows() for form, place in places.items()}


@dataclass(frozen=True, slots=True)
class Kept:
    """What `keep` and then `remove`, twice, did to the lake of Parquet."""

    kept: Done
    rows: Rows
    removed: tuple[Done, Done]


@pytest.fixture(scope="module")
def kept_parquet(places: dict[str, Place], rows: dict[str, Rows]) -> Kept:
    place = places["parquet"]
    kept = place.run("lake", "keep", "--days=1", "--yes")
    left = place.read_rows()
    first, again = (place.run("lake", "remove", SECOND) for _ in range(2))
    assert (kept.code, first.code, again.code) == (0, 0, 0)
    return Kept(kept, left, (first, again))


def show(done: Done) -> str:
    return f"fleet {' '.join(done.words)}: exit {done.code}\n{done.out}{done.err}"


@pytest.mark.parametrize("form", ROOTS)
def test_every_job_ends_with_its_code(form: str, chains: dict[str, list[Done]]) -> None:
    for done, code in zip(chains[form], CODES, strict=True):
        assert done.code == code, show(done)
        assert "error:" not in done.err, show(done)
        assert "Traceback" not in done.err, show(done)


@pytest.mark.parametrize("form", ROOTS)
def test_every_job_publishes_what_it_made(
    form: str, places: dict[str, Place], chains: dict[str, list[Done]]
) -> None:
    lake = places[form].lake
    made = {what: [o.collection for o in lake.list_attempts(what)] for what in (STATE, PLAN, AUDIT)}
    assert made == {STATE: list(NIGHTS), PLAN: [FIRST, SECOND], AUDIT: [SECOND]}
    audits = [one for one in lake.list_published() if one.what == AUDIT]
    assert len(audits) == sum(done.words[0] == "audit" for done in chains[form])
    assert [one.collection for one in lake.list_attempts(HISTORY)] == [FIRST, SECOND]


@pytest.mark.parametrize("form", ROOTS)
def test_an_audit_fails_exactly_on_the_errors_that_it_published(
    form: str, places: dict[str, Place], chains: dict[str, list[Done]]
) -> None:
    lake = places[form].lake
    findings = lake.read(tables.FINDINGS, lake.find_attempt(SECOND, AUDIT)).collect()
    errors = [row["cluster"] for row in findings if row["severity"] == "error"]
    assert errors
    assert HEALTHY.partition("=")[2] not in errors
    (all_,) = (done for done in chains[form] if done.words == ("audit", ESTATE))
    assert all_.code == 1
    assert re.search(rf"^{SECOND}: {len(errors)} errors, \d+ warn", all_.out, re.MULTILINE)
    (one,) = (done for done in chains[form] if HEALTHY in done.words)
    assert one.code == 0
    assert re.search(rf"^{SECOND}: 0 errors, \d+ warn", one.out, re.MULTILINE)


@pytest.mark.parametrize("form", OTHERS)
def test_every_job_prints_what_it_prints_of_parquet(
    form: str, chains: dict[str, list[Done]]
) -> None:
    for done, expected in zip(chains[form], chains["parquet"], strict=True):
        assert done == expected


@pytest.mark.parametrize("form", OTHERS)
def test_every_table_has_the_rows_of_parquet(form: str, rows: dict[str, Rows]) -> None:
    expected = rows["parquet"]
    filled = {name for (_, _, name), found in expected.items() if found}
    assert filled >= {"findings", "balance", "events", "plans", "changes", "trend", "growth"}
    assert rows[form].keys() == expected.keys()
    for key, found in rows[form].items():
        assert found == expected[key], key


@pytest.mark.parametrize("form", OTHERS)
def test_page_and_metrics_and_plans_are_those_of_parquet(
    form: str, places: dict[str, Place], chains: dict[str, list[Done]]
) -> None:
    def read(of: str) -> dict[str, str]:
        place = places[of]
        files = [*place.path.glob("plans/*.json"), place.path / "page.html"]
        found = {path.name: place.rename(path.read_text()) for path in files}
        page = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "NOW", found["page.html"])
        metrics = place.rename((place.path / "fleet.prom").read_text())
        return {**found, "page.html": page, "fleet.prom": metrics}

    expected = read("parquet")
    assert len(expected) > 2
    assert read(form) == expected


@pytest.mark.parametrize("form", OTHERS)
def test_other_processes_read_the_lake_and_print_no_stack_trace(
    form: str, places: dict[str, Place], chains: dict[str, list[Done]], base: Path
) -> None:
    def start(*words: str, lake: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "reconciler", "fleet", *words, "--lake", lake]
        return subprocess.run(
            [*command, "--lake-format", form],
            cwd=places[form].path,
            env={**os.environ, "SPARK_CONF_DIR": str(base / "conf"), "CI": "true"},
            capture_output=True,
            text=True,
            check=False,
        )

    done = start("lake", "check", lake=ROOTS[form])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == chains[form][-1].out.replace(LAKE, ROOTS[form])
    missing = "lakes.missing" if form == "iceberg" else "missing"
    done = start("audit", ESTATE, lake=missing)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "lake-collection-unknown" in done.stderr


@pytest.mark.parametrize("form", OTHERS)
def test_the_format_merges_files_and_removes_what_nothing_reads(
    form: str,
    places: dict[str, Place],
    rows: dict[str, Rows],
    kept_parquet: Kept,
) -> None:
    """The settings of Spark here let a format remove at once what it replaced."""
    place = places[form]
    before, stored = place.list_files(), place.count_stored()
    assert stored >= sum(before.values())

    assert place.run("lake", "compact").code == 0
    merged = place.list_files()
    assert sum(merged.values()) < sum(before.values())
    assert place.count_stored() > stored  # the merged files are still there, for readers
    assert place.read_rows() == rows[form]

    kept = place.run("lake", "keep", "--days=1", "--yes")
    assert kept.code == 0, show(kept)
    left = place.list_files()
    assert set(left) < set(NIGHTS)
    assert SECOND in left
    assert place.count_stored() < stored
    assert place.count_stored() == sum(left.values()) + count_publications(place)
    assert place.run("lake", "check").code == 0

    assert kept == kept_parquet.kept
    assert place.read_rows() == kept_parquet.rows

    # The history of what went stays, until it is asked for again.
    for expected, kinds in zip(kept_parquet.removed, ([HISTORY], []), strict=True):
        assert place.run("lake", "remove", SECOND) == expected
        assert [one.what for one in place.lake.list_published()] == kinds


def count_publications(place: Place) -> int:
    """Return the number of files of `collections`, which are of no attempt."""
    column = "_file" if place.form == "iceberg" else "_metadata.file_path"
    return place.lake.storage.open(tables.COLLECTIONS).select(column).distinct().count()
