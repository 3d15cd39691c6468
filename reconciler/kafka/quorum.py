"""The controllers of a cluster: a broker that is one as well must leave the quorum first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconciler.kafka.errors import UntranslatableError
from reconciler.kafka.second_client import NoAnswerError, ask_second_client

if TYPE_CHECKING:
    from reconciler.kafka.connection import Connection


def read_voters(connection: Connection) -> frozenset[int]:
    """Return the ids of the controllers that vote (KIP-595); none if the cluster does not tell."""
    from kafka.errors import KafkaError as ClientError

    try:
        told = ask_second_client(connection, _describe_quorum)
    except (UntranslatableError, NoAnswerError, ClientError):
        return frozenset()
    partitions = [each for topic in told["topics"] for each in topic["partitions"]]
    return frozenset(v["replica_id"] for each in partitions for v in each["current_voters"])


def _describe_quorum(client: Any) -> Any:
    return client.describe_metadata_quorum()
