"""`reconciler rehearse` before any broker starts: what it needs, and what is not worth one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.api import rehearsing
from reconciler.cli.app import run
from reconciler.rehearse.needs import Machine

ID = "5L6g3nShT-eMCtK--X86sw"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lay out an estate of one topic and a snapshot of its cluster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("reconciler.sandbox.cluster.start_cluster", refuse_to_start)
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text("version: 1\nclusters: {prod-eu: {}}\n")
    write_topic(tmp_path, 2)
    live = {"name": "a", "partitions": [[1, 2], [2, 3]]}
    nodes = [{"id": number} for number in (1, 2, 3)]
    state = {"format_version": "1.0", "cluster_id": ID, "brokers": nodes, "topics": [live]}
    (tmp_path / "s.json").write_text(json.dumps(state))
    other = {**state, "cluster_id": "MkU3OEVBNTcwNTJENDM2Qk"}
    (tmp_path / "other.json").write_text(json.dumps(other))
    return tmp_path


def refuse_to_start(**_: object) -> None:
    raise AssertionError("no broker is to be started")


def write_topic(place: Path, partitions: int) -> None:
    wished = f"topic: a\npartitions: {partitions}\nreplication_factor: 2\n"
    (place / "topics" / "a.yaml").write_text(wished)


AGAINST = ["--cluster", "prod-eu", "--against", "s.json"]


def test_a_plan_that_changes_nothing_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rehearse", *AGAINST]) == 0
    assert "nothing to rehearse" in capsys.readouterr().err


def test_a_plan_that_refuses_everything_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_topic(place, 1)
    assert run(["rehearse", *AGAINST]) == 1
    assert "Kafka cannot remove partitions" in capsys.readouterr().err


def test_a_state_of_another_cluster_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_topic(place, 4)
    assert run(["plan", *AGAINST, "--out", "plan.json"]) == 0
    assert run(["rehearse", "plan.json", "--against", "other.json"]) == 1
    assert f"the plan is for cluster {ID}, and the state is that of" in capsys.readouterr().err


def test_what_does_not_fit_into_the_machine_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_topic(place, 4)
    monkeypatch.setattr(rehearsing, "_ask_machine", lambda: Machine(100, 50))
    assert run(["rehearse", *AGAINST]) == 1
    said = capsys.readouterr().err
    assert "3 brokers and 8 replicas take about 315 MB; 100 MB are free" in said
    assert "take 168 open files; a process may have 50" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name the cluster: --cluster NAME"),
        ([*AGAINST, "--bootstrap-servers", "b:1"], "--against reads a file"),
        (["--cluster", "prod"], "no cluster is called 'prod'"),
    ],
)
def test_a_command_line_that_is_off_says_so(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rehearse", *arguments]) == 64
    assert said in capsys.readouterr().err


def test_a_release_that_is_not_here_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_topic(place, 4)
    assert run(["rehearse", *AGAINST, "--kafka", "2.8"]) == 64
    assert "the sandbox does not run Kafka '2.8'; it runs 3.9.2" in capsys.readouterr().err
