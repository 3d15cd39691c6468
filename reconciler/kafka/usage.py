"""Who uses a topic: its readers, its newest record and its ends. Asked for deletions only."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from reconciler.kafka.connection import PAUSES_S, REQUEST_S
from reconciler.kafka.errors import error_of, may_pass, name_error
from reconciler.kafka.groups import find_groups
from reconciler.kafka.topics import read_metadata
from reconciler.model import TopicUsage

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo

    from reconciler.kafka.connection import Connection

_GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


def read_usage(connection: Connection, names: Collection[str]) -> dict[str, TopicUsage]:
    """Find out who uses topics; one that the brokers do not know is left out.

    Groups are read before the ends of the partitions, so that a write meanwhile is not missed.
    Errors: ClusterError where the cluster does not answer at all.
    """
    what = f"reading {connection.entry.name}"
    metadata = connection.ask(read_metadata, what)
    shown = {name: metadata.topics[name] for name in sorted(names) if name in metadata.topics}
    partitions = [
        TopicPartition(name, number) for name, topic in shown.items() for number in topic.partitions
    ]
    if not partitions:
        return {}
    groups = find_groups(connection, metadata, partitions)
    offsets = _read_offsets(connection.client(), partitions)
    for pause in PAUSES_S:
        if not offsets.may_pass:
            break
        time.sleep(pause)
        offsets = _read_offsets(connection.client(), partitions)
    usage = {}
    for name, topic in shown.items():
        if name in offsets.gone:
            continue
        found = _sum_up(offsets, name, len(topic.partitions))
        using = tuple(sorted(groups.by_topic.get(name, ())))
        if groups.unseen:
            found = replace(found, unseen=groups.unseen, way_out=groups.way_out)
        usage[name] = replace(found, groups=using)
    return usage


@dataclass(slots=True)
class _Offsets:
    """What the leaders tell of partitions, by topic and number, and why some tell nothing.

    `may_pass`: one that tells nothing may do so a little later.
    """

    seen_at_ms: int
    first: dict[tuple[str, int], int] = field(default_factory=dict)
    newest: dict[tuple[str, int], int] = field(default_factory=dict)
    end: dict[tuple[str, int], int] = field(default_factory=dict)
    unseen: dict[str, str] = field(default_factory=dict)
    may_pass: bool = False
    gone: set[str] = field(default_factory=set)


def _read_offsets(client: AdminClient, partitions: Sequence[TopicPartition]) -> _Offsets:
    """Ask the leaders three times: for the starts, the newest timestamps (KIP-734), the ends."""
    found = _Offsets(seen_at_ms=int(time.time() * 1000))
    specs: Any = OffsetSpec  # its methods carry no types
    asked = (
        (found.first, specs.earliest(), "offset"),
        (found.newest, specs.max_timestamp(), "timestamp"),
        (found.end, specs.latest(), "offset"),
    )
    for place, spec, wanted in asked:
        answers = client.list_offsets(dict.fromkeys(partitions, spec), request_timeout=REQUEST_S)
        for partition, answer in answers.items():
            try:
                told: ListOffsetsResultInfo = answer.result()
            except KafkaException as exception:
                _miss(found, partition, error_of(exception))
            else:
                place[partition.topic, partition.partition] = getattr(told, wanted)
    return found


def _miss(found: _Offsets, partition: TopicPartition, error: KafkaError) -> None:
    if error.code() in _GONE:
        found.gone.add(partition.topic)
        return
    reason = f"{name_error(error)}: {error.str()}"
    what = f"the offsets of its partition {partition.partition} cannot be read: {reason}"
    found.unseen.setdefault(partition.topic, what)
    found.may_pass |= may_pass(error)


def _sum_up(found: _Offsets, topic: str, partitions: int) -> TopicUsage:
    """Put together what the leaders told of one topic."""
    seen_at_ms = found.seen_at_ms
    if topic in found.unseen:
        way_out = "see that every partition has a leader, and plan again"
        return TopicUsage(seen_at_ms, unseen=found.unseen[topic], way_out=way_out)
    keys = [(topic, number) for number in range(partitions)]
    ends = tuple(found.end[key] for key in keys)
    held = [found.end[key] - found.first[key] for key in keys]
    filled = [key for key, records in zip(keys, held, strict=True) if records]
    for key in filled:
        if found.newest[key] < 0:
            what = f"the records of its partition {key[1]} tell no time"
            return TopicUsage(seen_at_ms, ends=ends, unseen=what, way_out="delete it by hand")
    return TopicUsage(
        seen_at_ms,
        ends=ends,
        records=sum(held),
        emptied=any(end and not records for end, records in zip(ends, held, strict=True)),
        newest_ms=max((found.newest[key] for key in filled), default=None),
    )
