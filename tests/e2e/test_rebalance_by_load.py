"""Six brokers with uneven disks and writes become even, while producers write and consumers read.

Sizes and rates are those that reconciler measures. What is judged afterwards, kafka-python reads.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from kafka.admin import KafkaAdminClient
from lab import connect_to, create

from reconciler.cli.app import run
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import Cluster, start_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("brief_rates")]

RECORD = bytes(10_000)

SIZES = {"big": 6_000_000, "small": 1_000_000}
"""Bytes of each partition."""

ROWS = {"big": ((1, 2, 3),) * 4, "small": ((4, 5, 6), (1, 5, 3)) * 4}


@pytest.fixture
def brokers() -> Iterator[Cluster]:
    """Six brokers in three racks: 1 and 4, 2 and 5, 3 and 6."""
    with start_cluster(brokers=6, racks=3) as cluster:
        yield cluster


def test_disks_become_even_under_traffic_and_no_record_is_lost(
    brokers: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prepare(brokers, tmp_path, monkeypatch)
    before = list_bytes(brokers)
    assert max(before.values()) > 3 * min(before.values())
    asked = ["rebalance", "--cluster", "lab", "--by", "disk", "--out", "disk.json"]
    with traffic(brokers) as sent:
        assert run(asked) == 0
        assert run(["apply", "disk.json", "--auto-approve"]) == 0
    moves = json.loads((tmp_path / "disk.json").read_text())["moves"]
    assert moves["balance"]["unreached"] is False
    assert moves["balance"]["least_bytes"] <= moves["forecast"]["copied_bytes"]
    after = list_bytes(brokers)
    share = sum(after.values()) / 6
    # The traffic meanwhile is a few records.
    assert all(abs(held - share) < 0.15 * share for held in after.values()), after
    assert read_all(brokers, "live", len(sent)) == set(sent)

    capsys.readouterr()
    assert run(asked) == 0
    assert "copied" not in capsys.readouterr().out.replace("no replica is copied", "")


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
    with traffic(brokers) as sent:
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
    assert read_all(brokers, "live", len(sent)) == set(sent)
    assert run(planning) == 0
    capsys.readouterr()
    assert run(["report", "uneven", "--cluster", "lab", "--out", "need.json"]) == 0
    assert "asks for a rebalance until 2199-12-31 already" in capsys.readouterr().err


def prepare(brokers: Cluster, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create the topics, fill them, and write an estate."""
    monkeypatch.chdir(folder)
    (folder / "topics").mkdir()
    (folder / "topics" / "clusters.yaml").write_text(
        "version: 1\nclusters:\n  lab:\n"
        f"    client: {{bootstrap.servers: '{brokers.bootstrap_servers}'}}\n"
        "    moves: {allow: [rebalance], rate: 50MiB, keep_free: 0%}\n"
    )
    with connect_to(brokers) as connection:
        create(connection, *(CreateTopic(name, rows, {}) for name, rows in ROWS.items()))
        create(connection, CreateTopic("live", ((1, 2, 3), (4, 5, 6)), {}))
    producer = Producer({"bootstrap.servers": brokers.bootstrap_servers, "log_level": 0})
    for name, rows in ROWS.items():
        for number in range(len(rows)):
            for _ in range(SIZES[name] // len(RECORD)):
                producer.produce(name, RECORD, partition=number)
                producer.poll(0)
    assert producer.flush(60) == 0


@contextmanager
def traffic(brokers: Cluster) -> Iterator[list[bytes]]:
    """Write numbered records all the time; yields those that the brokers took."""
    sent: list[bytes] = []
    ended = threading.Event()
    producer = Producer(
        {"bootstrap.servers": brokers.bootstrap_servers, "acks": "all", "log_level": 0}
    )

    def write() -> None:
        number = 0
        while not ended.is_set():
            value = str(number).encode()
            producer.produce(
                "live",
                value,
                partition=number % 2,
                on_delivery=lambda error, record: error or sent.append(record.value()),
            )
            producer.poll(0.02)
            number += 1
        assert producer.flush(60) == 0

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield sent
    finally:
        ended.set()
        thread.join()


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


def read_all(brokers: Cluster, topic: str, count: int) -> set[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": brokers.bootstrap_servers,
            "group.id": "judge",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    found: set[bytes] = set()
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        found.update(record.value() for record in consumer.consume(500, 1) if not record.error())
    consumer.close()
    return found


def list_bytes(brokers: Cluster) -> Mapping[int, int]:
    """Return the bytes of all topics on each broker, but what a move left behind."""
    held: dict[int, int] = {}
    client = KafkaAdminClient(bootstrap_servers=brokers.bootstrap_servers)
    try:
        places = {
            (topic["name"], part["partition_index"]): part["replica_nodes"]
            for topic in client.describe_topics([*ROWS, "live"])
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
    finally:
        client.close()
    return held


def find_leader(brokers: Cluster, topic: str, number: int) -> int:
    client = KafkaAdminClient(bootstrap_servers=brokers.bootstrap_servers)
    try:
        (found,) = client.describe_topics([topic])
        return next(
            int(part["leader_id"])
            for part in found["partitions"]
            if part["partition_index"] == number
        )
    finally:
        client.close()
