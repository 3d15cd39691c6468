"""The lake: what was published is read, all of it and once; what was not is never read."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from fleets import frame
from pyspark.errors import PySparkException
from pyspark.sql.conversion import LocalDataToArrowConversion

from reconciler.cli.app import run
from reconciler.errors import LakeError
from reconciler.fleet import tables
from reconciler.fleet.lake.attempts import (
    PLAN,
    decode_commit,
    encode_commit,
    find_ahead,
    list_fields,
    start_attempt,
)
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.lake.storage import LISTING, LISTING_DEFAULT, Storage
from reconciler.fleet.lake.stores import SILENT, LocalStore, SparkStore
from reconciler.fleet.rows import make_table
from reconciler.fleet.session import SHUFFLES
from reconciler.model.plan import Commit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.fleet.lake.attempts import Published

WHEN, LATER = "20261121T030000Z", "20261122T030000Z"
ODD = ["prod eu/1", "a=b", "ü%2F", "..", "NULL", "123", "'\"\\", "__HIVE_DEFAULT_PARTITION__x"]
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "lake-layout.md"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, str(tmp_path / "lake"))


@pytest.fixture(params=["", " of [us]{x}*"], ids=["plain", "odd"])
def odd_lake(request: Any, spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, f"{tmp_path}/lake{request.param}")


def frame_brokers(lake: Lake, *brokers: int, clusters: tuple[str, ...] = ("a",)) -> DataFrame:
    pairs = [(cluster, broker) for cluster in clusters for broker in brokers]
    columns = {"cluster": [c for c, _ in pairs], "id": [b for _, b in pairs]}
    return frame(lake.session, tables.BROKERS, make_table(tables.BROKERS, columns))


def collect(
    lake: Lake, *brokers: int, when: str = WHEN, clusters: tuple[str, ...] = ("a",)
) -> Published:
    with lake.begin(when) as draft:
        draft.append(tables.BROKERS, frame_brokers(lake, *brokers, clusters=clusters))
        return draft.publish(len(clusters))


def ids(lake: Lake, when: str | None = None) -> list[int]:
    rows = lake.read(tables.BROKERS, lake.find_attempt(when)).collect()
    return sorted(row["id"] for row in rows)


def files_of(lake: Lake, table: str = "brokers") -> list[Path]:
    return sorted(Path(lake.root).glob(f"{table}/attempt=*/part-*.parquet"))


def directories(lake: Lake) -> set[str]:
    return {path.name for path in Path(lake.root).glob("*/attempt=*")}


def job_ids(spark: SparkSession) -> set[int]:
    return set(spark.sparkContext.statusTracker().getJobIdsForGroup())


def said(error: pytest.ExceptionInfo[LakeError]) -> str:
    (finding,) = error.value.findings
    assert str(error.value).count("\n") == 0
    return str(finding)


@pytest.mark.fleet
class TestCollections:
    def test_collecting_again_replaces(self, lake: Lake) -> None:
        collect(lake, 1, 2)
        collect(lake, 3)
        assert ids(lake) == [3]
        assert len(lake.list_attempts()) == 1

    def test_the_latest_collection_is_found_unless_one_is_named(self, odd_lake: Lake) -> None:
        lake = odd_lake
        collect(lake, 2, when=LATER)
        collect(lake, 1)
        assert ids(lake) == [2]
        assert ids(lake, WHEN) == [1]
        found = lake.read_all(tables.BROKERS, lake.list_attempts()).collect()
        assert {(row["collection"], row["id"]) for row in found} == {(WHEN, 1), (LATER, 2)}

    def test_a_job_counts_an_attempt_once(self, spark: SparkSession, tmp_path: Path) -> None:
        lake = Lake(spark, str(tmp_path / "lake"), counts_once=True)
        collect(lake, 1, 2)
        ran = job_ids(spark)
        rows = lake.read(tables.BROKERS, lake.find_attempt())
        assert job_ids(spark) == ran  # the publication has counted them
        assert sorted(row["id"] for row in rows.collect()) == [1, 2]
        again = Lake(spark, lake.root, counts_once=True)
        again.read(tables.BROKERS, again.find_attempt())
        ran = job_ids(spark)
        again.read(tables.BROKERS, again.find_attempt())
        assert job_ids(spark) == ran
        for file in files_of(lake):
            file.unlink()
        with pytest.raises(PySparkException):  # never fewer rows
            again.read(tables.BROKERS, again.find_attempt()).collect()

    def test_reading_goes_on_while_another_is_written(self, lake: Lake) -> None:
        collect(lake, 1)
        rows = lake.read(tables.BROKERS, lake.find_attempt())
        with lake.begin(WHEN) as draft:
            draft.append(tables.BROKERS, frame_brokers(lake, 2))
            assert [row["id"] for row in rows.collect()] == [1]
            assert ids(lake) == [1]
            draft.publish(1)
        assert [row["id"] for row in rows.collect()] == [1]
        assert ids(lake) == [2]

    def test_a_table_without_rows_is_empty(self, lake: Lake) -> None:
        with lake.begin(WHEN) as draft:
            for table in tables.STATE:
                draft.append(table, frame(lake.session, table, make_table(table, {})))
            draft.publish(0)
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

    def test_plans_are_next_to_states(self, lake: Lake) -> None:
        collect(lake, 1)
        with lake.begin(WHEN, PLAN) as draft:
            made = draft.publish(1, "abc")
        assert ids(lake) == [1]
        assert lake.find_attempt(what=PLAN) == made
        assert made.commit == "abc"

    def test_an_empty_lake_says_how_to_begin(self, lake: Lake) -> None:
        with pytest.raises(LakeError) as error:
            lake.find_attempt()
        way_out = "start with: reconciler fleet collect [lake-collection-unknown]"
        assert f"holds no state; {way_out}" in said(error)

    def test_an_unknown_collection_is_told_the_known_ones(self, lake: Lake) -> None:
        collect(lake, 1)
        with pytest.raises(LakeError, match=f"the latest are: {WHEN}"):
            lake.find_attempt("20200101T000000Z")


@pytest.mark.fleet
class TestLayout:
    def test_clusters_share_files_and_are_sorted_in_them(self, lake: Lake) -> None:
        names = tuple(f"c-{number:03}" for number in range(150))
        collect(lake, *range(5), clusters=names)
        files = files_of(lake)
        assert len(files) <= 4  # as many as a small session has parts of a shuffle
        for file in files:
            held = [c for (c,) in duckdb.read_parquet(str(file)).project("cluster").fetchall()]
            assert held == sorted(held)

    def test_an_attempt_shares_no_directory(self, lake: Lake) -> None:
        """Spark's `_temporary` is one for a directory, and the first to commit removes it."""
        with lake.begin(WHEN) as one, lake.begin(WHEN) as other:
            one.append(tables.BROKERS, frame_brokers(lake, 1))
            other.append(tables.BROKERS, frame_brokers(lake, 2))
            assert one.attempt.id != other.attempt.id
            assert len(directories(lake)) == 2
            places = {file.parent for file in files_of(lake)}
            assert len(places) == 2

    def test_it_is_published_by_one_file_that_counts_its_rows(self, lake: Lake) -> None:
        collect(lake, 1, 2, clusters=("a", "b"))
        (file,) = Path(lake.root, "collections").iterdir()
        kept = json.loads(file.read_text())
        assert kept["rows"] == {"brokers": {"a": 2, "b": 2}}
        assert (kept["collection"], kept["what"], kept["version"]) == (WHEN, "state", 2)

    def test_the_documented_query_answers_beside_what_a_killed_job_left(self, lake: Lake) -> None:
        """A glob over the whole table would meet half a file."""
        collect(lake, 1, 2, clusters=("prod-eu", "prod-us"))
        place = Path(lake.root)
        shutil.copytree(place / "brokers", place / "partitions")
        for left in ("_temporary/0/_temporary/attempt_1_m_0", "."):
            killed = place / "partitions" / f"attempt={LATER}-state-00000000" / left
            killed.mkdir(parents=True, exist_ok=True)
            (killed / "part-00000-half.parquet").write_bytes(b"PAR1half")
        sql = PAGE.read_text().partition("```sql\n")[2].partition("```")[0]
        with duckdb.connect() as connection:
            found = connection.execute(sql.replace("'lake/", f"'{place}/")).fetchall()
        assert sorted(found) == [("prod-eu", 2), ("prod-us", 2)]


