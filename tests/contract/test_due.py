"""Topics that are due on real brokers: what nobody uses is named, what somebody uses is not."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from lab import wait_for

from reconciler import build_plan, load_estate, read_cluster
from reconciler.sandbox.cluster import Cluster
from reconciler.show.text import render_text

DAY_MS = 86_400_000


def write(cluster: Cluster, name: str, age_days: int) -> None:
    """Create a topic that keeps records for ever, and write one of this age."""
    keep = {"retention.ms": "-1", "message.timestamp.before.max.ms": str(2**62)}
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 2, config=keep)])[name].result(15)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    producer.produce(name, b"x", timestamp=int(time.time() * 1000) - age_days * DAY_MS)
    assert producer.flush(15) == 0


def test_a_plan_names_what_is_due_with_its_last_write_and_its_readers(
    cluster3: Cluster, topic_prefix: str, tmp_path: Path
) -> None:
    ages = {"idle": 100, "read": 100, "fresh": 1, "spared.dlq": 100, "expired": 5}
    names = {word: f"{topic_prefix}{word}" for word in ages}
    for word, age in ages.items():
        write(cluster3, names[word], age)
    group = f"{topic_prefix}readers"
    reader = Consumer(
        {"bootstrap.servers": cluster3.bootstrap_servers, "group.id": group, "log_level": 0}
    )
    with closing(reader):
        reader.subscribe([names["read"], names["expired"]])
        wait_for(lambda: reader.poll(0.1) is None and len(reader.assignment()) == 2)
        read = [TopicPartition(names[word], 0, 1) for word in ("read", "expired")]
        reader.commit(offsets=read, asynchronous=False)
        clusters = {
            "version": 1,
            "defaults": {"idle_after": "90d"},
            "policy": {"exempt": {"topic-idle": ["*.dlq"]}},
            "clusters": {"prod": {"client": {"bootstrap.servers": cluster3.bootstrap_servers}}},
        }
        (tmp_path / "clusters.yaml").write_text(yaml.safe_dump(clusters))
        documents = [{"topic": name, "config": {"retention.ms": -1}} for name in names.values()]
        for document in documents:
            document["config"]["message.timestamp.before.max.ms"] = 2**62
        documents[-1]["expires"] = "2020-01-01"
        (tmp_path / "topics.yaml").write_text(yaml.safe_dump_all(documents))
        estate = load_estate(tmp_path)
        plan = build_plan(estate, "prod", read_cluster(estate, "prod"))
    found = {t.name: [note.rule for note in t.notes] for t in plan.topics if t.notes}
    assert found == {names["expired"]: ["topic-expired"], names["idle"]: ["topic-idle"]}
    text = render_text(plan)
    assert "100d ago; no consumer group is active on it" in text
    assert "it expired on 2020-01-01: last written" in text
    assert f"5d ago; read by {group}" in text
    assert plan.unchanged == len(ages)
