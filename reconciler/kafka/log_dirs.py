"""Reading log directories: the bytes of each partition, and free space.

kafka-python asks, because librdkafka has no DescribeLogDirs. Every broker knows its own replicas
only, so each is asked by itself: kafka-python's describe_log_dirs asks them one after the other,
and if one is down, all answers are lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from confluent_kafka import KafkaError

from reconciler.errors import Finding, Severity
from reconciler.kafka.connection import Connection
from reconciler.kafka.errors import DENIED, UntranslatableError, name_error
from reconciler.kafka.offered import list_unoffered, say_unoffered
from reconciler.kafka.offsets import Offsets
from reconciler.kafka.rights import name_missing
from reconciler.kafka.second_client import NoAnswerError, ask_second_client, describe_error
from reconciler.model.cluster import (
    ClusterState,
    LeaderLog,
    LogDirectory,
    Place,
    StoredReplica,
    TopicState,
)
from reconciler.model.requests import KafkaRequest
from reconciler.side_by_side import run_side_by_side

_AT_ONCE = 16
_OFFLINE = 56
"""KAFKA_STORAGE_ERROR: the broker cannot read a log directory, and has taken it offline."""


class Holdings(NamedTuple):
    """What a broker says: its directories, and the bytes of each replica.

    `stored` says where each replica is if there are several directories, or else nothing.
    """

    directories: tuple[LogDirectory, ...]
    sizes: Mapping[Place, int]
    stored: Mapping[Place, StoredReplica]


@dataclass(slots=True)
class _Answers:
    """The answers of all brokers. `silent` holds a reason by broker; `denied`: a right is missing;
    `unoffered`: no broker has the request.
    """

    held: dict[int, Holdings] = field(default_factory=dict)
    silent: dict[int, str] = field(default_factory=dict)
    denied: bool = False
    unoffered: bool = False


def read_sizes(
    connection: Connection,
    state: ClusterState,
    offsets: Offsets | None = None,
    *,
    logs: bool = False,
) -> ClusterState:
    """Add the sizes of partitions and the log directories of brokers to a state.

    The size of a partition is that of its largest replica. With `logs`, the logs of the leaders are
    added as well, and `offsets` are theirs. What cannot be read is unknown, and a note says why.
    Errors: ClusterError if no broker answers at all. Cost: one request for each broker.
    """
    from kafka.errors import KafkaError as ClientError

    notes = []
    found = _Answers()
    try:
        found = ask_second_client(connection, _ask_brokers)
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
        own = tuple(_list_logs(topic, found, offsets)) if logs else ()
        topics[name] = replace(topic, size_bytes=_list_known(sizes), logs=own if any(own) else ())
    directories = {broker: held.directories for broker, held in sorted(found.held.items())}
    return replace(
        state,
        topics=MappingProxyType(topics),
        directories=MappingProxyType(directories),
        stored=MappingProxyType(
            {n: held.stored for n, held in sorted(found.held.items()) if held.stored}
        ),
        notes=(*state.notes, *notes),
    )


def _list_known(amounts: Iterable[int]) -> tuple[int, ...]:
    """Return amounts by partition; nothing if none of them is known."""
    listed = tuple(amounts)
    return listed if any(amount >= 0 for amount in listed) else ()


def _list_logs(
    topic: TopicState, found: _Answers, offsets: Offsets | None
) -> Iterator[LeaderLog | None]:
    """Yield the log of each partition's leader, None if its bytes or wanted offsets are unknown."""
    start: int | None = -1
    end: int | None = -1
    for number, leader in enumerate(topic.leaders):
        place = (topic.name, number)
        if offsets is not None:
            start, end = offsets.first.get(place), offsets.end.get(place)
        size = found.held[leader].sizes.get(place) if leader in found.held else None
        if start is None or end is None or size is None:
            yield None
        else:
            yield LeaderLog(leader, start, end, size)


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


def _ask_brokers(client: Any) -> _Answers:
    """Ask all brokers in parallel."""
    found = _Answers(unoffered=KafkaRequest.DESCRIBE_LOG_DIRS in list_unoffered(client))
    if not found.unoffered:
        brokers = sorted(node.node_id for node in client._manager.cluster.brokers())
        _ask_each(client, brokers, found)
    return found


def _ask_each(client: Any, brokers: list[int], found: _Answers) -> None:
    from kafka.errors import KafkaError as ClientError

    def ask(broker: int) -> tuple[int, Any]:
        try:
            return broker, _ask_broker(client, broker)
        except (ClientError, OSError) as error:
            return broker, error

    def take(asked: tuple[int, Any]) -> None:
        broker, answer = asked
        if isinstance(answer, Exception):
            found.silent[broker] = describe_error(answer)
        elif answer.error_code in DENIED or not answer.results:
            # Without Describe on the cluster, brokers list no directory, and older ones no error.
            found.denied = True
        elif answer.error_code:
            found.silent[broker] = name_error(KafkaError(answer.error_code))
        else:
            found.held[broker] = read_directories(answer, is_whole=True)

    run_side_by_side(ask, brokers, _AT_ONCE, take)


def _ask_broker(client: Any, broker: int) -> Any:
    from kafka.protocol.admin import DescribeLogDirsRequest

    # No topics are named, so brokers list everything: replicas of a directory are counted.
    return client._manager.run(client._manager.send, DescribeLogDirsRequest(topics=None), broker)


def list_stored(client: Any, broker: int) -> frozenset[Place] | None:
    """Return the partitions in the log directories of a broker; None if it does not say.

    A directory that has failed holds none: nothing there can be read any more.
    """
    if KafkaRequest.DESCRIBE_LOG_DIRS in list_unoffered(client):
        return None
    answer = _ask_broker(client, broker)
    failures = {each.error_code for each in answer.results} - {0, _OFFLINE}
    if answer.error_code or not answer.results or failures:
        return None
    return frozenset(read_directories(answer, is_whole=True).sizes)


def read_directories(answer: Any, *, is_whole: bool) -> Holdings:
    """Read a broker's directories, and bytes by partition.

    The copy of a replica that moves between directories has no size of its own in `sizes`.
    `is_whole`: the answer lists all replicas, so they are counted.
    """
    directories, sizes = [], {}
    paths: dict[Place, str] = {}
    arriving: dict[Place, tuple[str, int]] = {}
    for each in answer.results:
        if each.error_code == _OFFLINE:
            directories.append(LogDirectory(each.log_dir, None, None, online=False))
        if each.error_code:
            continue
        for topic in each.topics:
            for partition in topic.partitions:
                place = (topic.name, partition.partition_index)
                if partition.is_future_key:
                    arriving[place] = (each.log_dir, partition.partition_size)
                else:
                    sizes[place] = partition.partition_size
                    paths[place] = each.log_dir
        total, usable = (
            value if isinstance(value, int) and value >= 0 else None  # brokers before 3.3
            for value in (getattr(each, "total_bytes", None), getattr(each, "usable_bytes", None))
        )
        replicas = sum(len(topic.partitions) for topic in each.topics) if is_whole else None
        directories.append(LogDirectory(each.log_dir, total, usable, replicas))
    stored = {}
    if len(directories) > 1:
        stored = {
            place: StoredReplica(path, sizes[place], *arriving.get(place, ()))
            for place, path in paths.items()
        }
    return Holdings(tuple(sorted(directories, key=lambda each: each.path)), sizes, stored)