@pytest.mark.fleet
class TestUnpublished:
    def test_it_is_never_read(self, lake: Lake) -> None:
        collect(lake, 1)
        with lake.begin(WHEN) as same, lake.begin(LATER) as later:
            same.append(tables.BROKERS, frame_brokers(lake, 2))
            later.append(tables.BROKERS, frame_brokers(lake, 3))
            assert ids(lake) == [1]
            assert [attempt.collection for attempt in lake.list_attempts()] == [WHEN]

    def test_who_finishes_first_removes_no_running_attempt(self, lake: Lake) -> None:
        with lake.begin(WHEN) as slow:
            slow.append(tables.BROKERS, frame_brokers(lake, 1, 2, 3))
            collect(lake, 9)
            assert ids(lake) == [9]
            slow.publish(1)
        assert ids(lake) == [1, 2, 3]

    def test_an_attempt_that_fails_leaves_nothing(self, lake: Lake) -> None:
        def fail() -> None:
            with lake.begin(WHEN) as draft:
                draft.append(tables.BROKERS, frame_brokers(lake, 1))
                assert directories(lake) == {f"attempt={draft.attempt.id}"}
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail()
        assert directories(lake) == set()

    def test_lost_rows_are_not_published(self, lake: Lake) -> None:
        with lake.begin(WHEN) as draft:
            draft.append(tables.BROKERS, frame_brokers(lake, 1, 2, clusters=("a", "b", "c")))
            files_of(lake)[-1].unlink()
            with pytest.raises(LakeError) as error:
                draft.publish(1)
        assert "lacks rows of brokers that" in said(error)
        assert said(error).endswith("[lake-write]")
        assert lake.list_attempts() == ()

    def test_a_removed_table_is_not_published(self, lake: Lake) -> None:
        with lake.begin(WHEN) as draft:
            draft.append(tables.BROKERS, frame_brokers(lake))
            shutil.rmtree(files_of(lake)[0].parent)
            with pytest.raises(LakeError, match="lake-write"):
                draft.publish(1)


