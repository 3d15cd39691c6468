"""A cluster that knows the account of the jobs by its password, and checks its rights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from runner_clone import SECRETS

from reconciler.sandbox.cluster import Cluster, start_cluster

TIMEOUT_S = 60
USER, PASSWORD = SECRETS["KAFKA_USER"], SECRETS["KAFKA_PASSWORD"]
PROPERTIES = {
    "listener.name.jobs.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.jobs.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'user_{USER}="{PASSWORD}";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
EVERYTHING = (
    (ResourceType.TOPIC, "*"),
    (ResourceType.GROUP, "*"),
    (ResourceType.BROKER, "kafka-cluster"),
)


@contextmanager
def start_authorized() -> Iterator[Cluster]:
    """Start it, with three brokers, and give the account every right."""
    with start_cluster(
        brokers=3, listeners={"JOBS": "SASL_PLAINTEXT"}, properties=PROPERTIES
    ) as cluster:
        rights = [_bind(*each, AclOperation.ALL, AclPermissionType.ALLOW) for each in EVERYTHING]
        _give(cluster, rights)
        yield cluster


def describe_client(cluster: Cluster) -> dict[str, str]:
    """Return the client of the account, whose password is a secret of the jobs."""
    return {
        "bootstrap.servers": cluster.addresses("JOBS")[1],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "${env:KAFKA_USER}",
        "sasl.password": "${env:KAFKA_PASSWORD}",
    }


def forbid_growth(cluster: Cluster, topic: str) -> None:
    """Deny the account to expand a topic."""
    denied = _bind(ResourceType.TOPIC, topic, AclOperation.ALTER, AclPermissionType.DENY)
    _give(cluster, [denied])


def allow_growth(cluster: Cluster, topic: str) -> None:
    """Take the denial back."""
    kind, name, pattern = ResourceType.TOPIC, topic, ResourcePatternType.LITERAL
    denied = (AclOperation.ALTER, AclPermissionType.DENY)
    filters = [AclBindingFilter(kind, name, pattern, f"User:{USER}", None, *denied)]
    admin = _connect(cluster)
    for answer in admin.delete_acls(filters).values():
        assert len(answer.result(timeout=TIMEOUT_S)) == 1


def _give(cluster: Cluster, rights: list[AclBinding]) -> None:
    admin = _connect(cluster)  # lives until the answers are here
    for answer in admin.create_acls(rights).values():
        answer.result(timeout=TIMEOUT_S)


def _bind(
    kind: ResourceType, name: str, operation: AclOperation, permission: AclPermissionType
) -> AclBinding:
    pattern = ResourcePatternType.LITERAL
    return AclBinding(kind, name, pattern, f"User:{USER}", "*", operation, permission)


def _connect(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
