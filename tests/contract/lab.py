"""What tests do to a real cluster besides what reconciler does: set up, disturb, wait."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import AlterClientQuotasRequest

from reconciler.errors import Location
from reconciler.kafka.connection import Connection, connect
from reconciler.kafka.reader import KafkaReader
from reconciler.kafka.writer import KafkaWriter
from reconciler.model.outcomes import AnswerKind
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import Cluster
from reconciler.spec.entry import ClusterEntry

HERE = Location("clusters.yaml", 3)


def connect_to(cluster: Cluster, cluster_id: str | None = None) -> Connection:
    entry = ClusterEntry("lab", HERE, cluster_id=cluster_id)
    return connect(entry, bootstrap_servers=cluster.bootstrap_servers)


def create(connection: Connection, *steps: CreateTopic) -> None:
    answers = KafkaWriter(connection).send(steps)
    assert {answer.kind for answer in answers.values()} == {AnswerKind.ACCEPTED}, answers
    wait_for(lambda: all(s.topic in v for v in read_views(connection, steps) for s in steps))


def read_views(connection: Connection, steps: tuple[CreateTopic, ...]) -> list[object]:
    return list(KafkaReader(connection).read_views([step.topic for step in steps]).values())


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def set_config(cluster: Cluster, kind: ResourceType, name: str, **values: str) -> None:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    entries = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for key, value in values.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    for answer in client.incremental_alter_configs([resource]).values():
        answer.result(15)


def reassign(cluster: Cluster, topic: str, rows: dict[int, list[int] | None]) -> None:
    first = cluster.addresses()[1]  # the client leaks the sockets of addresses that refuse
    client = KafkaAdminClient(bootstrap_servers=first)
    try:
        client.alter_partition_reassignments(
            {TopicPartition(topic, number): target for number, target in rows.items()}
        )
    finally:
        client.close()


def limit_account(cluster: Cluster, rate: float, **account: str) -> None:
    """Limit the partitions per second of a user or a client id, named by its kind (KIP-599)."""
    request = AlterClientQuotasRequest
    entry = request.EntryData
    kinds = ((kind.replace("_", "-"), name) for kind, name in account.items())
    entity = [entry.EntityData(entity_type=kind, entity_name=name) for kind, name in kinds]
    change = entry.OpData(key="controller_mutation_rate", value=rate, remove=False)
    entries = [entry(entity=entity, ops=[change])]
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers.split(","))
    client._manager.run(client._manager.send, request(entries=entries, validate_only=False))
    client.close()