@pytest.mark.fleet
class TestDamage:
    """A published collection that lost something is named, and never read as smaller."""

    def test_a_missing_file_is_named(self, lake: Lake) -> None:
        collect(lake, 1, 2, clusters=("a", "b", "c", "d", "e", "f"))
        files_of(lake)[0].unlink()
        with pytest.raises(LakeError) as error:
            lake.read(tables.BROKERS, lake.find_attempt())
        assert "brokers of " in said(error)
        assert "has 0 readable rows, but 2 were published" in said(error)
        assert f"reconciler fleet lake remove {WHEN} --lake {lake.root} [lake-rows]" in said(error)

    def test_a_missing_table_is_named(self, lake: Lake) -> None:
        collect(lake, 1)
        shutil.rmtree(files_of(lake)[0].parent)
        with pytest.raises(LakeError) as error:
            lake.read(tables.BROKERS, lake.find_attempt())
        assert f"{lake.root}/brokers/attempt={WHEN}-state-" in said(error)
        assert said(error).endswith("[lake-table-missing]")

    def test_a_table_that_was_never_written_is_named(self, lake: Lake) -> None:
        collect(lake, 1)
        with pytest.raises(
            LakeError, match=r"topics of 2026.* is missing from .*lake-table-missing"
        ):
            lake.read(tables.TOPICS, lake.find_attempt())

    def test_a_truncated_file_is_named(self, lake: Lake) -> None:
        collect(lake, 1, 2)
        truncate(files_of(lake)[-1])
        with pytest.raises(LakeError, match=r"brokers of a in .* has 0 readable rows, but 2"):
            lake.read(tables.BROKERS, lake.find_attempt())

    def test_more_rows_than_were_published_are_named(self, lake: Lake) -> None:
        collect(lake, 1)
        file = files_of(lake)[-1]
        shutil.copy(file, file.with_name("part-00009-copy.parquet"))
        with pytest.raises(LakeError, match=r"has 2 readable rows, but 1 were published"):
            lake.read(tables.BROKERS, lake.find_attempt())

    def test_a_publication_cut_short_is_named(self, lake: Lake) -> None:
        collect(lake, 1)
        (file,) = Path(lake.root, "collections").iterdir()
        file.write_text(file.read_text()[:40])
        with pytest.raises(LakeError) as error:
            lake.list_attempts()
        assert f"{file} is not a complete publication" in said(error)

    def test_a_publication_without_counts_is_named(self, lake: Lake) -> None:
        made = collect(lake, 1)
        (file,) = Path(lake.root, "collections").iterdir()
        file.write_text(json.dumps({"collection": made.collection, "version": 2}))
        with pytest.raises(LakeError, match=r"is not a complete publication.*lake-publication"):
            lake.list_attempts()

    @pytest.mark.parametrize(
        "edit",
        [
            {"attempt": f"{WHEN}-state-1/../../../kept"},
            {"attempt": f"{WHEN}-state-*"},
            {"attempt": f"{WHEN}-state-1' OR '1'='1"},
            {"attempt": f"{LATER}-state-00000000"},
            {"what": "plan"},
            {"rows": {"brokers": {"a": "many"}}},
        ],
        ids=str,
    )
    def test_a_publication_of_what_no_job_writes_is_named(
        self, edit: dict[str, Any], lake: Lake
    ) -> None:
        """An attempt is the name of directories, which a removal removes."""
        collect(lake, 1)
        (file,) = Path(lake.root, "collections").iterdir()
        file.write_text(json.dumps(json.loads(file.read_text()) | edit))
        with pytest.raises(LakeError, match=r"is not a complete publication.*lake-publication"):
            lake.remove([WHEN])
        assert len(files_of(lake)) > 0


