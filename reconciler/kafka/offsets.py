"""Offsets of partitions, as their leaders answer: first, end, and the newest timestamp."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from reconciler.kafka.connection import PAUSES_S, REQUEST_S, Connection
from reconciler.kafka.errors import error_of, may_pass, name_error
from reconciler.kafka.metadata import read_metadata
from reconciler.model.cluster import Place

Wanted = Literal["first", "newest", "end"]
END: Wanted = "end"
ALL: tuple[Wanted, ...] = ("first", "newest", END)

_GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
_BATCH = 1_000
"""One request for 40,000 partitions takes minutes."""
_AT_ONCE = 20
"""Requests: the client works on them one by one, and each must be answered within REQUEST_S."""


@dataclass(slots=True)
class Offsets:
    """The leaders' answers by topic and partition, and the reasons for missing answers.

    `newest` holds timestamps (KIP-734), -1 for none. `unseen` holds a reason by topic, `gone` the
    topics that brokers do not know. `may_pass`: a missing answer may be available a little later.
    """

    seen_at_ms: int
    first: dict[Place, int] = field(default_factory=dict)
    newest: dict[Place, int] = field(default_factory=dict)
    end: dict[Place, int] = field(default_factory=dict)
    unseen: dict[str, str] = field(default_factory=dict)
    may_pass: bool = False
    gone: set[str] = field(default_factory=set)


def read_offsets(
    connection: Connection,
    partitions: Sequence[TopicPartition],
    wanted: Collection[Wanted] = ALL,
) -> Offsets:
    """Ask the leaders for what is wanted of each partition, again if they may answer later.

    Errors: ClusterError if the cluster does not answer at all.
    """
    offsets = _ask(connection.client(), partitions, wanted)
    for pause in PAUSES_S:
        if not offsets.may_pass:
            break
        time.sleep(pause)
        # librdkafka asks with the leader's epoch of its last metadata. If the leader moved away and
        # came back, that epoch is fenced on every try until metadata is read again.
        connection.ask(read_metadata, f"reading {connection.entry.name}")
        offsets = _ask(connection.client(), partitions, wanted)
    return offsets


def _ask(
    client: AdminClient, partitions: Sequence[TopicPartition], wanted: Collection[Wanted]
) -> Offsets:
    found = Offsets(seen_at_ms=int(time.time() * 1000))
    specs: Any = OffsetSpec  # its methods carry no types
    questions = (
        ("first", found.first, specs.earliest(), "offset"),
        ("newest", found.newest, specs.max_timestamp(), "timestamp"),
        ("end", found.end, specs.latest(), "offset"),
    )
    requests = [
        (place, told, dict.fromkeys(partitions[start : start + _BATCH], spec))
        for name, place, spec, told in questions
        if name in wanted
        for start in range(0, len(partitions), _BATCH)
    ]
    for start in range(0, len(requests), _AT_ONCE):
        sent = [
            (place, told, client.list_offsets(asked, request_timeout=REQUEST_S))
            for place, told, asked in requests[start : start + _AT_ONCE]
        ]
        for place, told, answers in sent:
            for partition, answer in answers.items():
                try:
                    result: ListOffsetsResultInfo = answer.result()
                except KafkaException as exception:
                    _miss(found, partition, error_of(exception))
                else:
                    place[partition.topic, partition.partition] = getattr(result, told)
    return found


def _miss(found: Offsets, partition: TopicPartition, error: KafkaError) -> None:
    if error.code() in _GONE:
        found.gone.add(partition.topic)
        return
    reason = f"{name_error(error)}: {error.str()}"
    what = f"the offsets of its partition {partition.partition} cannot be read: {reason}"
    found.unseen.setdefault(partition.topic, what)
    found.may_pass |= may_pass(error)
