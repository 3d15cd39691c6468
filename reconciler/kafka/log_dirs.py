"""Reading log directories: the bytes of each partition, how fast it is written, and free space.

kafka-python asks, because librdkafka has no DescribeLogDirs. Every broker knows its own replicas
only, so each is asked by itself: kafka-python's describe_log_dirs asks them one after the other,
and if one is down, all answers are lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from confluent_kafka import KafkaError

from reconciler.errors import Finding, Severity
from reconciler.kafka.connection import Connection
from reconciler.kafka.errors import DENIED, UntranslatableError, name_error
from reconciler.kafka.offered import list_unoffered, say_unoffered
from reconciler.kafka.rights import name_missing
from reconciler.kafka.second_client import NoAnswerError, ask_second_client, describe_error
from reconciler.model.cluster import ClusterState, LogDirectory, Place, TopicState
from reconciler.model.requests import KafkaRequest
from reconciler.side_by_side import run_side_by_side

RATE_INTERVAL_S = 10.0
"""The time between the two readings that give write rates."""

_AT_ONCE = 16
_OFFLINE = 56
"""KAFKA_STORAGE_ERROR: the broker cannot read a log directory, and has taken it offline."""


@dataclass(frozen=True, slots=True)
class _Held:
    """The answer of one broker: when it came, its directories, and bytes by partition."""

    clock_s: float
    directories: tuple[LogDirectory, ...]
    sizes: Mapping[Place, int]


@dataclass(slots=True)
class _Answers:
    """The answers of all brokers. `silent` holds a reason by broker; `denied`: a right is missing;
    `unoffered`: no broker has the request.

    `later` holds the answers of the second reading.
    """

    held: dict[int, _Held] = field(default_factory=dict)
    later: dict[int, _Held] = field(default_factory=dict)
    silent: dict[int, str] = field(default_factory=dict)
    denied: bool = False
    unoffered: bool = False


def read_sizes(
    connection: Connection, state: ClusterState, interval_s: float = 0.0
) -> ClusterState:
    """Add the sizes of partitions and the log directories of brokers to a state.

    The size of a partition is that of its largest replica. With an interval, all brokers are asked
    again after it: the growth of a leader is the write rate of its partition, and a leader that
    shrank meanwhile has none. What cannot be read is unknown, and a note says why.
    Errors: ClusterError if no broker answers at all. Cost: one request for each broker, two with an
    interval.
    """
    from kafka.errors import KafkaError as ClientError

    notes = []
    found = _Answers()
    try:
        found = ask_second_client(connection, lambda client: _ask_brokers(client, interval_s))
    except (UntranslatableError, NoAnswerError) as error:
        notes.append(_note_unseen(connection, str(error)))
    except ClientError as error:
        notes.append(_note_unseen(connection, describe_error(error)))
    notes += _note_gaps(connection, found)
    largest: dict[Place, int] = {}
    for held in found.held.values():
        for place, size in held.sizes.items():
            largest[place] = max(size, largest.get(place, 0))
    topics = {}
    for name, topic in state.topics.items():
        sizes = (largest.get((name, p), -1) for p in range(len(topic.assignment)))
        topics[name] = replace(
            topic,
            size_bytes=_list_known(sizes),
            write_bytes_per_s=_list_known(_measure_rates(topic, found)),
        )
    directories = {broker: held.directories for broker, held in sorted(found.held.items())}
    return replace(
        state,
        topics=MappingProxyType(topics),
        directories=MappingProxyType(directories),
        notes=(*state.notes, *notes),
    )


def _list_known(amounts: Iterable[int]) -> tuple[int, ...]:
    """Return amounts by partition; nothing if none of them is known."""
    listed = tuple(amounts)
    return listed if any(amount >= 0 for amount in listed) else ()


def _measure_rates(topic: TopicState, found: _Answers) -> Iterator[int]:
    """Yield what each partition's leader took between both readings. Units: bytes per second."""
    for number, leader in enumerate(topic.leaders):
        place = (topic.name, number)
        first, second = found.held.get(leader), found.later.get(leader)
        if first is None or second is None:
            yield -1
            continue
        was, is_ = first.sizes.get(place), second.sizes.get(place)
        if was is None or is_ is None or is_ < was:
            yield -1
        else:
            yield round((is_ - was) / (second.clock_s - first.clock_s))


def note_unoffered(cluster: str) -> Finding:
    """Return the note that a cluster has no sizes, because its brokers offer no log directories."""
    lacking = say_unoffered(cluster, [KafkaRequest.DESCRIBE_LOG_DIRS])
    what = f"{lacking}, so the sizes of partitions and the free space of disks are unknown"
    return Finding("sizes-unseen", what, severity=Severity.NOTE)


