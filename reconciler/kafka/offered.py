"""The requests that brokers offer, by their answer to ApiVersions, which kafka-python keeps.

Nothing more is asked: a request about a group would create the topic of all groups. librdkafka
shows no answer to ApiVersions, only an error for each request that the brokers do not offer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from reconciler.kafka.connection import Connection
from reconciler.kafka.errors import UntranslatableError
from reconciler.kafka.second_client import NoAnswerError, ask_second_client
from reconciler.model.requests import KafkaRequest

OLDEST: Mapping[KafkaRequest, tuple[int, int]] = MappingProxyType(
    {
        KafkaRequest.FIND_COORDINATOR: (10, 4),
        KafkaRequest.JOIN_GROUP: (11, 4),  # from here on, a lost answer leaves no member behind
        KafkaRequest.SYNC_GROUP: (14, 0),
        KafkaRequest.HEARTBEAT: (12, 0),
        KafkaRequest.LEAVE_GROUP: (13, 0),
        KafkaRequest.DESCRIBE_GROUPS: (15, 0),
        KafkaRequest.RIGHTS: (3, 8),
        KafkaRequest.TOPIC_IDS: (3, 10),
        KafkaRequest.CREATE_TOPICS: (19, 0),
        KafkaRequest.DELETE_TOPICS: (20, 6),
        KafkaRequest.CREATE_PARTITIONS: (37, 0),
        KafkaRequest.ALTER_CONFIGS: (44, 0),
        KafkaRequest.ELECT_LEADERS: (43, 0),
        KafkaRequest.ALTER_REASSIGNMENTS: (45, 0),
        KafkaRequest.LIST_REASSIGNMENTS: (46, 0),
        KafkaRequest.DESCRIBE_LOG_DIRS: (35, 0),
        KafkaRequest.ALTER_LOG_DIRS: (34, 1),
        KafkaRequest.INIT_PRODUCER_ID: (22, 0),
    }
)
"""The key of each request in the protocol, and its oldest version that will do."""


def list_unoffered(client: Any) -> frozenset[KafkaRequest]:
    """Return the requests that brokers do not offer, by what they told an open second client."""
    offered = client._manager.broker_version_data.api_versions
    nothing = (0, -1)
    return frozenset(
        request
        for request, (key, oldest) in OLDEST.items()
        if offered.get(key, nothing)[1] < oldest
    )


def read_unoffered(connection: Connection) -> frozenset[KafkaRequest]:
    """Return the requests that the brokers of a cluster do not offer.

    Errors: as `ask_second_client`. Cost: 0.2 s, of a client of its own.
    """
    return ask_second_client(connection, list_unoffered)


def find_unoffered(connection: Connection) -> frozenset[KafkaRequest]:
    """Return the requests that the brokers do not offer; none if it cannot be known."""
    from kafka.errors import KafkaError as ClientError

    try:
        return read_unoffered(connection)
    except (UntranslatableError, NoAnswerError, ClientError):
        return frozenset()


def say_unoffered(cluster: str, requests: Collection[KafkaRequest]) -> str:
    """Name requests that the brokers of a cluster do not offer, in the order of the table."""
    named = ", ".join(request for request in OLDEST if request in requests)
    return f"the brokers of {cluster} do not offer {named}"
