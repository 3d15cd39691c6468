"""What `fleet audit` and `fleet history` print of a lake, and with which code they exit."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from published import read_answer
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation
from pyspark.sql.types import StructType
from shorthand import cluster, topic
from small_fleets import make_specs, make_state

from reconciler.cli import app
from reconciler.fleet import tables
from reconciler.fleet.audit.next_leaders import NEXT_LEADERS
from reconciler.fleet.lake.attempts import AUDIT
from reconciler.fleet.lake.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fleet

WHEN = "20261121T030000Z"


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with an estate, and a lake of one collection."""
    root = tmp_path_factory.mktemp("fleet")
    (root / "topics").mkdir()
    (root / "topics" / "clusters.yaml").write_text("version: 1\nclusters: {prod: {}, down: {}}\n")
    lake = Lake(spark, str(root / "lake"))
    states = {"prod": cluster(topic("1,2", "stranger")), "down": "no\x1banswer"}
    with lake.begin(WHEN) as draft:
        for name, rows in make_state(spark, states).items():
            draft.append(tables.TABLES[name], rows)
        draft.append(tables.SPECS, make_specs(spark, {}))
        draft.publish(2)
    return root


def run(*arguments: str) -> int:
    return app.run(arguments)


def audit(place: Path, *options: str) -> int:
    return run("fleet", "audit", str(place / "topics"), "--lake", str(place / "lake"), *options)


@pytest.fixture(scope="module")
def audited(place: Path) -> tuple[int, str]:
    """Audit the whole fleet once. Returns the exit code and what was printed."""
    out = io.StringIO()
    with redirect_stdout(out):
        code = audit(place)
    return code, out.getvalue()


def test_an_audit_ends_in_counts_and_fails_on_errors(audited: tuple[int, str]) -> None:
    code, printed = audited
    assert code == 1
    assert printed.startswith("error    cluster-unread on down  1 finding\n  down")
    assert "no\\x1banswer" in printed
    assert printed.endswith(f"{WHEN}: 1 error, 0 warnings, 2 notes, of 3 causes\n")


@pytest.mark.slow
def test_json_is_one_document_and_the_lake_keeps_what_is_not_shown(
    place: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(place, "--cluster", "prod", "--format", "json") == 0
    document = read_answer("fleet-audit", capsys.readouterr().out)
    assert document["counts"] == {"error": 0, "warning": 0, "note": 2}
    assert [found["rule"] for found in document["findings"]] == ["rack-none", "topic-unmanaged"]
    lake = Lake(spark, str(place / "lake"))
    kept = lake.read(tables.FINDINGS, lake.find_attempt(WHEN, AUDIT))
    assert kept.count() == 3


def test_the_lake_keeps_next_leaders_with_their_bounds(
    place: Path, spark: SparkSession, audited: tuple[int, str]
) -> None:
    """The one topic has the rows 1, 2: whoever is lost, nobody else could take over."""
    lake = Lake(spark, str(place / "lake"))
    balance = lake.read(tables.BALANCE, lake.find_attempt(WHEN, AUDIT))
    (row,) = balance.where("kind = 'cluster'").collect()
    assert [row[name] for name in NEXT_LEADERS] == [1, 1, 0, 0]


def test_next_leaders_are_null_in_an_audit_of_an_earlier_release(
    spark: SparkSession, tmp_path: Path
) -> None:
    fields = [field for field in tables.BALANCE.schema if field.name not in NEXT_LEADERS]
    earlier = replace(tables.BALANCE, schema=StructType(fields))
    lake = Lake(spark, str(tmp_path))
    rows = spark.createDataFrame(
        [("prod", "cluster", "prod")], "cluster string, kind string, subject string"
    )
    missing = {f.name: F.lit(None).cast(f.dataType) for f in fields if f.name not in rows.columns}
    with lake.begin(WHEN, AUDIT) as draft:
        draft.append(earlier, rows.withColumns(missing))
        made = draft.publish(1)
    (read,) = lake.read(tables.BALANCE, made).collect()
    assert read["subject"] == "prod"
    assert [read[name] for name in NEXT_LEADERS] == [None] * 4


def test_a_history_of_one_collection_has_nothing_to_tell(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fleet", "history", "--lake", str(place / "lake"), "--topic", "str*") == 0
    assert capsys.readouterr().out.count("  nothing\n") == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--topic", "nothing.*"], "no topic of the lake matches --topic 'nothing.*'"),
        (
            ["--cluster", "prod", "--cluster", "elsewhere"],
            "no cluster of the lake matches --cluster 'elsewhere'; it has: down, prod",
        ),
    ],
)
def test_a_history_refuses_what_matches_nothing(
    words: list[str], said: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fleet", "history", "--lake", str(place / "lake"), *words) == 64
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.endswith(f"error: {said}\n")


def test_an_audit_refuses_a_cluster_that_the_collection_does_not_have(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(place, "--cluster", "elsewhere") == 64
    said = "error: no cluster of the lake matches --cluster 'elsewhere'; it has: down, prod\n"
    assert capsys.readouterr().err.endswith(said)


def test_since_is_a_day_or_a_collection(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fleet", "history", "--lake", str(place / "lake"), "--since", "yesterday") == 64
    assert "2026-11-21" in capsys.readouterr().err
