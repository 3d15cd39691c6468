"""What `fleet audit` and `fleet history` print of a lake, and with which code they exit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from shorthand import cluster, topic
from small_fleets import make_specs, make_state

from reconciler.cli import main
from reconciler.fleet import tables
from reconciler.fleet.lake import AUDIT, Lake

if TYPE_CHECKING:
    from pathlib import Path

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
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def audit(place: Path, *options: str) -> int:
    return run("fleet", "audit", str(place / "topics"), "--lake", str(place / "lake"), *options)


def test_an_audit_ends_in_counts_and_fails_on_errors(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(place) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("error    cluster-unread  1 finding on 1 cluster\n  down")
    assert "no\\x1banswer" in printed
    assert printed.endswith(f"{WHEN}: 1 error, 0 warnings, 2 notes\n")


def test_json_is_one_document_and_the_lake_keeps_what_is_not_shown(
    place: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(place, "--cluster", "prod", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["counts"] == {"error": 0, "warning": 0, "note": 2}
    assert [found["rule"] for found in document["findings"]] == ["rack-none", "topic-unmanaged"]
    lake = Lake(spark, str(place / "lake"))
    kept = lake.read(tables.FINDINGS, lake.find_attempt(WHEN, AUDIT))
    assert kept.count() == 3


def test_a_history_of_one_collection_has_nothing_to_tell(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fleet", "history", "--lake", str(place / "lake"), "--topic", "str*") == 0
    assert capsys.readouterr().out.count("  nothing\n") == 3


def test_since_is_a_day_or_a_collection(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fleet", "history", "--lake", str(place / "lake"), "--since", "yesterday") == 64
    assert "2026-11-21" in capsys.readouterr().err
