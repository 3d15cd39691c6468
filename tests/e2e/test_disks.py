"""The log directories of two brokers become even, while a producer writes to them.

What is judged afterwards, kafka-python reads.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import ResourceType
from directories import (
    RATE_KEY,
    add_up,
    fill,
    find_paths,
    list_paths,
    list_replicas,
    put,
    read_rate,
)
from lab import connect_to, create, set_config, wait_for

from reconciler.cli.app import run
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import Cluster, start_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("brief_rates")]

SIZE = 1_000_000
PARTITIONS = 9
ROWS = tuple((1, 2) if number % 2 else (2, 1) for number in range(PARTITIONS))
APPLY = (sys.executable, "-c", "from reconciler.cli import main; main()", "apply", "plan.json")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two brokers with three log directories each, and a topic of nine partitions."""
    with start_cluster(brokers=2, racks=1, log_directories=3) as cluster:
        with connect_to(cluster) as connection:
            create(connection, CreateTopic("t", ROWS, {}), CreateTopic("live", ((1, 2),), {}))
        fill(cluster, "t", dict.fromkeys(range(PARTITIONS), SIZE))
        yield cluster


@pytest.fixture(autouse=True)
def uneven(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put all replicas of the topic into the first directory of each broker."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    write_estate(cluster, "50MiB")
    for broker in (1, 2):
        first, *_ = list_paths(cluster, broker)
        put(cluster, broker, {("t", number): first for number in range(PARTITIONS)})


def write_estate(cluster: Cluster, rate: str) -> None:
    Path("topics/clusters.yaml").write_text(
        f"version: 1\nclusters:\n  lab:\n    cluster_id: {cluster.cluster_id}\n"
        f"    client: {{bootstrap.servers: '{cluster.bootstrap_servers}'}}\n"
        f"    moves: {{allow: [rebalance], rate: {rate}, keep_free: 0%}}\n"
    )


def plan(*options: str) -> dict[str, object]:
    asked = ["rebalance", "--cluster", "lab", "--out", "plan.json"]
    assert run([*asked, *options]) == 0
    moves: dict[str, object] = json.loads(Path("plan.json").read_text())["moves"]
    return moves


def list_copying(cluster: Cluster) -> list[tuple[str, int]]:
    return [
        place
        for broker in (1, 2)
        for place, found in list_replicas(cluster, broker)
        if found.is_future
    ]


@contextmanager
def traffic(cluster: Cluster, topic: str) -> Iterator[list[bytes]]:
    """Write numbered records all the time; yields those that the brokers took."""
    sent: list[bytes] = []
    ended = threading.Event()
    servers = cluster.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "log_level": 0})

    def write() -> None:
        number = 0
        while not ended.is_set():
            producer.produce(
                topic,
                str(number).encode(),
                on_delivery=lambda error, record: error or sent.append(record.value()),
            )
            producer.poll(0.01)
            number += 1
        assert producer.flush(60) == 0

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield sent
    finally:
        ended.set()
        thread.join()


