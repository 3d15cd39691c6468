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

    from reconciler.model import Assignment

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


def read_topic(name: str, metadata: TopicMetadata, config: Mapping[str, str | None]) -> TopicState:
    """Build a topic's state as one broker shows it."""
    partitions = [metadata.partitions[number] for number in sorted(metadata.partitions)]
    return TopicState(
        name=name,
        topic_id=None,
        assignment=tuple(tuple(partition.replicas) for partition in partitions),
        config=config,
        in_sync=tuple(tuple(partition.isrs) for partition in partitions),
        internal=name in INTERNAL_TOPICS,
        leaders=tuple(partition.leader for partition in partitions),
    )


def is_behind(topic: TopicState) -> bool:
    """Tell whether some replica is out of sync."""
    pairs = zip(topic.in_sync, topic.assignment, strict=True)
    return any(len(synced) < len(row) for synced, row in pairs)


def is_uneven(assignment: Assignment) -> bool:
    """Tell whether some partition has more replicas than others: it may be on the move."""
    return len(set(map(len, assignment))) > 1
