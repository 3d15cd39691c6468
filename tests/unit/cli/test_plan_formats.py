"""`plan` and `show` for a pull request: a comment, annotations, and the files of a workflow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.cli.app import run

STATE = {
    "cluster_id": "one",
    "brokers": [{"id": n} for n in (1, 2, 3)],
    "topics": [{"name": "grown", "partitions": [[1], [2], [3]]}],
}
PLAN = ("plan", "--cluster", "prod", "--against", "s.json")
SEALED = 64


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with an estate, a snapshot, and the files of a workflow."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text("version: 1\nclusters: {prod: {}}\n")
    (tmp_path / "topics" / "a.yaml").write_text("topic: grown\npartitions: 6\n")
    (tmp_path / "s.json").write_text(json.dumps(STATE))
    return tmp_path


def test_markdown_is_a_comment_and_writes_no_file(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*PLAN, "--format", "markdown", "--out", "p.json"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("<!-- reconciler:plan cluster=prod -->\n### Kafka plan for `prod`")
    assert "To apply exactly this: `reconciler apply p.json`" in said.out
    assert said.err == "saved to p.json; apply it with: reconciler apply p.json\n"
    assert not (directory / "summary.md").exists()


def test_a_saved_plan_is_shown_as_the_same_comment(capsys: pytest.CaptureFixture[str]) -> None:
    run([*PLAN, "--format", "markdown", "--out", "p.json"])
    planned = capsys.readouterr().out
    assert run(["show", "p.json", "--format", "markdown"]) == 0
    assert capsys.readouterr().out == planned


@pytest.mark.parametrize("verb", ["plan", "show"])
def test_github_annotates_summarises_and_sets_outputs(
    verb: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run([*PLAN, "--out", "p.json"])
    capsys.readouterr()
    command = [*PLAN] if verb == "plan" else ["show", "p.json"]
    assert run([*command, "--format", "github"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "::warning file=topics/a.yaml,line=1,col=8,title=ordering::"
        "grown: keys move to other partitions"
    )
    assert lines[-1] == "prod: 1 to expand"
    assert "### Kafka plan for `prod`: 1 to expand" in (directory / "summary.md").read_text()
    outputs = dict(line.split("=") for line in (directory / "output").read_text().splitlines())
    assert (outputs["changes"], outputs["refused"]) == ("1", "0")
    assert len(outputs["fingerprint"]) == SEALED


def test_what_earlier_commands_wrote_stays_and_takes_room(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = directory / "summary.md"
    summary.write_text("x" * 1_000_000)
    assert run([*PLAN, "--format", "github"]) == 0
    assert summary.stat().st_size == 1_000_000
    assert "the summary of this step is full" in capsys.readouterr().err


def test_outside_a_workflow_there_are_only_annotations(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    monkeypatch.setenv("GITHUB_OUTPUT", "")
    assert run([*PLAN, "--format", "github"]) == 0
    assert sorted(path.name for path in directory.iterdir()) == ["s.json", "topics"]


def test_a_file_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_OUTPUT", "nowhere/output")
    assert run([*PLAN, "--format", "github"]) == 64
    assert "nowhere/output cannot be written: No such file" in capsys.readouterr().err


def test_an_explanation_is_for_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PLAN, "--format", "markdown", "--explain", "grown"]) == 64
    assert "leave --format markdown out" in capsys.readouterr().err
