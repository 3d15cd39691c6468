"""Ten daily questions, each answered by one command, and read back by an independent client.

On a cluster of its own with an outage, an unmanaged topic, an idle topic, a hot partition, and a
topic whose configs come from nine places.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from command import RECONCILER, Ran, run_here
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ClusterMetadata,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from kafka.admin import KafkaAdminClient
from lab import set_config, wait_for
from terminal import Terminal

from reconciler.sandbox.cluster import Cluster, start_cluster

CLUSTERS = """version: 1
defaults: {config: {max.message.bytes: 2MiB}}
profiles: {log: {config: {retention.ms: 7d}}}
clusters: {prod: {defaults: {config: {segment.ms: 1d}}}}
"""
ORDERS = """topic: orders.events
owner: orders-team
partitions: 4
replication_factor: 3
profile: log
config: {cleanup.policy: delete}
overrides: {prod: {config: {flush.ms: 9s}}}
"""
OVERRIDES = {
    "max.message.bytes": "2097152",
    "retention.ms": "604800000",
    "segment.ms": "86400000",
    "cleanup.policy": "delete",
    "flush.ms": "9000",
    "retention.bytes": "100000000",
}
ORIGINS = {
    "max.message.bytes": "estate-defaults",
    "segment.ms": "cluster-defaults",
    "retention.ms": "profile",
    "cleanup.policy": "spec",
    "flush.ms": "override",
    "retention.bytes": "topic",
    "min.insync.replicas": "all-brokers",
    "index.interval.bytes": "static",
    "compression.type": "kafka-default",
}
HOT, RECORD = 1, 50_000


class Questions:
    """The cluster, the directory of the estate, and the clients that do not belong to us."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        self.servers = cluster.bootstrap_servers
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def run(self, *arguments: str) -> Ran:
        return run_here(self.directory, self.servers, *arguments)

    def ask(self, *arguments: str) -> Any:
        ran = self.run(*arguments, "--format", "json")
        assert ran.code == 0, ran
        return json.loads(ran.out)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Questions]:
    directory = tmp_path_factory.mktemp("daily")
    (directory / "topics").mkdir()
    (directory / "topics" / "clusters.yaml").write_text(CLUSTERS)
    (directory / "topics" / "orders.yaml").write_text(ORDERS)
    static = {"log.index.interval.bytes": "8192"}
    with start_cluster(brokers=3, racks=3, properties=static) as cluster:
        questions = Questions(cluster, directory)
        new = [
            NewTopic("orders.events", 4, 3, config=OVERRIDES),
            NewTopic("stray", 2, replica_assignment=[[3], [1]]),
            NewTopic("old.exports", 1, 3),
        ]
        for created in questions.admin.create_topics(new).values():
            created.result(20)
        set_config(cluster, ResourceType.BROKER, "1", num_replica_fetchers="2")
        producer = Producer({"bootstrap.servers": questions.servers, "log_level": 0})
        old_ms = int((time.time() - 40 * 86_400) * 1000)
        for number in range(40):
            partition = HOT if number % 5 else number // 5 % 4
            producer.produce("orders.events", os.urandom(RECORD), partition=partition)
        producer.produce("old.exports", b"old", timestamp=old_ms)
        producer.produce("stray", b"new")
        assert producer.flush(60) == 0
        yield questions


@pytest.fixture
def billing(asked: Questions) -> Iterator[Consumer]:
    """A consumer of a group that has committed 10 records of the hot partition."""
    settings = {"bootstrap.servers": asked.servers, "group.id": "billing", "log_level": 0}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe(["orders.events"])
    wait_for(lambda: consumer.poll(0.2) is None and bool(consumer.assignment()), 60)
    consumer.commit(offsets=[TopicPartition("orders.events", HOT, 10)], asynchronous=False)
    yield consumer
    consumer.close()


def test_the_topics_of_a_team(asked: Questions) -> None:
    told = asked.ask("get", "topics", "--cluster", "prod", "--owner", "orders-team")
    assert [each["topic"] for each in told["topics"]] == ["orders.events"]
    shown = asked.admin.list_topics("orders.events", timeout=15).topics["orders.events"]
    assert told["topics"][0]["partitions"] == len(shown.partitions)
    assert told["topics"][0]["problems"] == {}


