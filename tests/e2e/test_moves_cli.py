"""`reconciler moves status` as people and jobs run it, while another tool moves replicas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from command import RECONCILER, run_reconciler
from terminal import Terminal

from reconciler.cli.schema import SCHEMAS

if TYPE_CHECKING:
    from moving import Moving

pytestmark = pytest.mark.cluster

STATUS = ("moves", "status")


@pytest.fixture
def topic(moving: Moving, topic_prefix: str) -> Iterator[str]:
    """Return a topic whose partition 0 moves from broker 1 to 4, throttled by name."""
    with moving.move(f"{topic_prefix}shop.orders") as topic:
        yield topic


def test_from_the_first_byte_to_what_is_left_over(
    moving: Moving, topic: str, tmp_path: Path
) -> None:
    servers = moving.cluster.bootstrap_servers
    moving.await_bytes(topic)
    ran = run_reconciler(tmp_path, servers, *STATUS)
    assert (ran.code, ran.err) == (2, "")
    lines = ran.out.splitlines()
    assert lines[2] == "1 partition of 1 topic in flight · 1 replica to copy"
    assert " MiB done (" in lines[3]
    row = lines[lines.index(topic) + 1]
    assert row.split()[:6] == ["0", "2,3,1", "→", "4,2,3", "4", "1"]
    assert row.endswith(" %")
    assert "300000 B/s (293.0 KiB/s)" in ran.out
    assert "Throttles that nothing in flight uses are left" not in ran.out

    ran = run_reconciler(tmp_path, servers, *STATUS, "--format", "json")
    found = json.loads(ran.out)
    jsonschema.validate(found, SCHEMAS["moves"]())
    assert ran.code == 2
    assert [each["topic"] for each in found["moves"]] == [topic]

    # A job that waits: a line for each reading, until nothing is in flight.
    moving.set_rate(20_000_000)
    ran = run_reconciler(tmp_path, servers, *STATUS, "--watch", "1")
    assert (ran.code, ran.err) == (2, "")
    *_, last = ran.out.splitlines()
    assert last.endswith(
        f" · No partition is being moved. · throttles left over: cluster default, {topic}"
    )

    ran = run_reconciler(tmp_path, servers, *STATUS, "--watch", "1", "--format", "json")
    (only,) = ran.out.splitlines()
    assert [each["topic"] for each in json.loads(only)["left_over"]] == [None, topic]

    moving.clear(topic)
    ran = run_reconciler(tmp_path, servers, *STATUS)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("\n\nNo partition is being moved.\n")


@pytest.mark.slow
def test_an_estate_names_the_cluster(moving: Moving, topic: str, tmp_path: Path) -> None:
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text("version: 1\nclusters: {lab: {}}\n")
    ran = run_reconciler(tmp_path, moving.cluster.bootstrap_servers, *STATUS, "--cluster", "lab")
    assert ran.code == 2
    assert ran.out.startswith("lab · ")
    assert topic in ran.out


@pytest.mark.parametrize("columns", [80, pytest.param(120, marks=pytest.mark.slow)])
def test_a_person_watches_and_leaves(
    moving: Moving, topic: str, columns: int, tmp_path: Path
) -> None:
    servers = moving.cluster.bootstrap_servers
    program = (*RECONCILER, *STATUS, "--watch", "1", "--bootstrap-servers", servers)
    reported = tmp_path / "code"
    shell = ("/bin/sh", "-c", f'trap : INT; "$@"; echo $? > {reported}', "sh", *program)
    with Terminal(shell, {"COLUMNS": ""}, columns) as terminal:
        # The second reading goes over the first one, and has rates.
        terminal.wait_for(topic.encode(), b"F\x1b[J", topic.encode(), b"time left")
        terminal.press(b"\x03")
        terminal.wait_for(b"interrupted")
        terminal.wait_for_end()
    assert reported.read_text() == "130\n"
    assert b"Traceback" not in terminal.output
