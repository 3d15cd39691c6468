"""How fast partitions are written and read, measured on real brokers beside what was written.

docs/explanation/balance-by-load.md promises what is asserted here.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from lab import connect_to, create, wait_for
from proxy import failing_network

from reconciler.api.snapshots import read_snapshot
from reconciler.cli.app import run
from reconciler.kafka.reader import KafkaReader
from reconciler.kafka.traffic import read_local_starts
from reconciler.model.cluster import ClusterState, TopicState
from reconciler.model.growth import measure_rates
from reconciler.model.moves import LoadKind
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import Cluster, start_cluster

pytestmark = pytest.mark.cluster

RECORD = 10_000
MIB = 2**20
PLACE = TopicPartition
LIST_OFFSETS, LIST_GROUPS = 2, 16  # kinds of requests


@pytest.fixture(scope="module")
def brokers() -> Iterator[Cluster]:
    """Two brokers that delete and compact at once what they may."""
    hurry = {
        "log.initial.task.delay.ms": "0",
        "log.retention.check.interval.ms": "300",
        "log.cleaner.backoff.ms": "300",
    }
    with start_cluster(brokers=2, properties=hurry) as cluster:
        yield cluster


@pytest.fixture
def admin(brokers: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": brokers.bootstrap_servers})


@pytest.fixture
def topic(brokers: Cluster, topic_prefix: str) -> str:
    """Return a topic that deletes nothing by itself."""
    return make(brokers, f"{topic_prefix}plain")


def make(brokers: Cluster, name: str, **config: str) -> str:
    spelled = {key.replace("_", "."): value for key, value in config.items()}
    create(connect_to(brokers), CreateTopic(name, ((1, 2), (2, 1)), spelled))
    return name


def write(brokers: Cluster, topic: str, records: int, *, keys: int = 0, size: int = RECORD) -> int:
    """Write records that no codec makes smaller to partition 0; returns their bytes."""
    producer = Producer({"bootstrap.servers": brokers.bootstrap_servers, "acks": "all"})
    for number in range(records):
        key = str(number % keys) if keys else None
        producer.produce(topic, os.urandom(size), key=key, partition=0)
        producer.poll(0)
    assert producer.flush(60) == 0
    return records * size


def read(brokers: Cluster, *loads: LoadKind) -> ClusterState:
    """Read what the rates of writes need, or those of other loads."""
    with connect_to(brokers) as connection:
        reader = KafkaReader(connection)
        return reader.read_traffic(reader.read_cluster(), loads or [LoadKind.WRITE])


def grow(before: ClusterState, after: ClusterState, topic: str) -> tuple[float, TopicState]:
    """Return the bytes that the rate of partition 0 stands for, and its topic."""
    found = measure_rates(before, after).topics[topic]
    return found.write_bytes_per_s[0] * find_seconds(before, after), found


def find_seconds(before: ClusterState, after: ClusterState) -> float:
    return (after.read_at_ms - before.read_at_ms) / 1000


def recreate(brokers: Cluster, admin: AdminClient, topic: str) -> None:
    admin.delete_topics([topic])[topic].result(20)
    reader = KafkaReader(connect_to(brokers))
    wait_for(lambda: all(topic not in view for view in reader.read_views([topic]).values()))
    make(brokers, topic)


def write_estate(servers: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with an estate of the cluster."""
    monkeypatch.chdir(folder)
    (folder / "topics").mkdir()
    (folder / "topics" / "clusters.yaml").write_text(
        "version: 1\nclusters:\n  lab:\n"
        f"    client: {{bootstrap.servers: '{servers}'}}\n"
        "    moves: {allow: [rebalance], rate: unlimited, keep_free: 0%}\n"
    )


def find_ends(admin: AdminClient, topic: str) -> tuple[int, int]:
    first, end = (
        next(iter(admin.list_offsets({PLACE(topic, 0): spec}).values())).result(10).offset
        for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
    )
    return first, end


