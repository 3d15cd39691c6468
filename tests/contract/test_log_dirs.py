"""Sizes and free space, as real brokers tell them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from lab import HERE, connect_to, create, wait_for
from proxy import Loss, failing_network

from reconciler.api.planning import load_estate, read_cluster
from reconciler.api.snapshots import read_snapshot, take_snapshot, write_snapshot
from reconciler.cli.app import run
from reconciler.kafka.connection import connect
from reconciler.kafka.moves import MovesReader
from reconciler.kafka.reader import KafkaReader
from reconciler.model.cluster import ClusterState
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.spec.entry import ClusterEntry

DESCRIBE_LOG_DIRS = 35
RECORD = 100_000
ROWS = ((1, 2), (3, 4), (5, 6))


@pytest.fixture
def topic(cluster6: Cluster, topic_prefix: str) -> Iterator[str]:
    """Return a topic whose partition 0 holds 5 records, and partition 1 one."""
    name = f"{topic_prefix}sized"
    create(connect_to(cluster6), CreateTopic(name, ROWS, {}))
    write(cluster6, name, 0, 5)
    write(cluster6, name, 1, 1)
    yield name
    delete(cluster6, name)


def write(cluster: Cluster, topic: str, partition: int, records: int) -> None:
    """Write records that no codec makes smaller."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for _ in range(records):
        producer.produce(topic, os.urandom(RECORD), partition=partition)
    assert producer.flush(60) == 0


