"""`reconciler plan` and `apply` where a cluster's guard refuses the whole plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.cli.app import run

NAMES = [f"shop.t{number:02}" for number in range(12)]


@pytest.fixture(autouse=True)
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lay out twelve topics that all change, beside eight that the cluster ignores."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text(
        "version: 1\nclusters:\n  prod:\n    guards: {max_changed: 50%}\n    ignore: [connect-*]\n"
    )
    documents = [f"topic: {name}\nconfig: {{segment.ms: 1h}}\n" for name in NAMES]
    (tmp_path / "topics" / "shop.yaml").write_text("---\n".join(documents))
    live = [*NAMES, *(f"connect-{number}" for number in range(8))]
    snapshot = {
        "brokers": [{"id": 1, "rack": None}],
        "topics": [{"name": name, "partitions": [[1]]} for name in live],
    }
    (tmp_path / "s.json").write_text(json.dumps(snapshot))
    return tmp_path


def test_the_share_is_of_topics_that_are_not_ignored(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--cluster", "prod", "--against", "s.json"]) == 1
    assert (
        "x refuse    the whole plan                                                  "
        "topics/clusters.yaml:4\n"
        "            The plan changes 12 of 12 live topics (100%), and max_changed: 50% allows 6.\n"
    ) in capsys.readouterr().out


def test_a_part_is_held_against_the_whole_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    part = ["plan", "--cluster", "prod", "--against", "s.json", "--topic", "shop.t0[0-5]"]
    assert run(part) == 0
    assert "refuse" not in capsys.readouterr().out


def test_a_saved_plan_is_refused_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    run(["plan", "--cluster", "prod", "--against", "s.json", "--out", "plan.json"])
    capsys.readouterr()
    assert run(["apply", "plan.json", "--auto-approve", "--skip-refused"]) == 1
    assert "[guard-max-changed]" in capsys.readouterr().err