def test_what_no_file_names(asked: Questions) -> None:
    told = asked.ask("get", "topics", "--cluster", "prod", "--unmanaged")
    live = {name for name in asked.admin.list_topics(timeout=15).topics if name[:2] != "__"}
    assert {each["topic"] for each in told["topics"]} == live - {"orders.events"}


def test_what_nobody_uses(asked: Questions, billing: Consumer) -> None:
    told = asked.ask("get", "topics", "--cluster", "prod", "--idle", "30d")
    assert [each["topic"] for each in told["topics"]] == ["old.exports"]
    place = TopicPartition("old.exports", 0)
    spec: Any = OffsetSpec
    newest = asked.admin.list_offsets({place: spec.max_timestamp()})[place].result(15).timestamp
    said = datetime.fromisoformat(told["topics"][0]["last_written"])
    assert round(said.timestamp() * 1000) == newest


def test_a_configuration_and_its_origins(asked: Questions) -> None:
    told = asked.ask("describe", "orders.events", "--cluster", "prod")
    found = {each["key"]: each for each in told["about"]["configs"]}
    assert {key: found[key]["origin"] for key in ORIGINS} == ORIGINS
    resource = ConfigResource(ResourceType.TOPIC, "orders.events")
    (answer,) = asked.admin.describe_configs([resource]).values()
    assert {key: each["value"] for key, each in found.items()} == {
        key: entry.value for key, entry in answer.result(15).items()
    }
    assert found["retention.ms"]["where"]["line"] == 3


def test_what_the_next_plan_does(asked: Questions) -> None:
    told = asked.ask("describe", "orders.events", "--cluster", "prod")
    assert told["next_plan"]["steps"] == ["configure"]
    before, after = (told["next_plan"]["change"][side]["config"] for side in ("before", "after"))
    assert before.keys() - after.keys() == {"retention.bytes"}
    screen = asked.run("describe", "orders.events", "--cluster", "prod")
    planned = asked.run("plan", "--cluster", "prod", "--topic", "orders.events")
    assert "100000000 → unset" in screen.out
    assert "100000000 → unset" in planned.out


def test_who_reads_and_with_what_lag(asked: Questions, billing: Consumer) -> None:
    (row,) = asked.ask("get", "groups", "--cluster", "prod", "--topic", "orders.*")["groups"]
    _, end = billing.get_watermark_offsets(TopicPartition("orders.events", HOT), timeout=15)
    assert (row["group"], row["members"], row["lag"]) == ("billing", 1, end - 10)
    assert row["most_behind"] == {"topic": "orders.events", "partition": HOT}
    assert row["uncommitted"] == 3
    assert asked.ask("get", "groups", "--topic", "stray")["groups"] == []


def test_which_broker_holds_how_much_and_which_partition_is_hot(asked: Questions) -> None:
    sizes = read_sizes(asked, 1)
    rows = {row["broker"]: row for row in asked.ask("get", "brokers")["brokers"]}
    assert rows[1]["replicas"] == len(sizes)
    assert abs(rows[1]["size_bytes"] - sum(sizes.values())) < RECORD
    told = asked.ask("get", "partitions", "--topic", "orders.events")["partitions"]
    hottest = max(told, key=lambda row: row["skew"])
    assert (hottest["partition"], hottest["size_bytes"]) == (HOT, sizes["orders.events", HOT])
    screen = asked.run("describe", "orders.events", "--cluster", "prod").out
    assert f"largest: partition {HOT} with" in screen
    assert "a hot key?" in screen


