"""What the controllers know of brokers: those that vote, and those that are registered only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.kafka.connection import Connection
from reconciler.kafka.errors import UntranslatableError
from reconciler.kafka.second_client import NoAnswerError, ask_second_client


def read_voters(connection: Connection) -> frozenset[int]:
    """Return the ids of the controllers that vote (KIP-595); none if the cluster does not say."""
    from kafka.errors import KafkaError as ClientError

    try:
        told = ask_second_client(connection, _describe_quorum)
    except (UntranslatableError, NoAnswerError, ClientError):
        return frozenset()
    partitions = [each for topic in told["topics"] for each in topic["partitions"]]
    return frozenset(v["replica_id"] for each in partitions for v in each["current_voters"])


def read_fenced(connection: Connection) -> Mapping[int, str | None] | None:
    """Return the racks of the registered brokers that are not alive (KIP-1073, Kafka 4.0).

    None if the cluster does not say.
    """
    from kafka.errors import KafkaError as ClientError

    try:
        told = ask_second_client(connection, _list_registered)
    except (UntranslatableError, NoAnswerError, ClientError):
        return None
    if told.error_code or told.version < _LISTS_FENCED:
        return None
    return {each.broker_id: each.rack for each in told.brokers if each.is_fenced}


_LISTS_FENCED = 2
"""The version of DescribeCluster from which on it has registered brokers that are not alive."""


def _list_registered(client: Any) -> Any:
    from kafka.protocol.admin import DescribeClusterRequest

    request = DescribeClusterRequest(include_fenced_brokers=True)
    return client._manager.run(client._manager.send, request)


def _describe_quorum(client: Any) -> Any:
    return client.describe_metadata_quorum()
