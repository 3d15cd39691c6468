"""A real cluster and its snapshot: what is read back, and what is planned on either."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from lab import connect_to, create, wait_for

from reconciler.api.planning import load_estate
from reconciler.api.snapshots import read_snapshot, take_snapshot, write_snapshot
from reconciler.cli.app import run
from reconciler.kafka.reader import KafkaReader
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import Cluster

THROTTLE = "leader.replication.throttled.replicas"


@pytest.fixture
def estate(cluster6: Cluster, topic_prefix: str, tmp_path: Path) -> Iterator[Path]:
    """Wish for everything a plan can say: create, expand, configure, keep with a note, refuse.

    What was created goes again: other tests compare all that the shared cluster has.
    """
    root = tmp_path / "topics"
    root.mkdir()
    names = {part: f"{topic_prefix}{part}" for part in ("grown", "kept", "shrunk", "gone")}
    steps = [
        CreateTopic(name, ((1, 2), (3, 4), (5, 6)), {THROTTLE: "*"}) for name in names.values()
    ]
    create(connect_to(cluster6), *steps, CreateTopic(topic_prefix + "other", ((6, 1),), {}))
    counts = "replication_factor: 2"
    (root / "clusters.yaml").write_text(
        f"version: 1\nclusters: {{lab: {{cluster_id: {cluster6.cluster_id}, "
        f"client: {{bootstrap.servers: '{cluster6.bootstrap_servers}'}}}}}}\n"
    )
    (root / "topics.yaml").write_text(
        f"topic: {topic_prefix}new\npartitions: 7\n{counts}\nconfig: {{retention.ms: 1d}}\n---\n"
        f"topic: {names['grown']}\npartitions: 8\n{counts}\nconfig: {{flush.ms: 1s}}\n---\n"
        f"topic: {names['kept']}\npartitions: 3\n{counts}\n---\n"
        f"topic: {names['shrunk']}\npartitions: 2\n{counts}\n---\n"
        f"topic: {names['gone']}\nstate: absent\n"
    )
    yield root
    admin = AdminClient({"bootstrap.servers": cluster6.bootstrap_servers})
    mine = [name for name in admin.list_topics(timeout=10).topics if name.startswith(topic_prefix)]
    for gone in admin.delete_topics(mine).values():
        gone.result(20)


def test_a_snapshot_of_a_real_cluster_is_read_back_whole(
    cluster6: Cluster, estate: Path, tmp_path: Path
) -> None:
    path = tmp_path / "lab.json"
    state = take_snapshot(load_estate(estate), "lab")
    write_snapshot(state, path)
    # Who leads a partition at the moment is no part of what a plan rests on.
    kept = {name: replace(topic, leaders=()) for name, topic in state.topics.items()}
    assert read_snapshot(path) == replace(state, topics=kept)
    assert state.cluster_id == cluster6.cluster_id
    assert all(topic.topic_id for topic in state.topics.values())
    connection = connect_to(cluster6)
    wait_for(lambda: KafkaReader(connection).read_cluster().topics.keys() == state.topics.keys())
    assert KafkaReader(connection).read_cluster().config_defaults == state.config_defaults


def test_a_plan_on_a_snapshot_is_the_live_plan_and_applies(
    estate: Path, tmp_path: Path, topic_prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, live, offline = (str(tmp_path / n) for n in ("lab.json", "live.json", "off.json"))
    verb = ("plan", str(estate), "--cluster", "lab")
    assert run(["snapshot", str(estate), "--cluster", "lab", "--out", saved]) == 0
    capsys.readouterr()
    assert run(["snapshot", str(estate), "--cluster", "lab", "--out", "-"]) == 0
    printed = capsys.readouterr()
    # The free space of log directories changes between the two readings, and the time.
    told, kept = json.loads(printed.out), json.loads((tmp_path / "lab.json").read_text())
    assert len(told.pop("brokers")) == len(kept.pop("brokers"))
    assert told.pop("read_at") > kept.pop("read_at")
    assert told == kept
    assert "saved to" not in printed.err
    assert run([*verb, "--out", live]) == 1
    assert run([*verb, "--against", saved, "--out", offline]) == 1
    planned = (tmp_path / "off.json").read_bytes()
    assert planned == (tmp_path / "live.json").read_bytes()
    assert planned.count(b'"topic_id":"') == 8  # before and after, of four topics
    assert run(["apply", offline, "--estate", str(estate), "--auto-approve", "--skip-refused"]) == 1
    said = capsys.readouterr().out
    assert f"done          {topic_prefix}new" in said
    assert f"done          {topic_prefix}grown" in said
