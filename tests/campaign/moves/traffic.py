"""Numbered records, written and read while replicas move: what was acknowledged must be there.

One idempotent producer with acks=all writes 1, 2, 3, … into every partition. A consumer group reads
and commits meanwhile. At the end every partition is read from its start.
"""

from __future__ import annotations

import struct
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

if TYPE_CHECKING:
    from confluent_kafka import Message

Place = tuple[str, int]

PATIENCE_S = 120.0


@dataclass(slots=True)
class Verdict:
    """What happened to the records, which all have the key. The lists of faults must be empty.

    `latencies_s` holds, for each record, when it was acknowledged (monotonic) and how long it took.
    `doubled` holds what is there twice, which is out of order as well.
    """

    key: bytes = b""
    written: int = 0
    missing: list[str] = field(default_factory=list)
    out_of_order: list[str] = field(default_factory=list)
    doubled: list[tuple[str, int]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    latencies_s: list[tuple[float, float]] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        """Everything that must not have happened."""
        errors = [f"producer: {name} ({n} times)" for name, n in self.errors.items()]
        return [*self.missing, *self.out_of_order, *self.unread, *errors]


class Traffic:
    """A producer and a consumer of all partitions of some topics, until `stop`."""

    def __init__(self, servers: str, partitions: Mapping[str, int], per_s: float = 20) -> None:
        self._servers = servers
        self._places = [(t, p) for t, count in partitions.items() for p in range(count)]
        self._pause_s = 1 / per_s
        # Whatever has another key is ballast, or of an earlier time.
        self._key = uuid4().bytes
        self._verdict = Verdict(self._key)
        self._acknowledged: dict[Place, list[int]] = defaultdict(list)
        self._consumed: dict[Place, list[int]] = defaultdict(list)
        self._stopped = threading.Event()
        self._drained = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._write, self._read)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> Verdict:
        """End both, read everything again, and judge."""
        self._stopped.set()
        self._threads[0].join()
        found = self._read_again()
        deadline = time.monotonic() + PATIENCE_S
        while not self._has_consumed_all() and time.monotonic() < deadline:
            time.sleep(0.1)
        self._drained.set()
        self._threads[1].join()
        judge(self._verdict, self._acknowledged, found, self._consumed)
        return self._verdict

    def _write(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "delivery.timeout.ms": 600_000,
                "log_level": 0,
            }
        )
        number = 0
        while not self._stopped.is_set():
            number += 1
            for topic, partition in self._places:
                record = struct.pack(">Qd", number, time.monotonic()) + bytes(1000)
                producer.produce(
                    topic, record, self._key, partition=partition, on_delivery=self._acknowledge
                )
            # Polled all the time: an acknowledgement counts when it comes.
            due = time.monotonic() + self._pause_s
            while (left_s := due - time.monotonic()) > 0 and not self._stopped.is_set():
                producer.poll(left_s)
        if left := producer.flush(PATIENCE_S):
            self._verdict.errors["not delivered"] += left

    def _acknowledge(self, error: KafkaError | None, message: Message) -> None:
        now = time.monotonic()
        if error is not None:
            self._verdict.errors[error.name()] += 1
            return
        number, sent = struct.unpack(">Qd", (message.value() or b"")[:16])
        place = (message.topic() or "", message.partition() or 0)
        self._acknowledged[place].append(number)
        self._verdict.written += 1
        self._verdict.latencies_s.append((now, now - sent))

    def _read(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": f"moving-{id(self)}",
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        consumer.subscribe(sorted({topic for topic, _ in self._places}))
        while not self._drained.is_set():
            message = consumer.poll(0.5)
            if message is not None and message.error() is None and message.key() == self._key:
                _take(message, self._consumed)
        consumer.close()

    def _has_consumed_all(self) -> bool:
        return all(set(n) <= set(self._consumed[place]) for place, n in self._acknowledged.items())

    def _read_again(self) -> Mapping[Place, list[int]]:
        found: dict[Place, list[int]] = defaultdict(list)
        for message in read_from_start(self._servers, self._places):
            if message.key() == self._key:
                _take(message, found)
        return found


def judge(
    verdict: Verdict,
    acknowledged: Mapping[Place, list[int]],
    there: Mapping[Place, list[int]],
    consumed: Mapping[Place, list[int]],
) -> None:
    """Say which records are missing, doubled or out of order, and which the consumer did not see.

    In: numbers by partition, as acknowledged, as read from the start in the end, and as consumed.
    """
    for place, wanted in acknowledged.items():
        where, found = f"{place[0]}-{place[1]}", there.get(place, [])
        if lost := set(wanted) - set(found):
            verdict.missing.append(f"{where}: {len(lost)} acknowledged, such as {min(lost)}")
        if found != list(range(1, len(found) + 1)):
            verdict.out_of_order.append(f"{where}: {_first_gap(found)}")
            verdict.doubled += [(where, n) for n, times in Counter(found).items() if times > 1]
        if unread := set(wanted) - set(consumed.get(place, [])):
            verdict.unread.append(f"{where}: {len(unread)} not seen by the consumer")


def read_from_start(servers: str, places: Iterable[Place]) -> Iterable[Message]:
    """Yield every record of some partitions, each partition in order."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "moving-judge", "enable.auto.commit": False}
        | {"enable.partition.eof": True, "log_level": 0}
    )
    waiting = set(places)
    consumer.assign([TopicPartition(t, p, OFFSET_BEGINNING) for t, p in sorted(waiting)])
    deadline = time.monotonic() + PATIENCE_S
    while waiting:
        message = consumer.poll(1)
        if time.monotonic() > deadline:
            raise TimeoutError(f"not read to their ends: {sorted(waiting)}")
        if message is None:
            continue
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:
            waiting.discard((message.topic() or "", message.partition() or 0))
        elif error.fatal():
            raise KafkaException(error)
    consumer.close()


def _take(message: Message, into: dict[Place, list[int]]) -> None:
    (number,) = struct.unpack(">Q", (message.value() or b"")[:8])
    into[message.topic() or "", message.partition() or 0].append(number)


def _first_gap(numbers: list[int]) -> str:
    for place, number in enumerate(numbers, 1):
        if number != place:
            return f"{number} where {place} is expected"
    return "as it should be"