def test_who_writes_in_transactions(asked: Questions) -> None:
    settings = {"bootstrap.servers": asked.servers, "transactional.id": "mover", "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("stray", b"once")
    producer.commit_transaction(30)
    told = asked.ask("describe", "stray")["about"]["producers"]
    assert told == {"count": 1, "transactional": ["mover"], "unseen": ""}


def test_the_configs_that_are_set_on_a_broker(asked: Questions) -> None:
    told = asked.ask("describe", "broker", "1")["about"]
    found = {each["key"]: (each["value"], each["origin"]) for each in told["configs"]}
    assert found["num.replica.fetchers"] == ("2", "broker")
    assert found["log.index.interval.bytes"] == ("8192", "static")


def test_under_replicated_and_offline_partitions_in_an_outage(asked: Questions) -> None:
    asked.cluster.stop_broker(3)
    try:
        wait_for(lambda: has_settled(asked.admin.list_topics(timeout=15)), 60)
        told = asked.ask("get", "partitions", "--unhealthy")["partitions"]
        shown = asked.admin.list_topics(timeout=15).topics
        expected = {
            (name, number, part.leader < 0, len(part.isrs) < len(part.replicas))
            for name, topic in shown.items()
            for number, part in topic.partitions.items()
            if part.leader < 0 or len(part.isrs) < len(part.replicas)
        }
        assert any(each[2] for each in expected)
        assert {
            (
                row["topic"],
                row["partition"],
                "offline" in row["problems"],
                "under_replicated" in row["problems"],
            )
            for row in told
        } == expected
        rows = asked.ask("get", "brokers", "--unhealthy")["brokers"]
        assert [(row["broker"], row["status"], row["leaders"]) for row in rows] == [(3, "dead", 0)]
        screen = asked.run("describe", "orders.events", "--cluster", "prod").out
        assert "health      under-replicated 4" in screen
        assert "(3)" in screen
    finally:
        asked.cluster.start_broker(3)


def test_the_last_changes_of_a_topic(asked: Questions, tmp_path: Path) -> None:
    (tmp_path / "topics").mkdir()
    clusters = "version: 1\nclusters: {prod: {audit_topic: audit.log}}\n"
    (tmp_path / "topics" / "clusters.yaml").write_text(clusters)
    specs = "---\n".join(
        f"topic: {name}\npartitions: 1\nreplication_factor: 1\n" for name in ("audit.log", "made")
    )
    (tmp_path / "topics" / "made.yaml").write_text(specs)
    here = Questions(asked.cluster, tmp_path)
    ran = here.run("apply", "--cluster", "prod", "--auto-approve")
    assert ran.code == 0, ran
    changes = here.ask("describe", "made", "--cluster", "prod")["about"]["changes"]
    assert [(each["verb"], each["outcome"], each["ended"]) for each in changes["last"]] == [
        ("apply", "done", "done")
    ]
    screen = here.run("describe", "made", "--cluster", "prod").out
    assert "Last changes\n  20" in screen
    other = here.run("describe", "stray", "--cluster", "prod").out
    assert "none in the audit topic in 90 days" in other


def test_a_person_watches_topics_come_and_leaves(asked: Questions, tmp_path: Path) -> None:
    program = (*RECONCILER, "get", "topics", "--bootstrap-servers", asked.servers, "--watch", "1")
    reported = tmp_path / "code"
    shell = ("/bin/sh", "-c", f'trap : INT; "$@"; echo $? > {reported}', "sh", *program)
    with Terminal(shell, {"COLUMNS": ""}, 80) as terminal:
        terminal.wait_for(b"stray", b" topics", b"F\x1b[J", b" topics")
        asked.admin.create_topics([NewTopic("arrival", 1, 1)])["arrival"].result(20)
        terminal.wait_for(b"F\x1b[J", b"arrival", b" topics")
        terminal.press(b"\x03")
        terminal.wait_for(b"interrupted")
        terminal.wait_for_end()
    assert reported.read_text() == "130\n"
    assert b"Traceback" not in terminal.output


def test_programs_watch_a_line_for_each_reading(asked: Questions) -> None:
    command = [*RECONCILER, "get", "brokers", "--bootstrap-servers", asked.servers]
    running = subprocess.Popen(
        [*command, "--watch", "1", "--format", "json"], stdout=subprocess.PIPE, text=True
    )
    with running:
        assert running.stdout is not None
        readings = [json.loads(running.stdout.readline()) for _ in range(2)]
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
    assert [len(each["brokers"]) for each in readings] == [3, 3]


def has_settled(shown: ClusterMetadata) -> bool:
    """Return whether brokers show of each partition on broker 3 what its end did to it."""
    partitions = [each for topic in shown.topics.values() for each in topic.partitions.values()]
    return all(each.leader < 0 or 3 not in each.isrs for each in partitions)


def read_sizes(asked: Questions, broker: int) -> dict[tuple[str, int], int]:
    """Ask a broker for the sizes of its replicas."""
    client = KafkaAdminClient(bootstrap_servers=asked.cluster.addresses()[broker])
    try:
        (told,) = client.describe_log_dirs(brokers=[broker])
    finally:
        client.close()
    return {
        (topic["name"], part["partition_index"]): part["partition_size"]
        for directory in told["log_dirs"]
        for topic in directory["topics"]
        for part in topic["partitions"]
    }
