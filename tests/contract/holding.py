"""A mover of a real cluster, and topics on it whose moves stand still until they are released."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import KafkaException, Producer
from lab import connect_to, create, wait_for

from reconciler.kafka.mover import KafkaMover
from reconciler.model.cluster import Place, Reassignment, Replicas, ThrottleSide
from reconciler.model.moves import PartitionState
from reconciler.model.outcomes import Answer, AnswerKind
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import Cluster

OLDEST, NEWEST = "3.9.2", "4.4.0"
SIZE = 4_000_000
"""Bytes: more than the first fetch of a follower, which no rate limits."""

RECORD = 100_000


class Holding:
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

    @contextmanager
    def writing(
        self, topic: str, partitions: tuple[int, ...], bytes_per_s: int
    ) -> Iterator[Callable[[], int]]:
        """Write to some partitions in a thread. Yields a count of the bytes that are written."""
        over = threading.Event()
        acknowledged: list[None] = []

        def write() -> None:
            producer = Producer(
                {"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0}
            )
            while not over.wait(RECORD * len(partitions) / bytes_per_s):
                for number in partitions:
                    producer.produce(
                        topic,
                        os.urandom(RECORD),
                        partition=number,
                        on_delivery=lambda error, _: None if error else acknowledged.append(None),
                    )
                producer.poll(0)
            producer.flush(30)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            yield lambda: len(acknowledged) * RECORD
        finally:
            over.set()
            thread.join()

    def can_write(self, topic: str) -> bool:
        try:
            self.write(topic, RECORD, retries=0)
        except KafkaException:
            return False
        return True

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
        shown = {each.bytes_per_s for each in rates}
        return len(rates) == 10 and shown == {rate, rate + (rate > 0)}  # the mark of moves

    def begin(self, topic: str, before: Replicas, after: Replicas, **config: str) -> Place:
        """Create a topic, and begin a move that does not end."""
        place = self.create(topic, before, size=SIZE, **config)
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
