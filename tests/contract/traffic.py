"""Writes and reads while something is done to a topic: nothing acknowledged may be lost.

An idempotent producer with acks=all numbers the records of each partition; a consumer of a group
reads them and commits. Afterwards every acknowledged number was read, once and in order.
"""

from __future__ import annotations

import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import KafkaError, Message

RECORD = 10_000
PAUSE_S = 0.01
PATIENCE_S = 120.0


@dataclass(slots=True)
class Traffic:
    """What was written, acknowledged and read so far, by partition.

    The first `filling` records are written as fast as possible.
    """

    topic: str
    partitions: int
    servers: str
    filling: int = 0
    group: str = field(default_factory=lambda: f"traffic-{uuid.uuid4().hex[:8]}")
    acknowledged: dict[int, list[int]] = field(default_factory=dict)
    read: dict[int, list[int]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    _next: dict[int, int] = field(default_factory=dict)

    @property
    def written(self) -> int:
        """The records that are acknowledged."""
        return sum(map(len, self.acknowledged.values()))

    def write(self, over: threading.Event) -> None:
        """Write until `over`, then wait until everything is answered."""
        producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "log_level": 0,
            }
        )

        def take(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.refused.append(str(error))
                return
            partition, value = message.partition(), message.value()
            assert partition is not None
            assert value is not None
            number = int(value[:12])
            self.acknowledged.setdefault(partition, []).append(number)

        turn = 0
        while not over.is_set():
            partition = turn % self.partitions
            number = self._next[partition] = self._next.get(partition, -1) + 1
            value = f"{number:012}".encode().ljust(RECORD, b".")
            while True:
                try:
                    producer.produce(self.topic, value, partition=partition, on_delivery=take)
                    break
                except BufferError:
                    producer.poll(0.1)
            turn += 1
            producer.poll(0 if turn < self.filling else PAUSE_S)
        assert producer.flush(PATIENCE_S) == 0

    def consume(self, over: threading.Event) -> None:
        """Read and commit until `over`, and then until nothing is left to read."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        consumer.subscribe([self.topic])
        try:
            deadline = None
            while deadline is None or time.monotonic() < deadline:
                if over.is_set():
                    deadline = deadline or time.monotonic() + PATIENCE_S
                    if self.has_read_all():
                        break
                messages = consumer.consume(500, 0.2)
                for message in messages:
                    if message.error() is not None:
                        continue  # a leader that moves; the client asks again
                    partition, value = message.partition(), message.value()
                    assert partition is not None
                    assert value is not None
                    self.read.setdefault(partition, []).append(int(value[:12]))
                if messages:
                    self._commit(consumer)
            self._commit(consumer)
        finally:
            consumer.close()

    def _commit(self, consumer: Consumer) -> None:
        try:
            consumer.commit(asynchronous=False)
        except KafkaException:
            return  # a coordinator that moves; the next commit has these offsets too

    def has_read_all(self) -> bool:
        """Return whether the last acknowledged record of each partition was read."""
        return all(
            self.read.get(partition, [])[-1:] >= numbers[-1:]
            for partition, numbers in self.acknowledged.items()
        )

    def check(self) -> None:
        """Fail if an acknowledged record is missing, read twice or out of order."""
        assert self.refused == []
        assert sorted(self.acknowledged) == list(range(self.partitions))
        for partition, numbers in sorted(self.acknowledged.items()):
            assert numbers == list(range(len(numbers))), partition
            assert self.read[partition] == numbers, partition
        self._check_commits()

    def _check_commits(self) -> None:
        """Fail if the group's offsets are not behind the last record."""
        consumer = Consumer(
            {"bootstrap.servers": self.servers, "group.id": self.group, "log_level": 0}
        )
        try:
            asked = [TopicPartition(self.topic, number) for number in range(self.partitions)]
            for found in consumer.committed(asked, timeout=30):
                _, end = consumer.get_watermark_offsets(found, timeout=30)
                assert found.offset == end == len(self.acknowledged[found.partition])
        finally:
            consumer.close()


@contextmanager
def flowing(servers: str, topic: str, partitions: int, filling: int = 0) -> Iterator[Traffic]:
    """Write to a topic and read it during a block, then check that nothing was lost.

    The block begins when `filling` records are acknowledged.
    """
    traffic = Traffic(topic, partitions, servers, filling)
    stopped, drained = threading.Event(), threading.Event()
    writer = threading.Thread(target=traffic.write, args=(stopped,))
    reader = threading.Thread(target=traffic.consume, args=(drained,))
    writer.start()
    reader.start()
    try:
        deadline = time.monotonic() + PATIENCE_S
        while traffic.written < filling:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield traffic
    finally:
        stopped.set()
        writer.join()
        drained.set()
        reader.join()
    traffic.check()
