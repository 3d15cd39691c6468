"""Which active consumer groups use some topics: by committed offsets, or by reading them now.

A group is active while it has members. Whatever cannot be seen of an active group is said, never
taken for nothing: brokers leave out groups that an account may not see, and tell of no group
whose coordinator is away.
"""

from __future__ import annotations

from concurrent.futures import wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AclOperation

from reconciler.kafka.connection import REQUEST_S
from reconciler.kafka.errors import error_of, name_error
from reconciler.kafka.rights import is_denial
from reconciler.kafka.second_client import UntranslatableError, open_second_client

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from confluent_kafka.admin import AdminClient, ClusterMetadata, ConsumerGroupDescription

    from reconciler.kafka.connection import Connection

OFFSETS_TOPIC = "__consumer_offsets"
BATCH = 100
_IDLE = ("Empty", "Dead")
_UNSETTLED = ("PreparingRebalance", "CompletingRebalance", "Assigning")
_UNSETTLED_NOW = (
    ConsumerGroupState.PREPARING_REBALANCING,
    ConsumerGroupState.COMPLETING_REBALANCING,
    ConsumerGroupState.UNKNOWN,
)
_SEEN_INTO = ("classic", "consumer")
_AGAIN = "plan again once it has settled"


@dataclass(slots=True)
class Groups:
    """The active groups that use each topic; `unseen` says why there may be others."""

    by_topic: dict[str, set[str]] = field(default_factory=dict)
    unseen: str = ""
    way_out: str = ""

    def add(self, topic: str, group: str) -> None:
        """Note that a group uses a topic."""
        self.by_topic.setdefault(topic, set()).add(group)

    def miss(self, what: str, way_out: str) -> None:
        """Note what cannot be seen; the first is told."""
        if not self.unseen:
            self.unseen, self.way_out = what, way_out


def find_groups(
    connection: Connection, metadata: ClusterMetadata, partitions: Sequence[TopicPartition]
) -> Groups:
    """Find the active groups that use the topics of some partitions.

    Errors: ClusterError where the cluster does not answer at all.
    """
    found = Groups()
    _check_sight(connection, metadata, found)
    active = _list_active(connection, found)
    for group in active:
        _check_kind(group, found)
    readers = [g["group_id"] for g in active if g["protocol_type"] == "consumer" and _is_known(g)]
    client = connection.client()
    _add_readers(connection, client, readers, {p.topic for p in partitions}, found)
    _add_committers(connection, client, [g["group_id"] for g in active], partitions, found)
    return found


def _check_sight(connection: Connection, metadata: ClusterMetadata, found: Groups) -> None:
    """Note where brokers would leave groups out without a word."""
    described = connection.ask(
        lambda client: client.describe_cluster(
            include_authorized_operations=True, request_timeout=REQUEST_S
        ).result(),
        f"asking for rights on {connection.entry.name}",
    )
    if AclOperation.DESCRIBE not in (described.authorized_operations or ()):
        what = "consumer groups stay unseen: the account lacks Describe on the cluster"
        found.miss(what, _grant_describe(connection, "--cluster"))
    offsets = metadata.topics.get(OFFSETS_TOPIC)
    if offsets and any(partition.leader < 0 for partition in offsets.partitions.values()):
        what = f"consumer groups stay unseen: partitions of {OFFSETS_TOPIC} have no leader"
        found.miss(what, "bring their brokers back, and plan again")


def _list_active(connection: Connection, found: Groups) -> list[dict[str, Any]]:
    """List groups of every type that have members; librdkafka leaves some types out."""
    from kafka.errors import KafkaError as ClientError

    nodes = connection.ask(
        lambda client: client.describe_cluster(request_timeout=REQUEST_S).result().nodes,
        f"asking for the brokers of {connection.entry.name}",
    )
    try:
        with open_second_client(connection.settings, nodes) as client:
            listed = client.list_groups(broker_ids=[node.id for node in nodes])
    except (UntranslatableError, ClientError, OSError, ValueError, RuntimeError) as error:
        reason = connection.settings.redact(str(error))
        found.miss(f"consumer groups cannot be listed: {reason}", "delete it by hand")
        return []
    return [group for group in listed if group.get("group_state") not in _IDLE]


