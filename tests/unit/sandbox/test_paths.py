"""Runs and records: what is kept, what is swept, and who is taken for alive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.errors import SandboxError
from reconciler.model.cluster import Broker
from reconciler.sandbox.paths import KEPT_RUNS, open_run, sweep_runs
from reconciler.sandbox.process import describe_exit, last_trouble
from reconciler.sandbox.record import (
    SandboxRecord,
    find_lost_sandbox,
    is_sandbox_starting,
    own_sandbox,
    running_sandbox,
    write_record,
)

RECORD = SandboxRecord(
    bootstrap_servers="127.0.0.1:1",
    cluster_id="c",
    kafka_version="4.4.0",
    engine="embedded",
    pid=1,
    brokers=(Broker(7, "a"), Broker(9, None)),
    directory="/d",
    control="/nowhere/control",
)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def make_run(directory: Path) -> Path:
    (directory / "data").mkdir(parents=True)
    (directory / "lock").touch()
    (directory / "brokers.log").touch()
    return directory


def test_what_a_dead_run_stored_goes_and_its_logs_stay(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs" / "1")
    sweep_runs(tmp_path / "runs")
    assert not (run / "data").exists()
    assert (run / "brokers.log").exists()


def test_a_run_that_lives_is_left_alone() -> None:
    with open_run() as run:
        (run / "data").mkdir()
        sweep_runs(run.parent)
        assert (run / "data").exists()
    assert not (run / "data").exists()


def test_only_the_newest_runs_are_kept(tmp_path: Path) -> None:
    for number in range(KEPT_RUNS + 3):
        make_run(tmp_path / "runs" / f"{number:02}")
    sweep_runs(tmp_path / "runs")
    assert sorted(p.name for p in (tmp_path / "runs").iterdir())[0] == "03"


def test_a_record_is_found_while_its_owner_lives() -> None:
    assert running_sandbox() is None
    with own_sandbox():
        assert running_sandbox() is None
        assert is_sandbox_starting()
        write_record(RECORD)
        assert running_sandbox() == RECORD
        assert not is_sandbox_starting()
    assert running_sandbox() is None
    assert not is_sandbox_starting()


def test_a_record_without_an_owner_is_of_a_lost_sandbox_until_the_next_one(tmp_path: Path) -> None:
    socket = tmp_path / "reconciler-1" / "control"
    socket.parent.mkdir()
    socket.touch()
    lost = replace(RECORD, control=str(socket))
    write_record(lost)
    assert running_sandbox() is None
    assert find_lost_sandbox() == find_lost_sandbox() == lost
    with own_sandbox():
        assert find_lost_sandbox() is None
        assert not socket.parent.exists()
        write_record(RECORD)
        assert find_lost_sandbox() is None
    assert find_lost_sandbox() is None


def test_there_is_one_owner_at_a_time() -> None:
    with (
        own_sandbox(),
        pytest.raises(SandboxError, match="a sandbox runs already"),
        own_sandbox(),
    ):
        pytest.fail("there are two")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", ""),
        ("one\ntwo\n\n", "two"),
        ("[x] ERROR first (A)\n[y] ERROR second (B)\n[z] WARN third (C)\n", "[y] ERROR second (B)"),
        ("java.lang.IllegalStateException: no\n\tat a.B(Exception.java:1)\n", ""),
        (
            "[x] ERROR cannot append (A)\njava.io.IOException: disk\n\tat a.B\n"
            "Caused by: a.FileException: No space left on device\n\t... 5 more\n"
            "[y] WARN other (C)\njava.lang.RuntimeException: harmless\n"
            "[z] ERROR shutting down (B)\n",
            "[z] ERROR shutting down (B): a.FileException: No space left on device",
        ),
        (
            "[x] ERROR cannot bind (A)\na.KafkaException: failed\n\tat a.B\n"
            "Caused by: java.net.BindException: Address already in use\n\t... 5 more\n",
            "[x] ERROR cannot bind (A): java.net.BindException: Address already in use",
        ),
    ],
)
def test_the_last_error_of_a_log_is_reported(tmp_path: Path, text: str, reason: str) -> None:
    log = tmp_path / "log"
    log.write_text(text)
    expected = reason or text.partition("\n")[0]
    assert last_trouble(log) == expected


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1, "b ended with 1: [x] ERROR bad (A); its log: "),
        (-9, "b was ended by SIGKILL; its log: "),
        (-6, "b was ended by SIGABRT: [x] ERROR bad (A); its log: "),
    ],
)
def test_an_exit_is_reported_with_its_reason(tmp_path: Path, code: int, words: str) -> None:
    log = tmp_path / "b.log"
    log.write_text("[x] ERROR bad (A)\n[y] WARN later (B)\n")
    assert describe_exit("b", code, log) == f"{words}{log}"