@pytest.mark.fleet
class TestVersions:
    @pytest.mark.parametrize("verb", ["plan", "audit", "history", "page", "generate", "remove"])
    def test_every_job_names_another_layout_and_touches_nothing(
        self, verb: str, lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "estate").mkdir()
        file = Path(lake.root, "collections", f"{WHEN}-state-00000000.json")
        file.parent.mkdir(parents=True)
        file.write_text('{"version": 1, "rows": "elsewhere"}')
        before = sorted(Path(lake.root).rglob("*"))
        words = {
            "plan": ["plan", str(tmp_path / "estate")],
            "audit": ["audit", str(tmp_path / "estate")],
            "page": ["page", "--out", str(tmp_path / "page.html")],
            "remove": ["lake", "remove", WHEN],
        }.get(verb, [verb])
        assert run(["fleet", *words, "--lake", lake.root]) == 1
        out, said = capsys.readouterr()
        assert out == ""
        assert said == (
            f"error: {file} has layout version 1; this release reads 2; collect"
            " into a new directory, or read this one with the release that wrote it"
            " [lake-version]\n"
        )
        assert sorted(Path(lake.root).rglob("*")) == before

    def test_a_later_layout_is_named(self, lake: Lake) -> None:
        collect(lake, 1)
        (file,) = Path(lake.root, "collections").iterdir()
        file.write_text(
            json.dumps(json.loads(file.read_text()) | {"version": 3, "rows": "elsewhere"})
        )
        with pytest.raises(LakeError, match=r"has layout version 3; this release reads 2"):
            lake.list_attempts()