def _is_known(group: Mapping[str, Any]) -> bool:
    return (group.get("group_type") or "classic").lower() in _SEEN_INTO


def _check_kind(group: Mapping[str, Any], found: Groups) -> None:
    """Note a group that nobody can see into: of another type, or on the move."""
    name, state = group["group_id"], group.get("group_state")
    if not _is_known(group):
        kind = group["group_type"].lower()
        what = f"{kind} group {name} is active, and which topics it reads cannot be seen"
        found.miss(what, "stop it for a moment and plan again, or delete the topic by hand")
    elif group["protocol_type"] == "consumer" and state in _UNSETTLED:
        found.miss(f"consumer group {name} is rebalancing, so what it reads is open", _AGAIN)


def _add_readers(
    connection: Connection,
    client: AdminClient,
    groups: Sequence[str],
    topics: set[str],
    found: Groups,
) -> None:
    """Add the groups whose members read a topic now, or are about to (KIP-848)."""
    asked: dict[str, Any] = {}
    for batch in _cut(groups):
        asked |= client.describe_consumer_groups(batch, request_timeout=REQUEST_S)
        wait(asked.values())
    for group, answer in asked.items():
        try:
            described = answer.result()
        except KafkaException as error:
            _miss_group(connection, group, error, found)
            continue
        if described.state in _UNSETTLED_NOW:
            found.miss(f"consumer group {group} is rebalancing, so what it reads is open", _AGAIN)
        for topic in topics & _list_read(described):
            found.add(topic, group)


def _list_read(described: ConsumerGroupDescription) -> set[str]:
    assigned = [member.assignment for member in described.members]
    assigned += [m.target_assignment for m in described.members if m.target_assignment]
    return {partition.topic for each in assigned for partition in each.topic_partitions}


def _add_committers(
    connection: Connection,
    client: AdminClient,
    groups: Sequence[str],
    partitions: Sequence[TopicPartition],
    found: Groups,
) -> None:
    """Add the groups that hold committed offsets: a request a group, many at once."""
    asked: dict[str, Any] = {}
    for batch in _cut(groups):
        for group in batch:
            wanted = [ConsumerGroupTopicPartitions(group, list(partitions))]
            asked |= client.list_consumer_group_offsets(wanted, request_timeout=REQUEST_S)
        wait(asked.values())
    for group, answer in asked.items():
        try:
            held = answer.result().topic_partitions
        except KafkaException as error:
            _miss_group(connection, group, error, found)
            continue
        for partition in held:
            if partition.error is not None:
                _miss_group(connection, group, KafkaException(partition.error), found)
            elif partition.offset >= 0:
                found.add(partition.topic, group)


def _cut(groups: Sequence[str]) -> Iterator[list[str]]:
    """Yield so many groups that the brokers answer within a request's time."""
    for start in range(0, len(groups), BATCH):
        yield list(groups[start : start + BATCH])


def _miss_group(
    connection: Connection, group: str, exception: KafkaException, found: Groups
) -> None:
    error = error_of(exception)
    if is_denial(error):
        what = f"the account lacks Describe on the active consumer group {group}"
        found.miss(what, _grant_describe(connection, f"--group {group}"))
        return
    what = f"consumer group {group} cannot be seen into: {name_error(error)}: {error.str()}"
    found.miss(what, "plan again; the brokers' logs say more")


def _grant_describe(connection: Connection, on: str) -> str:
    user = connection.settings.get("sasl.username") or "NAME"
    return f"grant it: kafka-acls --add --allow-principal User:{user} --operation Describe {on}"
