"""More replicas and more partitions in one edit: changes, moves, and changes again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.api.planning import load_estate, read_cluster
from reconciler.cli.app import run
from reconciler.model.cluster import TopicState
from reconciler.sandbox.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("brief_rates")]

BEFORE = "topic: orders\npartitions: 2\nreplication_factor: 1\nconfig: {min.insync.replicas: 1}\n"
AFTER = """\
topic: orders
partitions: 4
replication_factor: 3
config: {min.insync.replicas: 2, segment.bytes: 1MiB}
"""


def test_an_edit_of_counts_and_configs_is_reached_in_three_plans(
    quiet3: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    estate, saved = tmp_path / "topics", tmp_path / "moves.json"
    estate.mkdir()
    (estate / "clusters.yaml").write_text(
        f"version: 1\nclusters:\n  lab:\n    cluster_id: {quiet3.cluster_id}\n"
        f"    client: {{bootstrap.servers: '{quiet3.bootstrap_servers}'}}\n"
        "    moves: {allow: [replication], rate: 30MiB, keep_free: 0%}\n"
    )
    (estate / "orders.yaml").write_text(BEFORE)
    apply = ["apply", "--cluster", "lab", "--auto-approve"]
    plan = ["plan", "--cluster", "lab", "--detailed-exitcode"]
    assert run(apply) == 0
    (estate / "orders.yaml").write_text(AFTER)

    assert run(apply) == 0
    topic = read(estate)
    assert [len(row) for row in topic.assignment] == [1, 1, 1, 1]
    assert topic.config == {"min.insync.replicas": "1", "segment.bytes": "1048576"}
    assert run(plan) == 0  # what is pending is no change

    assert run([*plan, "--moves", "--out", str(saved)]) == 2
    assert json.loads(saved.read_text())["summary"]["move"] == 1
    assert run(["apply", str(saved), "--auto-approve"]) == 0
    topic = read(estate)
    assert [len(row) for row in topic.assignment] == [3, 3, 3, 3]
    assert topic.config == {"min.insync.replicas": "1", "segment.bytes": "1048576"}
    assert run([*plan, "--moves"]) == 0

    assert run(plan) == 2
    assert run(apply) == 0
    assert read(estate).config["min.insync.replicas"] == "2"
    assert run(plan) == 0


def read(estate: Path) -> TopicState:
    return read_cluster(load_estate(estate), "lab").topics["orders"]
