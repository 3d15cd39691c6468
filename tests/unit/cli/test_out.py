"""`--out -` prints the plan file, and DIR defaults as ESTATE does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.cli.app import run

STATE = {
    "brokers": [{"id": n} for n in (1, 2, 3)],
    "topics": [{"name": "b", "partitions": [[1, 2]]}],
}
PLAN = ["plan", "--cluster", "prod", "--against", "s.json"]


@pytest.fixture(autouse=True)
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    clusters = "version: 1\nclusters: {prod: {moves: {allow: [rebalance], rate: 1MiB}}}\n"
    (tmp_path / "topics" / "clusters.yaml").write_text(clusters)
    (tmp_path / "topics" / "a.yaml").write_text("topic: a\npartitions: 3\nreplication_factor: 1\n")
    (tmp_path / "s.json").write_text(json.dumps(STATE))
    return tmp_path


def test_a_plan_on_stdout_is_the_file(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PLAN, "--out", "plan.json"]) == 0
    capsys.readouterr()
    assert run([*PLAN, "--out", "-"]) == 0
    printed = capsys.readouterr()
    assert printed.out == (estate / "plan.json").read_text()
    assert printed.err == ""
    assert not (estate / "-").exists()


def test_a_rebalance_on_stdout_is_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    run(["rebalance", "--cluster", "prod", "--against", "s.json", "--out", "-"])
    assert json.loads(capsys.readouterr().out)["cluster"]["name"] == "prod"


def test_another_format_on_stdout_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PLAN, "--out", "-", "--format", "markdown"]) == 64
    said = "error: --out - prints the plan file; leave out --format markdown\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("directory", ["topics", "specs"])
def test_import_writes_where_other_commands_read(
    directory: str,
    estate: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if directory != "topics":
        monkeypatch.setenv("RECONCILER_ESTATE", directory)
        (estate / directory).mkdir()
        (estate / directory / "clusters.yaml").write_text("version: 1\nclusters: {prod: {}}\n")
    assert run(["import", "--cluster", "prod", "--against", "s.json"]) == 0
    assert f"{directory}: 1 topic written" in capsys.readouterr().err
