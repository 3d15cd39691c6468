"""A pattern that matches nothing is an error, whatever the command: it is mistyped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.cli.app import run

STATE = {"brokers": [{"id": 1}], "topics": [{"name": "b", "partitions": [[1]]}]}
GOING = "no topic that goes to prod matches --topic 'nothing.*'"
LIVE = "no live topic of prod matches --topic 'nothing.*'"


@pytest.fixture(autouse=True)
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    clusters = "version: 1\nclusters: {prod: {moves: {allow: [rebalance], rate: 1MiB}}}\n"
    (tmp_path / "topics" / "clusters.yaml").write_text(clusters)
    (tmp_path / "topics" / "a.yaml").write_text("topic: a\npartitions: 1\nreplication_factor: 1\n")
    (tmp_path / "s.json").write_text(json.dumps(STATE))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("plan", GOING),
        ("rehearse", GOING),
        ("rebalance", LIVE),
        ("import", LIVE),
    ],
)
def test_a_pattern_that_matches_nothing(
    command: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [command, "--cluster", "prod", "--against", "s.json", "--topic", "nothing.*"]
    assert run(words) == 64
    assert capsys.readouterr().err == f"error: {said}\n"


def test_a_pattern_that_matches_nothing_of_a_saved_plan(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["plan", "--cluster", "prod", "--against", "s.json", "--out", "plan.json"]) == 0
    capsys.readouterr()
    assert run(["rehearse", "plan.json", "--topic", "nothing.*"]) == 64
    said = "error: no topic of the plan plan.json matches --topic 'nothing.*'\n"
    assert capsys.readouterr().err == said