class TestWrites:
    def test_what_was_written_is_exact_but_for_the_headers_of_batches(
        self, brokers: Cluster, topic: str
    ) -> None:
        write(brokers, topic, 10)
        before = read(brokers)
        written = write(brokers, topic, 300)
        grown, found = grow(before, read(brokers), topic)
        assert written <= grown + 10 < 1.02 * written
        assert (found.write_bytes_per_s[1], found.guessed_rates) == (0, frozenset())

    def test_transactions_count_with_their_markers_and_what_was_aborted(
        self, brokers: Cluster, topic: str
    ) -> None:
        producer = Producer(
            {"bootstrap.servers": brokers.bootstrap_servers, "transactional.id": topic}
        )
        producer.init_transactions(30)
        before = read(brokers)
        for number in range(20):
            producer.begin_transaction()
            for _ in range(5):
                producer.produce(topic, os.urandom(RECORD), partition=0)
            producer.flush(30)
            if number % 2:
                producer.abort_transaction(30)
            else:
                producer.commit_transaction(30)
        grown, found = grow(before, read(brokers), topic)
        assert 100 * RECORD <= grown + 10 < 1.02 * 100 * RECORD
        assert found.guessed_rates == frozenset()

    def test_a_log_that_retention_cuts_is_guessed_from_its_records(
        self, brokers: Cluster, admin: AdminClient, topic_prefix: str
    ) -> None:
        topic = make(
            brokers,
            f"{topic_prefix}cut",
            retention_bytes=str(3 * MIB),
            segment_bytes=str(MIB),
            file_delete_delay_ms="0",
        )
        write(brokers, topic, 500)
        before = read(brokers)
        first, _ = find_ends(admin, topic)
        written = write(brokers, topic, 400)
        wait_for(lambda: find_ends(admin, topic)[0] >= first + 300)
        grown, found = grow(before, read(brokers), topic)
        assert grown == pytest.approx(written, rel=0.05)
        assert found.guessed_rates == {0}

    def test_deleted_records_make_a_guess_until_they_are_off_the_disk(
        self, brokers: Cluster, admin: AdminClient, topic_prefix: str
    ) -> None:
        topic = make(brokers, f"{topic_prefix}deleted", segment_bytes=str(MIB))
        write(brokers, topic, 500)
        before = read(brokers)
        place = PLACE(topic, 0, 300)
        admin.delete_records([place])[place].result(20)
        written = write(brokers, topic, 100)
        with connect_to(brokers) as connection:
            assert read_local_starts(connection, [(topic, 0)]) == {(topic, 0): 300}
        wait_for(lambda: read(brokers).topics[topic].size_bytes[0] < 4_200_000)
        grown, found = grow(before, read(brokers), topic)
        # Up to a segment before the first record is on the disk: a third of what is left here.
        assert grown == pytest.approx(written, rel=0.36)
        assert found.guessed_rates == {0}

    def test_of_a_tiered_topic_the_first_offset_on_the_disk_counts(
        self, brokers: Cluster, admin: AdminClient, topic: str
    ) -> None:
        """As if: the sandbox has no remote storage, and on others both offsets are the same."""
        write(brokers, topic, 20)
        place = PLACE(topic, 0, 7)
        admin.delete_records([place])[place].result(20)
        plain = read(brokers)
        config = {"remote.storage.enable": "true"}
        tiered = {topic: replace(plain.topics[topic], config=config, logs=())}
        with connect_to(brokers) as connection:
            reader = KafkaReader(connection)
            found = reader.read_traffic(replace(plain, topics=tiered), [LoadKind.WRITE])
        first, _ = found.topics[topic].logs
        assert first is not None
        assert (first.start, first.end) == (7, 20)

    def test_a_compacted_log_is_a_guess_that_is_rather_too_low(
        self, brokers: Cluster, topic_prefix: str
    ) -> None:
        topic = make(
            brokers,
            f"{topic_prefix}compacted",
            cleanup_policy="compact",
            segment_bytes=str(MIB),
            min_cleanable_dirty_ratio="0.01",
        )
        write(brokers, topic, 300, keys=10)
        before = read(brokers)
        written = write(brokers, topic, 300, keys=10)
        at_most = before.topics[topic].size_bytes[0] + written // 2
        wait_for(lambda: read(brokers).topics[topic].size_bytes[0] < at_most)
        grown, found = grow(before, read(brokers), topic)
        assert 0 < grown < 1.02 * written
        assert found.guessed_rates == {0}


