"""Metadata as the client returns it, turned into the states of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from reconciler.kafka.connection import REQUEST_S
from reconciler.kafka.errors import DENIED
from reconciler.model import INTERNAL_TOPICS, TopicState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka.admin import AdminClient, ClusterMetadata, TopicMetadata

    from reconciler.model import Replicas

_NOT_THERE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, *DENIED})


def read_metadata(client: AdminClient) -> ClusterMetadata:
    """Ask any broker for all topics; those that it says are not there are left out.

    Errors: KafkaException where no answer comes, or where the broker cannot tell a topic's
    partitions just now: it would be taken for one that has none.
    """
    metadata = client.list_topics(timeout=REQUEST_S)
    troubled = {name: topic.error for name, topic in metadata.topics.items() if topic.error}
    for name, error in troubled.items():
        if error.code() not in _NOT_THERE:
            raise KafkaException(error)
        del metadata.topics[name]
    return metadata


def read_topic(
    name: str,
    metadata: TopicMetadata,
    config: Mapping[str, str | None],
    moving: Mapping[int, Replicas],
) -> TopicState:
    """Build a topic's state. `moving`: the targets of partitions under reassignment."""
    partitions = [metadata.partitions[number] for number in sorted(metadata.partitions)]
    rows = [moving.get(partition.id) or tuple(partition.replicas) for partition in partitions]
    return TopicState(
        name=name,
        topic_id=None,
        assignment=tuple(rows),
        config=config,
        in_sync=tuple(tuple(partition.isrs) for partition in partitions),
        reassigning=frozenset(moving),
        internal=name in INTERNAL_TOPICS,
        leaders=tuple(partition.leader for partition in partitions),
    )


def is_behind(metadata: TopicMetadata) -> bool:
    """Tell whether some replica is out of sync: only then can a reassignment be under way.

    A reassignment is complete as soon as its target replicas are all in sync (KIP-455).
    """
    partitions = metadata.partitions.values()
    return any(len(partition.isrs) < len(partition.replicas) for partition in partitions)
