"""Similar mistakes on the command line have the same exit code, whatever the verb."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli.app import run

USAGE = 64
MISSING = "File 'nowhere.json' does not exist."
OLD = "the sandbox does not run Kafka '0.9'"


@pytest.fixture(autouse=True)
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text("version: 1\nclusters: {prod: {}}\n")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("plan --cluster prod --against nowhere.json", MISSING),
        ("rehearse --cluster prod --against nowhere.json", MISSING),
        ("import --cluster prod --against nowhere.json topics", MISSING),
        ("simulate --against nowhere.json", MISSING),
        ("sandbox up --like nowhere.json", MISSING),
        ("sandbox up --brokers 2 --racks 3", "2 brokers cannot fill 3 racks"),
        ("sandbox up --racks 4", "3 brokers cannot fill 4 racks"),
        ("sandbox up --kafka 0.9", OLD),
        ("sandbox up --image kafka:4", "--image is for --engine container"),
        ("rehearse --cluster prod --kafka 0.9", OLD),
    ],
)
def test_the_exit_code_of_a_usage_error(
    command: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command.split()) == USAGE
    err = capsys.readouterr().err
    assert said in " ".join(err.split())
    assert any(line.startswith("error: ") for line in err.splitlines())
    assert ":1:1" not in err


def test_a_mistyped_option_is_an_error_like_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--topc", "a"]) == USAGE
    usage, hint, _, error = capsys.readouterr().err.splitlines()
    assert usage.startswith("Usage: reconciler plan ")
    assert hint == "Try 'reconciler plan --help' for help."
    assert error.startswith("error: No such option '--topc'")


def test_without_a_verb_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report"]) == USAGE
    err = capsys.readouterr().err
    assert err.startswith("Usage: reconciler report ")
    assert "error: " not in err


def test_every_error_has_a_line_that_begins_like_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "topics" / "a.yaml").write_text("topic: a\npartitions: 012\nowner: [b]\n")
    assert run(["plan", "--cluster", "prod"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["error", "topics/a.yaml:2:13"],
        ["error", "topics/a.yaml:3:8"],
    ]