class TestForecast:
    """Whether copies end is judged by the bytes of leaders alone, without their offsets."""

    def test_a_leader_that_grew_was_written_at_least_so_fast(
        self, brokers: Cluster, admin: AdminClient, topic_prefix: str
    ) -> None:
        topic = make(brokers, f"{topic_prefix}grown", segment_bytes=str(MIB))
        write(brokers, topic, 500)
        before = read(brokers, LoadKind.DISK)
        written = write(brokers, topic, 100)
        after = read(brokers, LoadKind.DISK)
        grown, found = grow(before, after, topic)
        assert written <= grown + 10 < 1.02 * written
        assert (found.write_bytes_per_s[1], found.guessed_rates) == (0, {0, 1})
        place = PLACE(topic, 0, 400)
        admin.delete_records([place])[place].result(20)
        wait_for(lambda: read(brokers).topics[topic].size_bytes[0] < 3_200_000)
        _, found = grow(after, read(brokers, LoadKind.DISK), topic)
        assert found.write_bytes_per_s == (-1, 0)

    @pytest.mark.usefixtures("brief_rates")
    def test_only_a_balance_by_traffic_asks_for_offsets(
        self, brokers: Cluster, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        topic = f"{topic_prefix}raised"
        create(connect_to(brokers), CreateTopic(topic, ((1,), (2,)), {}))
        write(brokers, topic, 10)
        spec = f"topic: {topic}\nreplication_factor: 2\n"
        balance = "    balance: {by: [read], within: 100%}\n"
        rebalance = f"{balance}    rebalance: {{until: 2199-12-31}}\n"
        with failing_network(brokers) as network:
            servers = network.bootstrap_servers
            write_estate(servers, tmp_path, monkeypatch)
            estate = Path("topics/clusters.yaml")
            written = estate.read_text().replace("allow: [", "allow: [replication, ")
            Path("topics/raised.yaml").write_text(spec)
            for more, asks in ((balance, False), (rebalance, True)):
                estate.write_text(written + more)
                network.heal()
                assert run(["plan", "--cluster", "lab", "--moves", "--out", "plan.json"]) == 0
                forecast = json.loads(Path("plan.json").read_text())["moves"]["forecast"]
                assert (forecast["copied_bytes"] > 0, forecast["least_rate"]) == (True, 0)
                assert (LIST_OFFSETS in network.kinds) is asks
                assert (LIST_GROUPS in network.kinds) is asks


class TestReads:
    def test_what_groups_commit_is_read(self, brokers: Cluster, topic: str) -> None:
        write(brokers, topic, 300)
        consume(brokers, topic, "steady", 0, 100)
        consume(brokers, topic, "back", 0, 200)
        before = read(brokers, LoadKind.READ)
        consume(brokers, topic, "steady", 100, 100)
        consume(brokers, topic, "back", 10, 50)
        consume(brokers, topic, "silent", 0, 300, commits=False)
        after = read(brokers, LoadKind.READ)
        found = measure_rates(before, after)
        first, second = found.topics[topic].read_bytes_per_s
        assert first * find_seconds(before, after) == pytest.approx(100 * RECORD, rel=0.02)
        assert second == 0
        assert found.notes == ()

    @pytest.mark.usefixtures("brief_rates")
    def test_a_plan_by_reads_measures_them_and_says_what_they_miss(
        self,
        brokers: Cluster,
        topic: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        write_estate(brokers.bootstrap_servers, tmp_path, monkeypatch)
        write(brokers, topic, 10)
        asked = ["rebalance", "--cluster", "lab", "--by", "read,write", "--leaders-only"]
        assert run([*asked, "--out", "plan.json"]) == 0
        notes = json.loads(Path("plan.json").read_text())["notes"]
        writes, reads = (n["what"] for n in notes if n["rule"] == "rates-measured")
        assert writes.startswith("writes were measured over ")
        assert reads.startswith("reads are guesses, from what groups committed over ")


def consume(
    brokers: Cluster,
    topic: str,
    group: str,
    start: int,
    records: int,
    *,
    commits: bool = True,
) -> None:
    """Read records of partition 0 with a group, which commits at its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers.bootstrap_servers,
            "group.id": f"{topic}-{group}",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([PLACE(topic, 0, start)])
    left, deadline = records, time.monotonic() + 30
    while left and time.monotonic() < deadline:
        left -= sum(not record.error() for record in consumer.consume(left, 1))
    assert left == 0
    if commits:
        wait_for(lambda: can_commit(consumer, PLACE(topic, 0, start + records)))
    consumer.close()


def can_commit(consumer: Consumer, place: TopicPartition) -> bool:
    """Commit an offset, unless the coordinator is not there yet."""
    try:
        consumer.commit(offsets=[place], asynchronous=False)
    except KafkaException:
        return False
    return True


class TestSince:
    """Rates as the difference to an earlier snapshot."""

    @pytest.fixture(autouse=True)
    def in_estate(self, brokers: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_estate(brokers.bootstrap_servers, tmp_path, monkeypatch)

    def test_the_difference_to_an_earlier_snapshot_is_what_was_written(
        self,
        brokers: Cluster,
        admin: AdminClient,
        topic: str,
        topic_prefix: str,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        again = make(brokers, f"{topic_prefix}again")
        write(brokers, topic, 10)
        write(brokers, again, 10)
        assert run(["snapshot", "--cluster", "lab", "--out", "old.json"]) == 0
        recreate(brokers, admin, again)
        written = write(brokers, topic, 200)
        write(brokers, again, 20)
        capsys.readouterr()
        since = ["snapshot", "--cluster", "lab", "--since", "old.json", "--out", "new.json"]
        assert run(since) == 0
        assert "note: writes were measured over " in capsys.readouterr().err
        old, new = (read_snapshot(name) for name in ("old.json", "new.json"))
        rate, other = new.topics[topic].write_bytes_per_s
        grown = rate * find_seconds(old, new)
        assert written <= grown + 10 < 1.02 * written
        assert (other, new.topics[topic].guessed_rates) == (0, frozenset())
        assert new.topics[again].write_bytes_per_s == ()
        assert new.committed_offsets is None

    def test_measured_reads_go_on_in_the_next_snapshot(self, brokers: Cluster, topic: str) -> None:
        write(brokers, topic, 200)
        consume(brokers, topic, "steady", 0, 10)
        assert run(["snapshot", "--cluster", "lab", "--measure", "1s", "--out", "old.json"]) == 0
        consume(brokers, topic, "steady", 10, 100)
        since = ["snapshot", "--cluster", "lab", "--since", "old.json", "--out", "new.json"]
        assert run(since) == 0
        old, new = (read_snapshot(name) for name in ("old.json", "new.json"))
        assert old.topics[topic].read_bytes_per_s == (0, 0)
        rate, _ = new.topics[topic].read_bytes_per_s
        assert rate * find_seconds(old, new) == pytest.approx(100 * RECORD, rel=0.02)

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"cluster_id": "other"}, "old.json is of cluster other, and this is "),
            ({"read_at": "2999-01-01T00:00:00Z"}, "old.json was read later than now"),
            ({"read_at": None}, "old.json has no read_at, or no logs of topics"),
            ({"topics": []}, "old.json has no read_at, or no logs of topics"),
        ],
    )
    @pytest.mark.usefixtures("topic")
    def test_what_cannot_be_compared_is_refused(
        self,
        change: dict[str, Any],
        said: str,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        assert run(["snapshot", "--cluster", "lab", "--out", "old.json"]) == 0
        old = json.loads(Path("old.json").read_text())
        Path("old.json").write_text(json.dumps({**old, **change}))
        since = ["snapshot", "--cluster", "lab", "--since", "old.json", "--out", "new.json"]
        assert run(since) == 1
        assert said in " ".join(capsys.readouterr().err.split())
        assert not Path("new.json").exists()

    def test_both_ways_exclude_each_other(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("old.json").write_text("{}")
        both = ["--measure", "1s", "--since", "old.json", "--out", "new.json"]
        assert run(["snapshot", "--cluster", "lab", *both]) == 64
        assert "--measure and --since exclude each other" in capsys.readouterr().err
