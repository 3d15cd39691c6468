"""Maintenance of a lake: what it holds, that it is complete, what goes, and fewer files."""

from __future__ import annotations

import shutil
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from published import read_answer
from shorthand import cluster, topic
from small_fleets import make_state

from reconciler.cli.app import run
from reconciler.fleet import tables
from reconciler.fleet.lake.attempts import read_time
from reconciler.fleet.lake.inventory import choose_kept, find_chain
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.lake.maintenance import compact_lake
from reconciler.fleet.tracing import fold_history, keep_collections, read_history, trace_collections
from reconciler.model.cluster import ClusterState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fleet

NIGHTS = tuple(f"202611{day:02}T030000Z" for day in range(1, 6))
IDS = {"a": "cluster-of-a", "b": "cluster-of-b", "c": "cluster-of-c"}


def state(name: str, topics: int, cluster_id: str | None = None) -> ClusterState:
    made = [topic("1,2", f"t{number}") for number in range(topics)]
    return replace(cluster(*made), cluster_id=cluster_id or IDS[name])


def fleet(night: int) -> dict[str, ClusterState | str]:
    """Return the clusters of a night: `b` is down, then rebuilt; `c` gets another name."""
    of_b = "down" if night in (1, 2) else state("b", 2, "another" if night > 2 else None)
    name = "renamed" if night > 0 else "c"
    return {"a": state("a", 2 + night), "b": of_b, name: state("c", 3 if night < 1 else 2)}


def collect(lake: Lake, night: int) -> None:
    with lake.begin(NIGHTS[night]) as draft:
        for name, rows in make_state(lake.session, fleet(night)).items():
            draft.append(tables.TABLES[name], rows)
        draft.publish(3, "abc")


def copy(night: int, source: Lake, target: Lake) -> None:
    """Copy a collection from lake to lake: the same files, as if it had been collected again."""
    for path in Path(source.root).glob(f"*/*{NIGHTS[night]}-state-*"):
        place = Path(target.root) / path.relative_to(source.root)
        if path.is_dir():
            shutil.copytree(path, place)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)


def told(lake: Lake) -> dict[str, list[str]]:
    history = read_history(lake, trace_collections(lake))
    return {name: sorted(map(str, rows.collect())) for name, rows in history.items()}


def say(*words: str) -> tuple[int, str]:
    with redirect_stdout(StringIO()) as said:
        code = run(["fleet", "lake", *words])
    return code, said.getvalue()