@pytest.mark.fleet
class TestCleaning:
    def leave(self, lake: Lake, host: str | None = None) -> Path:
        """Leave what a killed job leaves: rows, and a lock that nobody holds. Returns: the lock."""
        with ExitStack() as left:
            draft = left.enter_context(lake.begin(WHEN))
            draft.append(tables.BROKERS, frame_brokers(lake, 7))
            kept = Path(lake.root, "running", draft.attempt.id)
            shutil.copytree(lake.root, f"{lake.root}.left")
        shutil.copytree(f"{lake.root}.left", lake.root, dirs_exist_ok=True)
        shutil.rmtree(f"{lake.root}.left")
        if host is not None:
            kept.write_text(json.dumps({"host": host}))
        return kept

    def test_what_a_dead_job_left_goes_with_the_next_one(self, lake: Lake) -> None:
        left = self.leave(lake)
        assert directories(lake) == {f"attempt={left.name}"}
        made = collect(lake, 1)
        assert directories(lake) == {f"attempt={made.id}"}

    def test_an_attempt_of_another_machine_may_live_for_a_day(self, lake: Lake) -> None:
        left = self.leave(lake, host="elsewhere")
        collect(lake, 1)
        assert f"attempt={left.name}" in directories(lake)
        long_ago = (datetime.now(UTC) - SILENT - timedelta(hours=1)).timestamp()
        os.utime(left, (long_ago, long_ago))
        collect(lake, 1)
        assert f"attempt={left.name}" not in directories(lake)

    def test_an_attempt_without_a_lock_is_left_alone(self, lake: Lake) -> None:
        """As a Connect server's is: nobody can prove that it is dead."""
        left = self.leave(lake)
        left.unlink()
        collect(lake, 1)
        assert f"attempt={left.name}" in directories(lake)

    def test_the_lock_of_a_published_attempt_goes(self, lake: Lake) -> None:
        """Its job was killed between its publication and its end."""
        left = self.leave(lake)
        made = collect(lake, 1)
        kept = left.rename(left.with_name(made.id))
        collect(lake, 2)
        assert not kept.exists()
        assert f"attempt={made.id}" in directories(lake)

    def test_the_lock_of_a_dead_job_goes_when_nothing_can_come_after_it(self, lake: Lake) -> None:
        left = self.leave(lake)
        store = LocalStore(Path(lake.root))
        now = datetime.now(UTC)
        for at, is_there in (
            (now, True),
            (now, True),
            (now + SILENT + timedelta(minutes=1), False),
        ):
            store.clean(at)
            assert left.exists() == is_there

    def test_a_lock_that_has_no_name_yet_is_not_asked_for(self, lake: Lake) -> None:
        """Whoever asked would hold it in the moment in which its job wants it."""
        nameless = Path(lake.root, "running", ".part-x-y")
        nameless.parent.mkdir(parents=True)
        nameless.write_text(json.dumps({"host": socket.gethostname()}))
        LocalStore(Path(lake.root)).clean(datetime.now(UTC) + 2 * SILENT)
        assert nameless.exists()

    def test_a_lock_that_another_cleaner_removed_is_no_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between the moment in which we open it and the moment in which it is ours."""
        lock = tmp_path / "running" / f"{WHEN}-state-00000000"
        lock.parent.mkdir()
        lock.write_text(json.dumps({"host": socket.gethostname()}))
        take = fcntl.flock

        def take_late(handle: int, how: int) -> None:
            lock.unlink()
            take(handle, how)

        monkeypatch.setattr(fcntl, "flock", take_late)
        LocalStore(tmp_path).clean(datetime.now(UTC) + 2 * SILENT)

    def test_superseded_attempts_go_after_a_day(self, lake: Lake) -> None:
        """Until then a job that found them may read them."""
        first = collect(lake, 1)
        rows = lake.read(tables.BROKERS, first)
        second = collect(lake, 2)
        assert [row["id"] for row in rows.collect()] == [1]
        LocalStore(Path(lake.root)).clean(datetime.now(UTC) + SILENT + timedelta(minutes=1))
        assert directories(lake) == {f"attempt={second.id}"}
        assert ids(lake) == [2]


@pytest.mark.fleet
class TestRemoving:
    def test_a_collection_goes_with_all_that_was_made_of_it(
        self, lake: Lake, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ahead = "20990101T000000Z"
        collect(lake, 1)
        collect(lake, 9, when=ahead)
        with lake.begin(ahead, PLAN) as draft:
            draft.publish(1)
        assert run(["fleet", "lake", "remove", ahead, "--lake", lake.root]) == 0
        assert (
            f"removed {ahead} from {lake.root}: 2 attempts (plan, state)" in capsys.readouterr().out
        )
        assert ids(lake) == [1]
        assert not any(ahead in name for name in directories(lake))

    def test_a_running_attempt_stays(self, lake: Lake) -> None:
        collect(lake, 1)
        with lake.begin(WHEN) as draft:
            draft.append(tables.BROKERS, frame_brokers(lake, 2))
            lake.remove([WHEN])
            assert lake.list_attempts() == ()
            draft.publish(1)
        assert ids(lake) == [2]

    def test_what_a_killed_removal_left_goes_with_the_next_job(
        self, lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = collect(lake, 1)

        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(LocalStore, "discard", stop)
            with pytest.raises(KeyboardInterrupt):
                lake.remove([WHEN])
        assert lake.list_attempts() == ()
        assert directories(lake) == {f"attempt={made.id}"}
        kept = collect(lake, 2)
        assert directories(lake) == {f"attempt={kept.id}"}

    def test_it_needs_no_spark_on_this_machine(self, lake: Lake, tmp_path: Path) -> None:
        collect(lake, 1)
        shutil.copytree(lake.root, tmp_path / "copy")
        command = [sys.executable, "-m", "reconciler", "fleet", "lake", "remove", WHEN]
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(tables.__file__).parents[2]),
            "JAVA_HOME": str(tmp_path / "none"),
            "PATH": "",
        }
        for root in (lake.root, f"file:{tmp_path}/copy"):
            done = subprocess.run(
                [*command, "--lake", root],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            said = f"removed {WHEN} from {root}: 1 attempt (state)\n"
            assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
            assert not list(Path(root.removeprefix("file:")).glob("*/*"))

    def test_its_help_says_what_goes(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["fleet", "lake", "remove", "-h"]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "Remove COLLECTION, as 20261121T030000Z, and the plans, audits and history" in said
        assert "An attempt that a job is still writing stays." in said

    def test_where_there_is_no_lake_there_is_no_collection(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        nowhere = str(tmp_path / "nowhere")
        assert run(["fleet", "lake", "remove", WHEN, "--lake", nowhere]) == 1
        said = capsys.readouterr().err
        assert f"{nowhere} holds no collection {WHEN}; there is none at all [lake-coll" in said
        assert not Path(nowhere).exists()

    def test_an_unknown_one_is_told_the_known_ones(
        self, lake: Lake, capsys: pytest.CaptureFixture[str]
    ) -> None:
        collect(lake, 1)
        assert run(["fleet", "lake", "remove", LATER, "--lake", lake.root]) == 1
        assert f"holds no collection {LATER}; the latest are: {WHEN}" in capsys.readouterr().err
        assert ids(lake) == [1]


@pytest.mark.fleet
class TestElsewhere:
    """What only Spark reaches: an object store, or the disk of a Connect server."""

    @pytest.fixture
    def away(self, lake: Lake) -> Lake:
        store = SparkStore(Storage(lake.session, lake.root))
        object.__setattr__(lake, "store", store)
        return lake

    def test_it_is_published_and_read_by_spark(self, away: Lake) -> None:
        assert away.list_attempts() == ()
        first = collect(away, 1, 2)
        collect(away, 3, when=LATER)
        assert ids(away) == [3]
        assert ids(away, WHEN) == [1, 2]
        assert away.find_attempt(WHEN) == first
        assert first.rows == {"brokers": {"a": 2}}

    def test_both_ways_read_what_the_other_published(self, spark: SparkSession, away: Lake) -> None:
        here = Lake(spark, away.root)
        assert collect(away, 1) == here.find_attempt()
        assert collect(here, 2, when=LATER) == away.find_attempt()
        assert (ids(here), ids(away)) == ([2], [2])
        away.remove([WHEN])
        assert [attempt.collection for attempt in here.list_attempts()] == [LATER]
        here.remove([LATER])
        assert away.list_attempts() == here.list_attempts() == ()

    def test_what_is_withdrawn_while_it_is_listed_is_left_out(self, away: Lake) -> None:
        collect(away, 1)
        collect(away, 2, when=LATER)
        (part,) = Path(away.root).glob(f"collections/{LATER}-*.json/part-*.json")
        part.unlink()
        part.symlink_to(part.with_name("gone"))  # listed, and not there when it is read
        found = LocalStore(Path(away.root)).list_published()
        assert [one.collection for one in found] == [WHEN]

    def test_a_collection_is_removed_without_directories(self, away: Lake) -> None:
        collect(away, 1)
        collect(away, 2, when=LATER)
        away.remove([LATER])
        assert ids(away) == [1]
        kept = [duckdb.read_parquet(str(file)).fetchall() for file in files_of(away)]
        assert sum(map(len, kept)) == 1

    def test_a_missing_table_is_named(self, away: Lake) -> None:
        collect(away, 1)
        shutil.rmtree(files_of(away)[0].parent)
        with pytest.raises(LakeError, match="lake-table-missing"):
            ids(away)


KILLED = """
import sys
from reconciler.fleet.session import Engine, open_session
from reconciler.fleet import tables
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.rows import make_table

