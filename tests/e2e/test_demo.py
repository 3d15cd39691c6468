"""The demonstrations on a terminal: however they end, nothing is left and the cursor is back."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from terminal import HIDDEN, Terminal

Open = Callable[[str], Terminal]

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc"),
]
DOCS = Path(__file__).resolve().parents[2] / "docs"
CTRL_C = b"\x03"
STARTING = (b"starting Kafka",)
PLANNING = (b"$ reconciler plan", b"reading ")  # not while Python itself starts
APPROVED = (b"$ reconciler apply", b"fingerprint", HIDDEN)
APPLYING = (*APPROVED, b"asking the brokers")
MOVING = (b"$ reconciler apply moves.json", b" 0 waiting")
COLLECTING = (b"$ reconciler fleet run", b"starting Spark")


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose state and temporary files are the test's own."""
    (tmp_path / "tmp").mkdir()
    return {"XDG_STATE_HOME": str(tmp_path / "state"), "TMPDIR": str(tmp_path / "tmp")}


@pytest.fixture
def open_terminal(places: dict[str, str]) -> Open:
    return lambda script: Terminal([sys.executable, str(DOCS / script)], places)


def list_data(tmp_path: Path) -> list[Path]:
    """List what brokers store: the log of each broker has a file of this name."""
    return list(tmp_path.rglob("meta.properties"))


def plain(output: bytes) -> str:
    """Return what was shown without what moves the cursor or colours."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", output.decode())


@pytest.mark.parametrize(
    ("script", "moment"),
    [
        ("demo.py", STARTING),
        pytest.param("demo.py", PLANNING, marks=pytest.mark.slow),
        pytest.param("demo.py", APPROVED, marks=pytest.mark.slow),
        pytest.param("demo.py", APPLYING, marks=pytest.mark.slow),
        pytest.param("demo.py", MOVING, marks=pytest.mark.slow),
        pytest.param("demo_fleet.py", STARTING, marks=pytest.mark.fleet),
        pytest.param("demo_fleet.py", COLLECTING, marks=[pytest.mark.fleet, pytest.mark.slow]),
    ],
)
def test_ctrl_c_leaves_a_cursor_and_nothing_else(
    script: str, moment: tuple[bytes, ...], open_terminal: Open, tmp_path: Path
) -> None:
    with open_terminal(script) as terminal:
        terminal.wait_for(*moment)
        terminal.press(CTRL_C)
        terminal.wait_for_end()
        assert terminal.shows_cursor
        assert b"Traceback" not in terminal.output
        shown = terminal.output.replace(b"^C", b"")  # the echo of the key
        lines = [plain(line) for line in re.split(rb"[\r\n]|\x1b\[\d*A", shown)]
        assert [line for line in lines if len(line) > 80 and " " in line.strip()] == []  # no path
        if moment is APPLYING:
            assert b"Applied: " in terminal.output, "apply was not let to report"
    assert list_data(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("moment", [STARTING, APPLYING])
def test_a_terminal_that_is_closed_leaves_nothing(
    moment: tuple[bytes, ...], open_terminal: Open, tmp_path: Path
) -> None:
    with open_terminal("demo.py") as terminal:
        terminal.wait_for(*moment)
        terminal.close()
        terminal.wait_for_end()
    assert list_data(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "moment"),
    [
        ("demo.py", APPLYING),
        pytest.param("demo_fleet.py", COLLECTING, marks=pytest.mark.fleet),
    ],
)
def test_a_demonstration_that_is_killed_leaves_no_process(
    script: str, moment: tuple[bytes, ...], open_terminal: Open
) -> None:
    with open_terminal(script) as terminal:
        terminal.wait_for(*moment)
        (demonstration,) = terminal.processes(script)
        os.kill(demonstration, signal.SIGKILL)
        terminal.wait_for_end()
        assert terminal.shows_cursor


@pytest.mark.slow
def test_what_is_shown_is_what_the_plans_say_and_what_the_brokers_hold(
    places: dict[str, str], tmp_path: Path
) -> None:
    played = subprocess.run(
        [sys.executable, DOCS / "demo.py"],
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert played.returncode == 0, played.stderr
    specs, _, drain = played.stdout.partition("# Broker 6 is to be retired")
    assert specs.count("+ create    shop.clicks") == 1
    planned = re.findall(r"^cluster: leaders \S+ → (\d+)\.\.(\d+)", specs, re.MULTILINE)
    drawn = [int(leaders) for leaders in re.findall(r"█ (\d+)$", specs, re.MULTILINE)]
    assert len(drawn) == 6
    assert (str(min(drawn)), str(max(drawn))) == planned[-1]

    assert set(re.findall(r"^~ \w+ +(\S+)", drain, re.MULTILINE)) == {"orders.events"}
    assert drain.count("…\n\n") == 4
    leaves = re.findall(r"^drain 6: .* · (\d+) replicas of (\d+) topics leave", drain, re.MULTILINE)
    assert len(leaves) == 2
    replicas, topics = leaves[-1]
    assert f"\nmoves: {replicas} replicas of {replicas} partitions are copied, " in drain
    started = r"^started: (\d+) partitions: \1 not begun$"
    (partitions,) = re.findall(started, played.stderr, re.MULTILINE)
    assert int(partitions) >= int(replicas), "those that only change their order count as well"
    assert f"partitions: {partitions} done, 0 in flight, 0 waiting\nbroker 6 is empty" in drain
    assert f"Applied: {topics} done, 1 broker cordoned" in drain
    counted = r"^([\d,]+) records acknowledged, 0 failed; orders.events holds ([\d,]+)$"
    (written,) = re.findall(counted, drain, re.MULTILINE)
    assert written[0] == written[1] != "0"
    assert list_data(tmp_path) == []