@pytest.fixture(scope="module")
def at_once(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Return a lake whose history was made of all collections at once."""
    lake = Lake(spark, str(tmp_path_factory.mktemp("lake") / "at-once"))
    for night in range(len(NIGHTS)):
        collect(lake, night)
    trace_collections(lake)
    return lake


@pytest.fixture(scope="module")
def nightly(spark: SparkSession, at_once: Lake, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Return a lake that was kept small after four nights, and its history made each night."""
    lake = Lake(spark, str(tmp_path_factory.mktemp("lake") / "nightly"))
    for night in range(4):
        copy(night, at_once, lake)
        trace_collections(lake)
    keeping = choose_kept(lake.list_published(), read_time(NIGHTS[2]))
    assert keeping is not None
    assert (keeping.oldest, keeping.going) == (NIGHTS[2], NIGHTS[1:2])
    assert keeping.needed == {NIGHTS[0]: ("b", "c")}
    keep_collections(lake, keeping)
    copy(4, at_once, lake)
    trace_collections(lake)
    return lake


def test_a_rebuilt_and_a_renamed_cluster_are_one_event_each(at_once: Lake) -> None:
    rows = read_history(at_once)["events"].collect()
    of = {(row["event"], row["cluster"]): row for row in rows}
    rebuilt, renamed = of["cluster-rebuilt", "b"], of["cluster-renamed", "renamed"]
    assert (rebuilt["previous"], rebuilt["first_seen"]) == (NIGHTS[0], NIGHTS[3])
    assert (rebuilt["before"], rebuilt["after"]) == (IDS["b"], "another")
    assert (renamed["previous"], renamed["first_seen"]) == (NIGHTS[0], NIGHTS[1])
    assert (renamed["before"], renamed["after"]) == ("c", "renamed")
    topics = {(row["cluster"], row["topic"], row["event"]) for row in rows if row["topic"]}
    assert topics == {
        *(("a", f"t{number}", "topic-created") for number in range(2, 6)),
        ("renamed", "t2", "topic-deleted"),
    }


def test_history_night_by_night_is_that_of_all_at_once_also_after_keep(
    at_once: Lake, nightly: Lake
) -> None:
    parts = find_chain(nightly.list_published())
    assert [one.collection for one in parts] == list(NIGHTS[2:])
    assert parts[0].continues is None
    assert told(nightly) == told(at_once)


def test_a_part_stores_only_what_is_new(nightly: Lake) -> None:
    last = find_chain(nightly.list_published())[-1]
    assert {row["seen"] for row in nightly.read(tables.TREND, last).collect()} == {NIGHTS[4]}
    events = nightly.read(tables.EVENTS, last).collect()
    assert [(row["event"], row["first_seen"]) for row in events] == [("topic-created", NIGHTS[4])]


def test_list_shows_what_each_collection_holds(at_once: Lake) -> None:
    code, said = say("list", "--lake", at_once.root)
    assert code == 0
    assert len(said.splitlines()) == 1 + len(NIGHTS)
    assert "2 read, 1 unread" in said.splitlines()[2]
    code, said = say("list", "--lake", at_once.root, "--format", "json")
    held = read_answer("fleet-lake", said)
    files = [*Path(at_once.root).glob("*/attempt=*/part-*.parquet")]
    assert sum(one["size"]["files"] for one in held) == len(files)
    assert sum(one["size"]["size_bytes"] for one in held) == sum(f.stat().st_size for f in files)
    assert held[-1]["attempts"] == {"history": 1, "state": 1}


def test_check_proves_a_whole_lake_and_names_what_is_lost(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(spark, str(tmp_path / "lake"))
    collect(lake, 0)
    collect(lake, 1)
    assert run(["fleet", "lake", "check", "--lake", lake.root]) == 0
    assert "is complete: 2 collections, 2 attempts" in capsys.readouterr().out
    for file in tmp_path.glob(f"lake/topics/attempt={NIGHTS[0]}-*/part-*"):
        file.write_bytes(file.read_bytes()[:40])
    for file in tmp_path.glob(f"lake/brokers/attempt={NIGHTS[1]}-*/part-*"):
        file.unlink()
    assert run(["fleet", "lake", "check", "--lake", lake.root]) == 1
    said = capsys.readouterr().err
    assert f"topics of a in {NIGHTS[0]} has 0 readable rows, but 2 were published" in said
    assert f"brokers of a in {NIGHTS[1]}" in said


def test_compact_leaves_the_rows_and_one_file_each(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, str(tmp_path / "lake"))
    for night in (0, 1):
        collect(lake, night)
    part = trace_collections(lake)
    before = told(lake)
    rows = sorted(map(str, lake.read(tables.TOPICS, lake.find_attempt()).collect()))
    done = compact_lake(lake)
    assert done.files_before > done.files_after
    kept = lake.find_attempt()
    (file,) = tmp_path.glob(f"lake/topics/attempt={kept.id}/part-*.parquet")
    assert file.stat().st_size > 0
    assert sorted(map(str, lake.read(tables.TOPICS, kept).collect())) == rows
    assert find_chain(lake.list_published())[-1].content == part.id  # nothing is compared again
    assert told(lake) == before
    assert compact_lake(lake).attempts == 0


@pytest.mark.slow
def test_a_collection_that_is_made_again_is_compared_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, str(tmp_path / "lake"))
    for night in (0, 1):
        collect(lake, night)
        trace_collections(lake)
    with lake.begin(NIGHTS[1]) as draft:
        for name, rows in make_state(spark, {"a": state("a", 9)}).items():
            draft.append(tables.TABLES[name], rows)
        draft.publish(1)
    created = [row for row in told(lake)["events"] if "topic-created" in row]
    assert len(created) == 7


def test_keep_asks_and_leaves_what_history_needs(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(spark, str(tmp_path / "lake"))
    for night in range(3):
        collect(lake, night)
    words = ["fleet", "lake", "keep", "--days", "1", "--lake", lake.root]
    assert run(words) == 64
    assert "pass --yes" in capsys.readouterr().err
    assert len(lake.list_attempts()) == 3
    assert run([*words, "--yes"]) == 0
    said = capsys.readouterr().out
    assert f"to keep:   {NIGHTS[2]} and later" in said
    assert f"to keep:   {NIGHTS[0]}, the last that read or named b, c" in said
    assert run([*words, "--yes"]) == 0
    assert "nothing in" in capsys.readouterr().out
    assert fold_history(lake) is None
