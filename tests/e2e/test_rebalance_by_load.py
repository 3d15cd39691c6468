"""Six brokers with uneven disks and writes become even, while producers write and consumers read.

Runs that copy are killed in the middle, and the same command continues them. Sizes and rates are
those that reconciler measures. What is judged afterwards, kafka-python reads.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from lab import connect_to, create, wait_for

from reconciler.cli.app import run
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import Cluster, start_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("brief_rates")]

RECORD = bytes(10_000)

SIZES = {"big": 6_000_000, "small": 3_000_000}
"""Bytes of each partition: more than the first fetch of a follower, which no rate limits."""

ROWS = {"big": ((1, 2, 3),) * 4, "small": ((4, 5, 6), (1, 5, 3)) * 4}


@pytest.fixture
def brokers() -> Iterator[Cluster]:
    """Six brokers in three racks: 1 and 4, 2 and 5, 3 and 6."""
    with start_cluster(brokers=6, racks=3) as cluster:
        yield cluster


def test_disks_become_even_under_traffic_though_the_run_was_killed(
    brokers: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(brokers, tmp_path, monkeypatch, rate="2MiB")
    before = list_bytes(brokers)
    assert max(before.values()) > 2.5 * min(before.values())
    asked = ["rebalance", "--cluster", "lab", "--by", "disk", "--out", "disk.json"]
    with traffic(brokers, "big"):
        assert run(asked) == 0
        kill_and_continue(brokers, "disk.json")
    moves = json.loads((tmp_path / "disk.json").read_text())["moves"]
    assert moves["balance"]["unreached"] is False
    assert moves["balance"]["least_bytes"] <= moves["forecast"]["copied_bytes"]
    after = list_bytes(brokers)
    share = sum(after.values()) / 6
    # The traffic meanwhile is small.
    assert all(abs(held - share) < 0.15 * share for held in after.values()), after
    assert run(asked) == 0
    assert list_copied(tmp_path / "disk.json") == (0, 0)


def test_writes_become_even_while_they_go_on_though_the_run_was_killed(
    brokers: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(brokers, tmp_path, monkeypatch, rate="2MiB")
    count = len(ROWS["small"])
    assert count_replicas(brokers, "small") == {1: 4, 3: 4, 4: 4, 5: 8, 6: 4}
    measuring = ["snapshot", "--cluster", "lab", "--measure", "8s"]
    asked = ["rebalance", "--cluster", "lab", "--by", "write", "--out", "write.json"]
    with traffic(brokers, "small", size=1000):
        assert run([*measuring, "--out", "before.json"]) == 0
        assert run([*asked, "--against", "before.json"]) == 0
        kill_and_continue(brokers, "write.json")
        # All partitions are written at one rate.
        assert count_replicas(brokers, "small") == dict.fromkeys(range(1, 7), count * 3 / 6)
        assert run([*measuring, "--out", "after.json"]) == 0
    assert json.loads((tmp_path / "write.json").read_text())["moves"]["replicas"] == 4
    assert run([*asked, "--against", "after.json"]) == 0
    assert list_copied(tmp_path / "write.json") == (0, 0)


def test_leaders_alone_even_the_writes_that_were_measured(
    brokers: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prepare(brokers, tmp_path, monkeypatch)
    written: list[float] = []
    with writing(brokers, written):
        measuring = ["snapshot", "--cluster", "lab", "--measure", "20s", "--out", "lab.json"]
        assert run(measuring) == 0
    taken = json.loads((tmp_path / "lab.json").read_text())
    rates = {
        (topic["name"], number): rate
        for topic in taken["topics"]
        for number, rate in enumerate(topic.get("write_bytes_per_s", ()))
    }
    seconds = taken["measured_s"]
    ended = datetime.fromisoformat(taken["read_at"]).timestamp()
    records = sum(ended - seconds < at <= ended for at in written)
    for number in range(len(ROWS["small"])):
        # The snapshot has whole seconds, and a record may be on either side of a reading.
        expected = records * len(RECORD) / seconds
        assert rates["small", number] == pytest.approx(expected, rel=0.06)

    asked = ["rebalance", "--cluster", "lab", "--by", "write", "--leaders-only"]
    assert run([*asked, "--against", "lab.json", "--out", "write.json"]) == 0
    planned = json.loads((tmp_path / "write.json").read_text())
    assert planned["moves"]["replicas"] == 0
    said = [note["what"] for note in planned["notes"] if note["rule"] == "rates-measured"]
    assert said[0].startswith(f"writes were measured over {seconds} s")
    assert run(["apply", "write.json", "--auto-approve"]) == 0
    led: Counter[int] = Counter()
    for (topic, number), rate in rates.items():
        led[find_leader(brokers, topic, number)] += rate
    (band,) = planned["moves"]["balance"]["bands"]
    # Eight partitions of one rate on six brokers: none leads more than two of them.
    one = max(rates.values())
    assert max(led.values()) < 2.5 * one, band


def test_a_rebalance_that_clusters_yaml_asks_for_is_planned_with_the_moves(
    brokers: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prepare(brokers, tmp_path, monkeypatch)
    estate = tmp_path / "topics" / "clusters.yaml"
    balanced = estate.read_text() + "    balance: {by: [disk, write]}\n"
    estate.write_text(balanced)
    with traffic(brokers, "big"):
        assert run(["report", "uneven", "--cluster", "lab", "--out", "need.json"]) == 0
        need = json.loads((tmp_path / "need.json").read_text())
        assert need["kind"] == "band", need
        assert need["why"].endswith("around the share of disk and write.")
        # Of disk alone: what is written meanwhile is not the same a minute later.
        estate.write_text(f"{balanced}    rebalance: {{by: [disk], until: 2199-12-31}}\n")
        planning = ["plan", "--cluster", "lab", "--moves", "--detailed-exitcode"]
        assert run([*planning, "--out", "asked.json"]) == 2
        assert run(["apply", "asked.json", "--auto-approve"]) == 0
    held = list_bytes(brokers)
    share = sum(held.values()) / 6
    assert all(abs(each - share) < 0.15 * share for each in held.values()), held
    assert run(planning) == 0
    capsys.readouterr()
    assert run(["report", "uneven", "--cluster", "lab", "--out", "need.json"]) == 0
    assert "clusters.yaml already asks for a rebalance until 2199-12-31" in capsys.readouterr().err


def prepare(
    brokers: Cluster, folder: Path, monkeypatch: pytest.MonkeyPatch, rate: str = "50MiB"
) -> None:
    """Create the topics, fill them, and write an estate."""
    monkeypatch.chdir(folder)
    (folder / "topics").mkdir()
    (folder / "topics" / "clusters.yaml").write_text(
        "version: 1\nclusters:\n  lab:\n"
        f"    client: {{bootstrap.servers: '{brokers.bootstrap_servers}'}}\n"
        f"    moves: {{allow: [rebalance], rate: {rate}, keep_free: 0%}}\n"
    )
    with connect_to(brokers) as connection:
        create(connection, *(CreateTopic(name, rows, {}) for name, rows in ROWS.items()))
    producer = Producer({"bootstrap.servers": brokers.bootstrap_servers, "log_level": 0})
    for name, rows in ROWS.items():
        for number in range(len(rows)):
            for _ in range(SIZES[name] // len(RECORD)):
                producer.produce(name, RECORD, partition=number)
                producer.poll(0)
    assert producer.flush(60) == 0


def kill_and_continue(brokers: Cluster, plan: str) -> None:
    """Apply a plan, kill that in the middle of its copies, and have the same command end it."""
    command = ["apply", plan, "--auto-approve"]
    program = [sys.executable, "-m", "reconciler", *command]
    with subprocess.Popen(program, stdout=subprocess.DEVNULL) as process:
        wait_for(lambda: bool(list_copying(brokers)), 120)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert list_copying(brokers), "Kafka goes on copying"
    rates, lists = find_throttles(brokers)
    assert rates
    assert lists
    assert run(command) == 0
    assert list_copying(brokers) == []
    assert find_throttles(brokers) == ([], [])


@contextmanager
def traffic(brokers: Cluster, topic: str, *, size: int = 100) -> Iterator[None]:
    """Write numbered records to every partition at one rate, and consume them meanwhile.

    In the end, the consumer has every record that the brokers took.
    """
    taken: list[bytes] = []
    consumed: set[bytes] = set()
    ended, flushed = threading.Event(), threading.Event()
    servers = {"bootstrap.servers": brokers.bootstrap_servers, "log_level": 0}
    producer = Producer({**servers, "acks": "all", "linger.ms": 0})
    consumer = Consumer({**servers, "group.id": "readers", "auto.offset.reset": "earliest"})

    def write() -> None:
        number = 0
        while not ended.wait(0.1):
            for partition in range(len(ROWS[topic])):
                producer.produce(
                    topic,
                    str(number).zfill(size).encode(),
                    partition=partition,
                    on_delivery=lambda error, record: error or taken.append(record.value()),
                )
                number += 1
            producer.poll(0)
        assert producer.flush(60) == 0

    def read() -> None:
        silent = 0
        while not flushed.is_set() or (silent < 30 and not consumed.issuperset(taken)):
            records = consumer.consume(500, 0.5)
            silent = 0 if records else silent + 1
            consumed.update(record.value() for record in records if not record.error())

    consumer.subscribe([topic])
    writer, reader = threading.Thread(target=write), threading.Thread(target=read)
    writer.start()
    reader.start()
    try:
        wait_for(lambda: not consumed.isdisjoint(taken), 60)
        yield
    finally:
        ended.set()
        writer.join()
        flushed.set()
        reader.join()
        consumer.close()
    assert consumed.issuperset(taken)


@contextmanager
def writing(brokers: Cluster, written: list[float]) -> Iterator[None]:
    """Write ten records each second to every partition of `small`; adds the times of writes."""
    ended = threading.Event()
    producer = Producer({"bootstrap.servers": brokers.bootstrap_servers, "log_level": 0})

    def write() -> None:
        due = time.monotonic()
        while not ended.is_set():
            for number in range(len(ROWS["small"])):
                producer.produce("small", RECORD, partition=number)
            producer.flush(10)
            written.append(time.time())
            due += 0.1
            time.sleep(max(0.0, due - time.monotonic()))

    thread = threading.Thread(target=write)
    thread.start()
    time.sleep(1)
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def ask(brokers: Cluster) -> Iterator[Any]:
    client = KafkaAdminClient(bootstrap_servers=brokers.bootstrap_servers)
    try:
        yield client
    finally:
        client.close()


def list_copying(brokers: Cluster) -> list[Any]:
    """List the reassignments that are in flight."""
    with ask(brokers) as client:
        return list(client.list_partition_reassignments())


def find_throttles(brokers: Cluster) -> tuple[list[str], list[str]]:
    """List the brokers that have a rate, and the topics that have a list."""
    resources = [ConfigResource(ConfigResourceType.BROKER, str(each)) for each in range(1, 7)]
    resources += [ConfigResource(ConfigResourceType.TOPIC, name) for name in ROWS]
    with ask(brokers) as client:
        told = client.describe_configs(resources, config_filter="all")
    rates, lists = (
        [
            name
            for name, config in told[kind].items()
            if any(
                "replication.throttled" in key and each["config_source"] != "DEFAULT_CONFIG"
                for key, each in config.items()
            )
        ]
        for kind in ("broker", "topic")
    )
    return rates, lists


def count_replicas(brokers: Cluster, topic: str) -> Mapping[int, int]:
    """Count the replicas of a topic on each broker."""
    with ask(brokers) as client:
        (found,) = client.describe_topics([topic])
    return Counter(broker for part in found["partitions"] for broker in part["replica_nodes"])


def list_copied(plan: Path) -> tuple[int, int]:
    """Return the replicas and bytes that a plan copies."""
    moves = json.loads(plan.read_text())["moves"]
    return moves["replicas"], (moves["forecast"] or {}).get("copied_bytes", 0)


def list_bytes(brokers: Cluster) -> Mapping[int, int]:
    """Return the bytes of all topics on each broker, but what a move left behind."""
    held: dict[int, int] = {}
    with ask(brokers) as client:
        places = {
            (topic["name"], part["partition_index"]): part["replica_nodes"]
            for topic in client.describe_topics([*ROWS])
            for part in topic["partitions"]
        }
        for broker in range(1, 7):
            held[broker] = 0
            (told,) = client.describe_log_dirs(brokers=[broker])
            for directory in told["log_dirs"]:
                for topic in directory["topics"]:
                    for part in topic["partitions"]:
                        place = (topic["name"], part["partition_index"])
                        if broker in places.get(place, ()):
                            held[broker] += part["partition_size"]
    return held


def find_leader(brokers: Cluster, topic: str, number: int) -> int:
    with ask(brokers) as client:
        (found,) = client.describe_topics([topic])
        return next(
            int(part["leader_id"])
            for part in found["partitions"]
            if part["partition_index"] == number
        )