def read_numbers(cluster: Cluster, topic: str, sent: list[bytes]) -> set[bytes]:
    """Read a topic until all that was sent is there, or nothing more comes."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "judge",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    found: set[bytes] = set()
    silent = 0
    while not found.issuperset(sent) and silent < 20:
        records = consumer.consume(500, 1)
        silent = 0 if records else silent + 1
        found.update(record.value() for record in records if not record.error())
    consumer.close()
    return found


def test_directories_become_even_under_traffic_and_no_record_is_lost(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with traffic(cluster, "t") as sent:
        moves = plan("--disks")
        assert run(["apply", "plan.json", "--auto-approve"]) == 0
    directories = moves["directories"]
    assert isinstance(directories, dict)
    copied = sum(each["size_bytes"] for each in directories["copies"])
    assert directories["least_bytes"] <= copied
    for broker in (1, 2):
        held = add_up(cluster, broker)
        share = sum(held.values()) / 3
        # Every directory holds three of nine partitions.
        assert all(abs(each - share) < 0.1 * share for each in held.values()), held
        paths = find_paths(cluster, broker)
        for each in directories["copies"]:
            if each["broker"] == broker:
                assert paths[each["topic"], each["partition"]] == each["target"]
        assert read_rate(cluster, broker) is None
    assert list_copying(cluster) == []
    assert read_numbers(cluster, "t", sent).issuperset(sent)

    capsys.readouterr()
    again = plan("--disks")["directories"]
    assert isinstance(again, dict)
    assert again["copies"] == []


def test_a_run_that_was_killed_is_continued(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    write_estate(cluster, "300KiB")
    moves = plan("--disks")["directories"]
    assert isinstance(moves, dict)
    process = subprocess.Popen([*APPLY, "--auto-approve"], stderr=subprocess.DEVNULL)
    wait_for(lambda: bool(list_copying(cluster)), 60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list_copying(cluster), "Kafka goes on copying"
    assert read_rate(cluster, 1) == str(300 * 1024 + 1)
    assert run(["apply", "plan.json", "--auto-approve"]) == 0
    assert "1 done" in capsys.readouterr().out
    for each in moves["copies"]:
        paths = find_paths(cluster, each["broker"])
        assert paths[each["topic"], each["partition"]] == each["target"]
    assert (list_copying(cluster), read_rate(cluster, 1)) == ([], None)


def test_a_cancelled_move_stays_in_its_directory(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    write_estate(cluster, "30KiB")
    moves = plan("--disks")["directories"]
    assert isinstance(moves, dict)
    process = subprocess.Popen([*APPLY, "--auto-approve"], stderr=subprocess.DEVNULL)
    wait_for(lambda: bool(list_copying(cluster)), 60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert run(["moves", "status", "--cluster", "lab"]) == 2
    shown = capsys.readouterr().out
    assert "between log directories" in shown
    assert "t partition " in shown
    assert run(["moves", "cancel", "--plan", "plan.json", "--auto-approve"]) == 0
    assert "in the former log directories" in capsys.readouterr().out
    assert list_copying(cluster) == []
    stayed = [
        each
        for each in moves["copies"]
        if find_paths(cluster, each["broker"])[each["topic"], each["partition"]] == each["source"]
    ]
    # A throttle takes a moment to work, so a copy or two may have been complete by then.
    assert len(stayed) > len(moves["copies"]) / 2
    assert run(["moves", "settle", "--cluster", "lab", "--auto-approve"]) == 0
    assert read_rate(cluster, 1) is None


def test_a_directory_is_emptied(cluster: Cluster) -> None:
    first, *_ = list_paths(cluster, 1)
    plan("--empty-dir", f"1:{first}")
    assert run(["apply", "plan.json", "--auto-approve"]) == 0
    assert add_up(cluster, 1)[first] == 0
    assert first not in find_paths(cluster, 1).values()
    assert first.replace("broker-1", "broker-2") in find_paths(cluster, 2).values()


def test_a_plan_is_stale_once_a_replica_is_elsewhere(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    moves = plan("--disks")["directories"]
    assert isinstance(moves, dict)
    copy = moves["copies"][0]
    _, *others = list_paths(cluster, copy["broker"])
    other = next(path for path in others if path != copy["target"])
    put(cluster, copy["broker"], {(copy["topic"], copy["partition"]): other})
    capsys.readouterr()
    assert run(["apply", "plan.json", "--auto-approve"]) == 1
    assert f"it is in {other}, not {copy['source']}" in " ".join(capsys.readouterr().err.split())


def test_a_higher_rate_of_somebody_else_is_not_overwritten(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    write_estate(cluster, "1MiB")
    plan("--disks")
    values = {RATE_KEY.replace(".", "_"): "99999999"}
    set_config(cluster, ResourceType.BROKER, "1", **values)
    try:
        wait_for(lambda: read_rate(cluster, 1) == "99999999")
        assert run(["apply", "plan.json", "--auto-approve"]) == 1
        assert "more than the 1048576 B/s of the plan" in " ".join(capsys.readouterr().err.split())
        assert read_rate(cluster, 1) == "99999999"
    finally:
        set_config(cluster, ResourceType.BROKER, "1", **{RATE_KEY.replace(".", "_"): str(2**50)})