def _note_gaps(connection: Connection, found: _Answers) -> Iterator[Finding]:
    if found.unoffered:
        yield note_unoffered(connection.entry.name)
    if found.denied:
        missing = name_missing(connection, "Describe", ())
        what = f"the sizes of partitions are unknown: {missing.what}"
        yield Finding("sizes-unseen", what, missing.way_out, severity=Severity.NOTE)
    for broker, reason in sorted(found.silent.items()):
        what = f"broker {broker} of {connection.entry.name} does not say what it holds: {reason}"
        way_out = "sizes are those of other replicas, and its log directories are unknown"
        yield Finding("sizes-unseen", what, way_out, severity=Severity.NOTE)


def _note_unseen(connection: Connection, reason: str) -> Finding:
    what = f"the sizes of partitions of {connection.entry.name} are unknown: {reason}"
    way_out = "kafka-log-dirs --describe shows them"
    return Finding("sizes-unseen", what, way_out, severity=Severity.NOTE)


def _ask_brokers(client: Any, interval_s: float) -> _Answers:
    """Ask all brokers in parallel, and once more after an interval."""
    found = _Answers(unoffered=KafkaRequest.DESCRIBE_LOG_DIRS in list_unoffered(client))
    if found.unoffered:
        return found
    brokers = sorted(node.node_id for node in client._manager.cluster.brokers())
    _ask_each(client, brokers, found)
    if interval_s and found.held:
        time.sleep(interval_s)
        again = _Answers()  # a broker that is silent now only leaves rates unknown
        _ask_each(client, sorted(found.held), again)
        found.later = again.held
    return found


def _ask_each(client: Any, brokers: list[int], found: _Answers) -> None:
    from kafka.errors import KafkaError as ClientError

    def ask(broker: int) -> tuple[int, Any, float]:
        try:
            answer = _ask_broker(client, broker)
        except (ClientError, OSError) as error:
            return broker, error, 0.0
        return broker, answer, time.monotonic()

    def take(asked: tuple[int, Any, float]) -> None:
        broker, answer, clock_s = asked
        if isinstance(answer, Exception):
            found.silent[broker] = describe_error(answer)
        elif answer.error_code in DENIED or not answer.results:
            # Without Describe on the cluster, brokers list no directory, and older ones no error.
            found.denied = True
        elif answer.error_code:
            found.silent[broker] = name_error(KafkaError(answer.error_code))
        else:
            found.held[broker] = _Held(clock_s, *read_directories(answer, is_whole=True))

    run_side_by_side(ask, brokers, _AT_ONCE, take)


def _ask_broker(client: Any, broker: int) -> Any:
    from kafka.protocol.admin import DescribeLogDirsRequest

    # No topics are named, so brokers list everything: replicas of a directory are counted.
    return client._manager.run(client._manager.send, DescribeLogDirsRequest(topics=None), broker)


def list_stored(client: Any, broker: int) -> frozenset[Place] | None:
    """Return the partitions in the log directories of a broker; None if it does not tell.

    A directory that has failed holds none: nothing there can be read any more.
    """
    if KafkaRequest.DESCRIBE_LOG_DIRS in list_unoffered(client):
        return None
    answer = _ask_broker(client, broker)
    failures = {each.error_code for each in answer.results} - {0, _OFFLINE}
    if answer.error_code or not answer.results or failures:
        return None
    return frozenset(read_directories(answer, is_whole=True)[1])


def read_directories(
    answer: Any, *, is_whole: bool
) -> tuple[tuple[LogDirectory, ...], dict[Place, int]]:
    """Read a broker's directories, and bytes by partition.

    Replicas that move between directories are left out. `is_whole`: the answer lists all replicas,
    so they are counted.
    """
    directories, sizes = [], {}
    for each in answer.results:
        if each.error_code == _OFFLINE:
            directories.append(LogDirectory(each.log_dir, None, None, online=False))
        if each.error_code:
            continue
        for topic in each.topics:
            for partition in topic.partitions:
                if not partition.is_future_key:
                    sizes[topic.name, partition.partition_index] = partition.partition_size
        total, usable = (
            value if isinstance(value, int) and value >= 0 else None  # brokers before 3.3
            for value in (getattr(each, "total_bytes", None), getattr(each, "usable_bytes", None))
        )
        replicas = sum(len(topic.partitions) for topic in each.topics) if is_whole else None
        directories.append(LogDirectory(each.log_dir, total, usable, replicas))
    return tuple(sorted(directories, key=lambda each: each.path)), sizes