def delete(cluster: Cluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(20)
    reader = KafkaReader(connect_to(cluster))
    wait_for(lambda: all(topic not in view for view in reader.read_views([topic]).values()))


def read(cluster: Cluster) -> tuple[KafkaReader, ClusterState]:
    reader = KafkaReader(connect_to(cluster))
    return reader, reader.read_cluster()


class TestSizes:
    def test_a_partition_has_the_size_of_its_largest_replica(
        self, cluster6: Cluster, topic: str
    ) -> None:
        reader, state = read(cluster6)
        first, second, third = reader.read_sizes(state).topics[topic].size_bytes
        assert 5 * RECORD < first < 6 * RECORD
        assert RECORD < second < 2 * RECORD
        assert third == 0

    def test_an_ordinary_reading_has_none(self, cluster6: Cluster, topic: str) -> None:
        _, state = read(cluster6)
        assert (state.topics[topic].size_bytes, state.directories) == ((), {})

    def test_directories_have_room_and_count_their_replicas(
        self, cluster6: Cluster, topic: str
    ) -> None:
        reader, state = read(cluster6)
        found = reader.read_sizes(state)
        assert set(found.directories) == {1, 2, 3, 4, 5, 6}
        held = Counter(
            broker for live in state.topics.values() for row in live.assignment for broker in row
        )
        for broker, directories in found.directories.items():
            (only,) = directories
            assert Path(only.path).is_absolute()
            assert only.total_bytes is not None
            assert only.usable_bytes is not None
            assert 0 < only.usable_bytes < only.total_bytes
            assert only.replicas == held[broker]
        assert topic in found.topics
        assert found.notes == state.notes

    def test_a_broker_that_does_not_answer_is_named_and_the_others_tell_sizes(
        self, cluster6: Cluster, topic: str
    ) -> None:
        with failing_network(cluster6) as network:
            fault = network.lose(DESCRIBE_LOG_DIRS, Loss.CUT_BEFORE, skip=0)
            entry = ClusterEntry("lab", HERE)
            with connect(entry, bootstrap_servers=network.bootstrap_servers) as connection:
                reader = KafkaReader(connection)
                found = reader.read_sizes(reader.read_cluster())
        assert fault.struck.is_set()
        (silent,) = {1, 2, 3, 4, 5, 6} - found.directories.keys()
        (note,) = (note for note in found.notes if note.rule == "sizes-unseen")
        assert note.what.startswith(f"broker {silent} of lab does not say what it holds: ")
        assert found.topics[topic].size_bytes[0] > 5 * RECORD


def read_for_moves(cluster: Cluster) -> ClusterState:
    reader = KafkaReader(connect_to(cluster))
    return reader.read_moves(reader.read_cluster(), interval_s=0)


def find_offline(cluster: Cluster) -> list[tuple[int, ...]]:
    state = read_for_moves(cluster)
    return list(state.find_offline(state.topics["held"]))


@pytest.fixture(scope="module")
def broken() -> Iterator[tuple[Cluster, str]]:
    """Return a cluster on which a log directory of broker 3 has failed, and its path."""
    with start_cluster(brokers=4, racks=1, log_directories=2) as cluster:
        connection = connect_to(cluster)
        create(connection, CreateTopic("held", ((3, 1), (3, 1), (3, 2), (3, 2), (1, 2)), {}))
        for partition in range(5):
            write(cluster, "held", partition, 2)
        directories = read_for_moves(cluster).directories[3]
        # The first one also holds the metadata: without it, the broker stops.
        path = Path(next(each.path for each in directories if each.path.endswith("log-1")))
        path.rename(path.with_name("failed"))
        path.touch()
        # Kafka notices at its next write of a checkpoint there.
        wait_for(lambda: bool(read_for_moves(cluster).failed_directories), 60)
        wait_for(lambda: any(find_offline(cluster)), 60)
        yield cluster, str(path)


class TestAFailedDirectory:
    def test_it_is_named_and_its_replicas_are_offline(self, broken: tuple[Cluster, str]) -> None:
        cluster, path = broken
        state = read_for_moves(cluster)
        assert state.failed_directories == {3: (path,)}
        first, second = state.directories[3]
        assert (first.online, second.online) == (True, False)
        offline = find_offline(cluster)
        assert 0 < sum(map(bool, offline)) < 4
        assert set(offline) == {(), (3,)}
        with connect_to(cluster) as connection:
            notes = [n.what for n in MovesReader(connection).read_moves().notes]
        assert f"log directory {path} of broker 3 is offline" in notes

    def test_its_replicas_move_and_all_others_stay(
        self, broken: tuple[Cluster, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        cluster, path = broken
        before = read_for_moves(cluster).topics["held"].assignment
        offline = find_offline(cluster)
        root = tmp_path / "topics"
        root.mkdir()
        (root / "clusters.yaml").write_text(
            f"version: 1\nclusters:\n  lab:\n    cluster_id: {cluster.cluster_id}\n"
            f"    client: {{bootstrap.servers: '{cluster.bootstrap_servers}'}}\n"
            "    moves: {allow: [rebalance], rate: unlimited, keep_free: 0%}\n"
        )
        plan = str(tmp_path / "plan.json")
        asked = ["rebalance", str(root), "--cluster", "lab", "--offline-replicas", "--out", plan]
        assert run(asked) == 0
        assert f"log directory {path} of broker 3 is offline" in capsys.readouterr().out
        assert run(["apply", plan, "--estate", str(root), "--auto-approve"]) == 0
        after = read_for_moves(cluster).topics["held"].assignment
        for old, new, lost in zip(before, after, offline, strict=True):
            assert 3 not in new if lost else new == old
        assert not any(find_offline(cluster))


class TestCommands:
    @pytest.fixture
    def estate(self, cluster6: Cluster, topic_prefix: str, tmp_path: Path) -> Path:
        root = tmp_path / "topics"
        root.mkdir()
        (root / "clusters.yaml").write_text(
            f"version: 1\nclusters: {{lab: {{cluster_id: {cluster6.cluster_id}, "
            f"client: {{bootstrap.servers: '{cluster6.bootstrap_servers}'}}}}}}\n"
        )
        (root / "topics.yaml").write_text(
            f"topic: {topic_prefix}new\npartitions: 12\nreplication_factor: 1\n"
        )
        return root

    def test_a_snapshot_has_sizes_and_directories(
        self, topic: str, estate: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "lab.json"
        write_snapshot(take_snapshot(load_estate(estate), "lab"), path)
        found = read_snapshot(path)
        assert found.topics[topic].size_bytes[0] > 5 * RECORD
        assert set(found.directories) == {1, 2, 3, 4, 5, 6}
        assert found.topics[topic].write_bytes_per_s == ()

    def test_a_live_plan_weighs_by_disk(
        self, topic: str, estate: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        # New partitions of a new topic count as the median of all topics: here, most are empty.
        grown = f"topic: {topic}\npartitions: 12\nacknowledge: [ordering]\n"
        (estate / "topics.yaml").write_text(grown)
        assert run(["plan", str(estate), "--cluster", "lab", "--by", "disk"]) == 0
        assert "\nby disk: replicas " in capsys.readouterr().out

    def test_the_balance_of_the_cluster_has_sizes_read_where_topics_are_placed(
        self, topic: str, estate: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        clusters = estate / "clusters.yaml"
        clusters.write_text(clusters.read_text().replace("lab: {", "lab: {balance: {by: [disk]}, "))
        grown = f"topic: {topic}\npartitions: 12\nacknowledge: [ordering]\n"
        (estate / "topics.yaml").write_text(grown)
        assert run(["plan", str(estate), "--cluster", "lab"]) == 0
        assert "\nby disk: replicas " in capsys.readouterr().out
        assert run(["plan", str(estate), "--cluster", "lab", "--by", "count"]) == 0
        assert "\nby disk: " not in capsys.readouterr().out

    def test_a_live_plan_has_no_rates_to_weigh_by(
        self, estate: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["plan", str(estate), "--cluster", "lab", "--by", "write"]) == 64
        assert "no write rate is known of any partition" in capsys.readouterr().err

    @pytest.mark.usefixtures("topic", "brief_rates")
    def test_an_estate_is_read_with_all_that_moves_need(self, estate: Path) -> None:
        state = read_cluster(load_estate(estate), "lab", with_moves=True)
        assert set(state.directories) == {1, 2, 3, 4, 5, 6}
        assert state.reassignments == ()
        assert any(live.write_bytes_per_s for live in state.topics.values())
