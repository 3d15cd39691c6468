"""`reconciler plan --against`: a file instead of the cluster, and no network at all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.cli.app import run

BY_HAND = {
    "brokers": [{"id": n, "rack": "abc"[n % 3]} for n in range(1, 7)],
    "topics": [{"name": "grown", "partitions": [[1, 2], [2, 3], [3, 4]]}],
}
ESTATE = """\
topic: grown
partitions: 6
---
topic: new
partitions: 4
replication_factor: 3
config: {retention.ms: 7d}
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text(
        "version: 1\nclusters:\n  prod:\n    cluster_id: one\n    kafka_version: '4.1'\n"
        "    client: {bootstrap.servers: nowhere.invalid:9092}\n"
    )
    (tmp_path / "topics" / "a.yaml").write_text(ESTATE)
    (tmp_path / "s.json").write_text(json.dumps(BY_HAND))
    return tmp_path


PLAN = ("plan", "--cluster", "prod", "--against", "s.json")


def test_a_plan_opens_no_socket_and_imports_no_client(directory: Path) -> None:
    program = (
        "import socket, sys\n"
        "def refuse(*_, **__): raise AssertionError('a socket')\n"
        "socket.socket.__init__ = socket.getaddrinfo = refuse\n"
        "from reconciler.cli.app import run\n"
        f"code = run({list(PLAN)!r})\n"
        "assert not {'confluent_kafka', 'kafka', 'pyspark'} & sys.modules.keys(), 'a client'\n"
        "sys.exit(code)\n"
    )
    command = [sys.executable, "-c", program]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, "")
    assert "1 to create, 1 to expand" in made.stdout


def test_what_a_snapshot_by_hand_leaves_out_is_assumed_and_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([*PLAN, "--detailed-exitcode"]) == 2
    assert (
        "note: the snapshot has no config_defaults, so those of Kafka 4.1 are assumed "
        "[snapshot-assumed]" in capsys.readouterr().out
    )


def test_nothing_is_assumed_where_nothing_is_planned(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "topics" / "a.yaml").unlink()
    assert run(list(PLAN)) == 0
    assert "assumed" not in capsys.readouterr().out


def test_a_default_that_the_spec_repeats_is_set(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "topics" / "a.yaml").write_text(
        "topic: grown\npartitions: 3\nconfig: {retention.ms: 7d, flush.ms: 1s}\n"
    )
    assert run([*PLAN, "--format", "json"]) == 0
    (change,) = json.loads(capsys.readouterr().out)["resource_changes"]
    assert change["change"]["after"]["config"] == {
        "flush.ms": "1000",
        "retention.ms": "604800000",
    }


def test_the_snapshot_of_another_cluster_is_refused(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "s.json").write_text(json.dumps({"cluster_id": "two", **BY_HAND}))
    assert run(PLAN) == 1
    assert capsys.readouterr().err == (
        "error: topics/clusters.yaml:3:3: this is cluster two, and prod is expected to be one; "
        "take a snapshot of prod, or correct cluster_id in clusters.yaml [cluster-id]\n"
    )


def test_a_snapshot_that_is_none_is_an_error(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "s.json").write_text("{}")
    assert run(PLAN) == 1
    assert capsys.readouterr().err.startswith("error: s.json:1:1: brokers is missing; ")


@pytest.mark.parametrize(
    "more",
    [
        ("--against", "s.json", "--bootstrap-servers", "b:1"),
        ("--against", "none.json"),
        ("--against", "topics"),
    ],
)
def test_usage(more: tuple[str, ...]) -> None:
    assert run(["plan", "--cluster", "prod", *more]) == 64


def test_every_topic_that_is_named_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    for topics in (("--topic", "gr*", "--topic", "new"), ("--topic", "gr*,new")):
        assert run([*PLAN, *topics]) == 0
        out = capsys.readouterr().out
        assert "1 to create, 1 to expand" in out
    assert run([*PLAN, "--topic", "new"]) == 0
    assert "to expand" not in capsys.readouterr().out


def test_every_name_has_to_match(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PLAN, "--topic", "new", "--topic", "old"]) == 64
    assert "no topic that goes to prod matches --topic 'old'" in capsys.readouterr().err


def test_a_name_that_is_empty_is_not_every_topic(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PLAN, "--topic", ""]) == 64
    assert "no topic that goes to prod matches --topic ''" in capsys.readouterr().err


def test_a_comment_names_every_topic_of_its_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PLAN, "--topic", "gr*", "--topic", "new", "--format", "markdown"]) == 0
    assert "--topic 'gr*,new'" in capsys.readouterr().out