session = open_session(Engine(master="local[1]"))
rows = make_table(tables.BROKERS, {"cluster": ["a"], "id": [9]})
with Lake(session, sys.argv[1]).begin(sys.argv[2]) as draft:
    draft.append(tables.BROKERS, session.createDataFrame(rows, tables.BROKERS.schema))
    print("written", flush=True)
    sys.stdin.read()
"""


@pytest.mark.fleet
@pytest.mark.slow
def test_a_killed_collection_is_never_seen(lake: Lake) -> None:
    """Killed between two tables, as a machine that loses its power is."""
    collect(lake, 1)
    killed = "20261125T030000Z"
    command = [sys.executable, "-c", KILLED, lake.root, killed]
    environment = {**os.environ, "PYTHONPATH": str(Path(tables.__file__).parents[2])}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        collect(lake, 1)
        assert any(killed in name for name in directories(lake))  # it lives
        process.send_signal(signal.SIGKILL)
    assert ids(lake) == [1]
    collect(lake, 1)
    assert not any(killed in name for name in directories(lake))
    collect(lake, 2, when=killed)
    assert ids(lake) == [2]


@pytest.mark.parametrize(
    "name",
    [
        *("", "now", "20261121", "20261121T030000", "../x", f"{WHEN}\n"),
        *("20261399T996199Z", "20260229T000000Z", "20261121T030060Z", "20261121T240000Z"),
    ],
)
def test_a_collection_is_named_by_a_valid_time(name: str) -> None:
    said = r"is not a valid time, .* write one as 20261121T030000Z .*\[lake-collection-name\]"
    with pytest.raises(LakeError, match=said):
        start_attempt(name)


def test_a_collection_ahead_of_the_clock_is_warned_of() -> None:
    now = datetime(2026, 11, 21, 3, tzinfo=UTC)
    names = [WHEN, "20261121T030200Z", "20990101T000000Z"]
    (warning,) = find_ahead(names, now, "lake")
    assert str(warning) == (
        "collection 20990101T000000Z is in the future (20261121T030000Z); until then it counts as "
        "the latest collection; to remove it: reconciler fleet lake remove 20990101T000000Z"
        " --lake lake [lake-collection-ahead]"
    )
    assert warning.severity == "warning"


@pytest.mark.parametrize("commit", [None, Commit("ab12"), Commit("ab12", dirty=True)])
def test_a_commit_survives(commit: Commit | None) -> None:
    assert decode_commit(encode_commit(commit)) == commit


def truncate(file: Path) -> None:
    """Cut a file in half, as a disk that was full does."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def test_a_format_lists_directories_in_few_tasks_unless_its_user_chose(
    spark: SparkSession, tmp_path: Path
) -> None:
    """VACUUM starts all of them for each table, and Spark's default is 10,000."""
    storage, seen = Storage(spark, str(tmp_path), "delta"), []
    before = spark.conf.get(LISTING)
    try:
        for chosen in (LISTING_DEFAULT, "77"):
            spark.conf.set(LISTING, chosen)
            with storage.listing_in_few_tasks():
                seen.append(spark.conf.get(LISTING))
            assert spark.conf.get(LISTING) == chosen
    finally:
        spark.conf.set(LISTING, before)
    assert before == LISTING_DEFAULT
    assert seen == [spark.conf.get(SHUFFLES), "77"]


def test_a_client_of_connect_can_publish_a_history(lake: Lake) -> None:
    """Its PySpark converts rows by itself, and takes lists only as arrays."""
    with lake.begin(WHEN) as draft:
        published = draft.publish(0, made_of=["state-1", "plan-1"])
    fields = list_fields(published)
    row = tuple(fields[name] for name in tables.COLLECTIONS.columns)
    converted = LocalDataToArrowConversion.convert([row], tables.COLLECTIONS.schema, False)
    assert converted.column("made_of").to_pylist() == [["plan-1", "state-1"]]
