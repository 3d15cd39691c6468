"""KafkaMover on real brokers, and what Kafka does with moves that nobody expects.

Each fact of the second kind is a reason for the way moves are made: a test that fails shows that
Kafka has changed, and that the reason may be gone.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException, Producer
from lab import HERE, connect_to, create, wait_for
from proxy import Loss, failing_network

from reconciler.kafka import connect
from reconciler.kafka.mover import KafkaMover
from reconciler.model import (
    AnswerKind,
    CreateTopic,
    PartitionState,
    RateSource,
    ThrottleList,
    ThrottleSide,
)
from reconciler.sandbox import start_cluster
from reconciler.spec import ClusterEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reconciler.model import Answer, Place, Reassignment, Replicas
    from reconciler.sandbox import Cluster

pytestmark = pytest.mark.cluster

OLDEST, NEWEST = "3.9.2", "4.4.0"
SIZE = 4_000_000
"""Bytes: more than the first fetch of a follower, which no rate limits."""

RECORD = 100_000
ALTER_REASSIGNMENTS, ALTER_CONFIGS = 45, 44


class Bench:
    """A mover of a cluster, and topics whose moves do not end by themselves."""

    def __init__(self, cluster: Cluster, release: str) -> None:
        self.cluster = cluster
        self.is_newest = release == NEWEST
        self.connection = connect_to(cluster)
        self.mover = KafkaMover(self.connection)

    def create(self, topic: str, *rows: Replicas, size: int = 0, **config: str) -> Place:
        """Create a topic, and write `size` bytes into its partition 0, which is returned."""
        named = {key.replace("_", "."): value for key, value in config.items()}
        create(self.connection, CreateTopic(topic, rows, named))
        if size:
            self.write(topic, size)
        return topic, 0

    def write(self, topic: str, size: int, **config: object) -> None:
        """Write records, with acks=all. Errors: KafkaException if one is refused."""
        refused: list[KafkaException] = []
        producer = Producer(
            {"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0, **config}
        )
        for _ in range(max(size // RECORD, 1)):
            producer.produce(
                topic,
                os.urandom(min(RECORD, size)),
                partition=0,
                on_delivery=lambda error, _: refused.append(error) if error else None,
            )
            producer.poll(0)
        assert producer.flush(60) == 0
        if refused:
            raise KafkaException(refused[0])

    def hold(self, place: Place, rows: Replicas) -> None:
        """Have every copy of a partition to other brokers stand still."""
        topic, number = place
        lists = {
            ThrottleSide.LEADER.list_key: ",".join(f"{number}:{b}" for b in rows),
            ThrottleSide.FOLLOWER.list_key: ",".join(
                f"{number}:{b}" for b in {1, 2, 3, 4} - set(rows)
            ),
        }
        accept(self.mover.configure({topic: lists}))
        assert self.mover.set_rate(0).kind is AnswerKind.ACCEPTED
        wait_for(lambda: self.shows_lists(topic) and self.shows_rate(0))

    def shows_lists(self, topic: str) -> bool:
        return all(len(lists) == 2 for lists in self.mover.read_lists([topic]).values())

    def shows_rate(self, rate: int) -> bool:
        rates = self.mover.read([]).rates
        return len(rates) == 10 and {each.bytes_per_s for each in rates} == {rate}

    def begin(self, topic: str, before: Replicas, after: Replicas) -> Place:
        """Create a topic, and begin a move that does not end."""
        place = self.create(topic, before, size=SIZE)
        self.hold(place, before)
        self.move({place: after})
        assert self.find(place) is not None
        return place

    def move(self, rows: Mapping[Place, Replicas | None], *, may_resize: bool = False) -> None:
        accept(self.mover.reassign(rows, may_resize=may_resize))

    def release(self) -> None:
        """Let copies run."""
        assert self.mover.set_rate(None).kind is AnswerKind.ACCEPTED

    def find(self, place: Place) -> Reassignment | None:
        """Return the reassignment of a partition."""
        moving = self.mover.read([place[0]]).reassignments
        return next((each for each in moving if (each.topic, each.partition) == place), None)

    def look(self, place: Place) -> PartitionState:
        return self.mover.read([]).partitions[place[0]][place[1]]

    def await_row(self, place: Place, row: Replicas, seconds: float = 60) -> None:
        """Wait until a partition has a row and no reassignment."""
        wait_for(lambda: self.find(place) is None and self.look(place).replicas == row, seconds)


def accept(answers: Mapping[object, Answer]) -> None:
    assert {answer.kind for answer in answers.values()} == {AnswerKind.ACCEPTED}, answers


@pytest.fixture(
    scope="module",
    params=[NEWEST, pytest.param(OLDEST, marks=pytest.mark.slow)],
)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def cluster(release: str) -> Iterator[Cluster]:
    """Return a cluster of its own: a default rate reaches every broker."""
    with start_cluster(brokers=4, racks=2, kafka_version=release) as cluster:
        yield cluster


@pytest.fixture
def bench(cluster: Cluster, release: str) -> Iterator[Bench]:
    bench = Bench(cluster, release)
    yield bench
    bench.release()
    bench.mover.close()


class TestAnswers:
    def test_partitions_are_answered_one_by_one_with_the_texts_of_the_broker(
        self, bench: Bench, topic_prefix: str
    ) -> None:
        topic = topic_prefix + "many"
        bench.create(topic, (1, 2), (1, 2), (1, 2), (1, 2))
        rows: dict[Place, Replicas | None] = {
            (topic, 0): (3, 4),
            (topic, 1): (1, 9),
            (topic, 2): (1, 1),
            (topic, 3): None,
            (topic + "-missing", 0): (1, 2),
        }
        told = bench.mover.reassign(rows)
        bench.await_row((topic, 0), (3, 4))
        assert {place: (each.kind, each.error) for place, each in told.items()} == {
            (topic, 0): (AnswerKind.ACCEPTED, ""),
            (topic, 1): (AnswerKind.REFUSED, "INVALID_REPLICA_ASSIGNMENT"),
            (topic, 2): (AnswerKind.REFUSED, "INVALID_REPLICA_ASSIGNMENT"),
            (topic, 3): (AnswerKind.REFUSED, "NO_REASSIGNMENT_IN_PROGRESS"),
            (topic + "-missing", 0): (AnswerKind.REFUSED, "UNKNOWN_TOPIC_OR_PARTITION"),
        }
        assert "broker 9" in told[topic, 1].text

    def test_another_replication_factor_is_refused_unless_it_is_allowed(
        self, bench: Bench, topic_prefix: str
    ) -> None:
        """KIP-860, from 4.1 on; brokers before do not check."""
        place = bench.create(topic_prefix + "resized", (1, 2))
        answer = bench.mover.reassign({place: (1, 2, 3)})[place]
        if bench.is_newest:
            assert (answer.kind, answer.error) == (
                AnswerKind.REFUSED,
                "INVALID_REPLICATION_FACTOR",
            )
            assert answer.text == "The replication factor is changed from 2 to 3"
            bench.move({place: (1, 2, 3)}, may_resize=True)
        else:
            assert answer.kind is AnswerKind.ACCEPTED
        bench.await_row(place, (1, 2, 3))

    def test_elections(self, bench: Bench, topic_prefix: str) -> None:
        place = bench.create(topic_prefix + "elected", (1, 2))
        missing = (topic_prefix + "missing", 0)
        bench.move({place: (2, 1)})
        bench.await_row(place, (2, 1))
        assert bench.look(place).leader == 1
        told = bench.mover.elect([place, missing])
        assert told[place].kind is AnswerKind.ACCEPTED
        assert told[missing].error == "UNKNOWN_TOPIC_OR_PARTITION"
        wait_for(lambda: bench.look(place).leader == 2)
        assert bench.mover.elect([place])[place].kind is AnswerKind.ACCEPTED  # it leads already

    def test_configs_of_topics(self, bench: Bench, topic_prefix: str) -> None:
        topic, missing = topic_prefix + "configured", topic_prefix + "missing"
        bench.create(topic, (1, 2), retention_ms="5000")
        key = ThrottleSide.LEADER.list_key
        told = bench.mover.configure({topic: {key: "0:1,0:2"}, missing: {key: "0:1"}})
        assert told[topic].kind is AnswerKind.ACCEPTED
        assert told[missing].error == "UNKNOWN_TOPIC_OR_PARTITION"
        shown = ThrottleList(topic, ThrottleSide.LEADER, "0:1,0:2")
        every = dict.fromkeys((1, 2, 3, 4), (shown,))
        wait_for(lambda: bench.mover.read_lists([topic]) == every)
        assert shown in bench.mover.read([]).lists
        accept(bench.mover.configure({topic: {key: None}}))
        wait_for(lambda: bench.mover.read_lists([topic]) == dict.fromkeys((1, 2, 3, 4), ()))
        told = bench.mover.configure({topic: {"min.insync.replicas": "0"}})
        assert (told[topic].kind, told[topic].error) == (AnswerKind.REFUSED, "INVALID_CONFIG")

    def test_the_rate_of_all_brokers(self, bench: Bench) -> None:
        assert bench.mover.set_rate(700_000).kind is AnswerKind.ACCEPTED
        wait_for(lambda: bench.shows_rate(700_000))
        sources = {each.source for each in bench.mover.read([]).rates}
        assert sources == {RateSource.CLUSTER_DEFAULT}
        answer = bench.mover.set_rate(-1)
        assert (answer.kind, answer.error) == (AnswerKind.REFUSED, "INVALID_REQUEST")
        assert "at least 0" in answer.text
        assert bench.mover.set_rate(0).kind is AnswerKind.ACCEPTED
        wait_for(lambda: bench.shows_rate(0))
        assert bench.mover.set_rate(None).kind is AnswerKind.ACCEPTED
        wait_for(lambda: bench.mover.read([]).rates == ())

    def test_nothing_is_asked_for_nothing(self, bench: Bench) -> None:
        mover = bench.mover
        assert (mover.reassign({}), mover.elect(()), mover.configure({})) == ({}, {}, {})


class TestReading:
    def test_partitions_and_sizes_and_directories(self, bench: Bench, topic_prefix: str) -> None:
        topic, _ = bench.create(topic_prefix + "read", (1, 2), (3, 4), size=300_000)
        wait_for(lambda: bench.look((topic, 0)).in_sync == (1, 2))
        reading = bench.mover.read([topic, topic_prefix + "missing"])
        assert reading.partitions[topic] == (
            PartitionState((1, 2), 1, (1, 2)),
            PartitionState((3, 4), 3, (3, 4)),
        )
        assert reading.sizes[1][topic, 0] > 300_000
        assert reading.sizes[3] == {(topic, 1): 0}
        assert sorted(reading.directories) == [1, 2, 3, 4]
        for (directory,) in reading.directories.values():
            assert directory.total_bytes is not None
            assert directory.usable_bytes is not None
            assert 0 < directory.usable_bytes < directory.total_bytes

    def test_directories_are_shown_without_a_topic(self, bench: Bench) -> None:
        reading = bench.mover.read([])
        assert [len(each) for each in reading.directories.values()] == [1, 1, 1, 1]


@contextmanager
def failing_mover(cluster: Cluster, api: int, loss: Loss) -> Iterator[KafkaMover]:
    """Return a mover whose first request of a kind is lost."""
    with failing_network(cluster) as network:
        fault = network.lose(api, loss, skip=0)
        servers = network.bootstrap_servers
        mover = KafkaMover(connect(ClusterEntry("lab", HERE), bootstrap_servers=servers))
        yield mover
        mover.close()
        assert fault.struck.is_set()


class TestLostAnswers:
    @pytest.mark.parametrize("loss", [Loss.CUT_AFTER, Loss.CUT_BEFORE])
    def test_an_answer_that_is_lost_may_have_been_executed(
        self, bench: Bench, topic_prefix: str, loss: Loss
    ) -> None:
        place = bench.create(topic_prefix + "lost", (1, 2))
        with failing_mover(bench.cluster, ALTER_REASSIGNMENTS, loss) as mover:
            answer = mover.reassign({place: (3, 4)})[place]
            assert (answer.kind, answer.error) == (AnswerKind.LOST, "CONNECTION_LOST")
            if loss is Loss.CUT_BEFORE:  # the next request is sent with another client
                assert bench.look(place).replicas == (1, 2)
                accept(mover.reassign({place: (3, 4)}))
        bench.await_row(place, (3, 4))

    def test_a_rate_without_an_answer_is_lost(self, bench: Bench) -> None:
        with failing_mover(bench.cluster, ALTER_CONFIGS, Loss.CUT_AFTER) as mover:
            assert mover.set_rate(700_000).kind is AnswerKind.LOST
        wait_for(lambda: bench.shows_rate(700_000))

    def test_nothing_was_sent_where_no_broker_answers(self) -> None:
        connection = connect(ClusterEntry("lab", HERE), bootstrap_servers="127.0.0.1:1")
        mover = KafkaMover(connection)
        answer = mover.set_rate(1)
        assert (answer.kind, answer.error) == (AnswerKind.NOT_DONE, "CONNECTION_LOST")
        assert mover.elect([("orders", 0)])["orders", 0].kind is AnswerKind.NOT_DONE
