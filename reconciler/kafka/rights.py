"""The rights of the account: missing rights are reported by name before a run starts.

Brokers hide topics instead of refusing them: without Describe a topic is not in the metadata, and a
plan would create it. So topics that are missing there are requested by name.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from enum import Enum

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicDescription,
)

from reconciler.errors import ClusterError, Finding
from reconciler.kafka.configs import read_broker_configs
from reconciler.kafka.connection import REQUEST_S, Connection
from reconciler.kafka.errors import DENIED, error_of
from reconciler.kafka.offered import find_unoffered
from reconciler.model.requests import KafkaRequest
from reconciler.model.rights import BRINGS, Operation, ResourceKind, Task, list_operations

NAMES_SHOWN = 3
UNTOLD = "the brokers do not offer Metadata v8, which shows rights"
BATCH = 1_000


def _list_needed(task: Task, kind: ResourceKind) -> dict[AclOperation, str]:
    """Return the operations that a run of apply needs on a kind of resource, and their names."""
    return {AclOperation[each.name]: str(each) for each in list_operations(task, kind)}


# The operations of a topic that apply needs, but for Create, which no existing topic shows.
_APPLY = _list_needed(Task.APPLY, ResourceKind.TOPIC)
del _APPLY[AclOperation.CREATE]
# What a run of moves needs, on the cluster and on each topic. Alter on a topic is not enough to
# reassign its partitions.
_MOVES = _list_needed(Task.MOVES, ResourceKind.CLUSTER)
_MOVE_TOPIC = _list_needed(Task.MOVES, ResourceKind.TOPIC)
_DELETE = _list_needed(Task.DELETE, ResourceKind.TOPIC)

_FOR_APPLY: Mapping[str, str] = {"Describe": "Alter", "DescribeConfigs": "AlterConfigs"}


def describe_topics(
    client: AdminClient, names: Iterable[str]
) -> dict[str, TopicDescription | KafkaError]:
    """Ask for topics by name, with the account's rights on them; an error stands for its topic.

    Errors: KafkaException if no answer comes. Cost: 0.06 ms for each topic that is missing,
    0.02 ms for each partition of one that is there.
    """
    wanted = sorted(names)
    found: dict[str, TopicDescription | KafkaError] = {}
    for start in range(0, len(wanted), BATCH):
        asked = client.describe_topics(
            TopicCollection(wanted[start : start + BATCH]),
            include_authorized_operations=True,
            request_timeout=REQUEST_S,
        )
        for name, answer in asked.items():
            try:
                found[name] = answer.result()
            except KafkaException as exception:
                error = error_of(exception)
                if error.code() not in {*DENIED, KafkaError.UNKNOWN_TOPIC_OR_PART}:
                    raise
                found[name] = error
    return found


def find_hidden(client: AdminClient, names: Iterable[str]) -> set[str]:
    """Return the names that the account may not describe, whether they exist or not."""
    found = describe_topics(client, names)
    return {n for n, what in found.items() if isinstance(what, KafkaError) and is_denial(what)}


def find_hidden_configs(client: AdminClient, names: Collection[str]) -> set[str]:
    """Return the names whose configs the account may not describe, whether they exist or not."""
    hidden = set()
    for start in range(0, len(names), BATCH):
        batch = sorted(names)[start : start + BATCH]
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in batch]
        asked = client.describe_configs(resources, request_timeout=REQUEST_S)
        for resource, answer in asked.items():
            if (error := answer.exception()) and is_denial(error_of(error)):
                hidden.add(resource.name)
    return hidden


def is_denial(error: KafkaError) -> bool:
    """Return whether a broker refuses because a right is missing."""
    return error.code() in DENIED


def check_cluster_rights(connection: Connection, *, elects: bool = False) -> None:
    """Refuse if reassignments are hidden, or if leaders are to be elected and cannot be.

    The reading itself refuses other missing rights.
    """
    # ListPartitionReassignments needs Describe on the cluster. It is sent only if rows look odd:
    # without this check, plans would fail on the first day when they do.
    needed = {AclOperation.DESCRIBE: "Describe"}
    if elects:  # Alter brings Describe
        needed = {AclOperation.ALTER: "Alter"}
    what = f"asking for rights on {connection.entry.name}"
    held = read_held(connection, connection.ask(lambda client: list_held(client)[1], what))
    findings = [name_missing(connection, right, ()) for right in _list_missing(needed, held)]
    if findings:
        raise ClusterError(findings)


def list_held(client: AdminClient) -> tuple[list[int], Collection[Enum] | None]:
    """List the brokers, and the operations that the account may do on the cluster.

    None if they are not shown: for lack of Describe on the cluster, or since brokers cannot.
    """
    answer = client.describe_cluster(
        include_authorized_operations=True, request_timeout=REQUEST_S
    ).result()
    return [node.id for node in answer.nodes], answer.authorized_operations


def list_shown(topic: TopicDescription) -> Collection[Enum] | None:
    """List the operations that the account may do on a topic; None if brokers cannot say."""
    operations: Collection[Enum] | None = topic.authorized_operations
    return operations


def read_held(connection: Connection, shown: Collection[Enum] | None) -> Collection[Enum]:
    """Return the operations that count as allowed on the cluster, given those that brokers show.

    Where they are not shown, the account lacks Describe, and none counts. But all count if no
    account sees them: brokers still refuse what is not allowed, and no right may be called
    missing. Cost: 0.2 s if they are not shown.
    """
    if shown is None and explain_unshown(connection):
        return tuple(AclOperation)
    return shown or ()


def explain_unshown(connection: Connection) -> str:
    """Return why no account sees its rights on a cluster; "" if there is no such reason.

    Cost: 0.2 s.
    """
    if not connection.has_id:
        return "librdkafka does not show rights on a cluster that reports no id"
    if KafkaRequest.RIGHTS in find_unoffered(connection):
        return UNTOLD
    return ""


def read_held_on(topic: TopicDescription) -> Collection[Enum]:
    """Return the operations that count as allowed on a topic that is shown; see `read_held`."""
    shown = list_shown(topic)
    return tuple(AclOperation) if shown is None else shown


def _list_missing(needed: Mapping[AclOperation, str], held: Collection[Enum]) -> list[str]:
    """List the needed rights that are missing, without those that another of them brings."""
    # Brokers answer with every operation that holds, implied ones included.
    rights = [right for operation, right in needed.items() if operation not in held]
    brought = {BRINGS.get(Operation(right)) for right in rights}
    return [right for right in rights if right not in brought]


def check_apply_rights(
    connection: Connection, names: Collection[str], deleted: Collection[str] = ()
) -> None:
    """Refuse if apply lacks a right on a topic that it would create or change, or delete.

    Errors: ClusterError, one finding for each right that is missing.
    """
    what = f"asking for rights on {connection.entry.name}"
    lacking = connection.ask(lambda client: _find_lacking(client, names, deleted), what)
    refuse_missing(connection, lacking)


def check_move_rights(connection: Connection, names: Collection[str]) -> None:
    """Refuse if a run of moves lacks a right on the cluster, or on a topic that it would move.

    A topic that does not exist needs none. Errors: ClusterError, one finding for each right that
    is missing.
    """
    what = f"asking for rights on {connection.entry.name}"
    on_cluster, on_topics = connection.ask(
        lambda client: _find_immovable(connection, client, names), what
    )
    findings = [name_missing(connection, right, ()) for right in on_cluster]
    findings += [name_missing(connection, r, topics) for r, topics in on_topics.items() if topics]
    if findings:
        raise ClusterError(findings)


def _find_immovable(
    connection: Connection, client: AdminClient, names: Collection[str]
) -> tuple[list[str], Mapping[str, Collection[str]]]:
    """Return the rights that are missing for moves: on the cluster, and on topics by right."""
    brokers, operations = list_held(client)
    held = read_held(connection, operations)
    on_cluster = _list_missing(_MOVES, held)
    # If a right to describe is missing, brokers show no rights. Then only an answer about configs
    # tells whether AlterConfigs is missing as well, since that brings DescribeConfigs.
    if AclOperation.DESCRIBE not in held and read_broker_configs(client, brokers[:1]).values:
        on_cluster.remove("AlterConfigs")
    on_topics: dict[str, list[str]] = {}
    hidden = []
    for name, found in describe_topics(client, names).items():
        if not isinstance(found, KafkaError):
            for right in _list_missing(_MOVE_TOPIC, read_held_on(found)):
                on_topics.setdefault(right, []).append(name)
        elif is_denial(found):
            hidden.append(name)
    on_topics.setdefault("Describe", []).extend(hidden)
    on_topics.setdefault("AlterConfigs", []).extend(find_hidden_configs(client, hidden))
    return on_cluster, on_topics


def refuse_missing(connection: Connection, lacking: Mapping[str, Collection[str]]) -> None:
    """Raise a finding for each right that some topics lack; `lacking`: topics by right."""
    findings = [
        name_missing(connection, right, topics) for right, topics in lacking.items() if topics
    ]
    if findings:
        raise ClusterError(findings)


def _find_lacking(
    client: AdminClient, names: Collection[str], deleted: Collection[str]
) -> dict[str, list[str]]:
    lacking: dict[str, list[str]] = {}
    absent, hidden = [], []
    for name, found in describe_topics(client, {*names, *deleted}).items():
        if not isinstance(found, KafkaError):
            needed = _DELETE if name in deleted else _APPLY
            for right in _list_missing(needed, read_held_on(found)):
                lacking.setdefault(right, []).append(name)
        elif is_denial(found) and name in deleted:
            lacking.setdefault("Delete", []).append(name)
        elif is_denial(found):
            hidden.append(name)
        elif name not in deleted:
            absent.append(name)
    # For a hidden topic a broker only answers that it is denied, not which rights are missing.
    # Alter is needed in any case, and brings Describe.
    lacking.setdefault("Alter", []).extend(hidden)
    lacking.setdefault("AlterConfigs", []).extend(find_hidden_configs(client, hidden))
    if denied := find_uncreatable(client, absent):
        lacking["Create"] = denied
    return lacking


def find_uncreatable(client: AdminClient, names: Collection[str]) -> list[str]:
    """Return the topics that the account may not create, by asking without creating any."""
    denied = []
    for start in range(0, len(names), BATCH):
        # Controllers check the right before everything else, so any count will do.
        batch = [NewTopic(name, 1, 1) for name in sorted(names)[start : start + BATCH]]
        asked = client.create_topics(batch, validate_only=True, request_timeout=REQUEST_S)
        for name, answer in asked.items():
            if (error := answer.exception()) and is_denial(error_of(error)):
                denied.append(name)
    return denied


def check_topic_right(
    connection: Connection, topic: str, right: AclOperation, absent: Finding | None
) -> None:
    """Refuse if the account lacks Read or Write on a topic, or with `absent` if it is missing.

    Errors: ClusterError with the way out.
    """
    what = f"asking for the topic {topic} of {connection.entry.name}"
    found = connection.ask(lambda client: describe_topics(client, [topic]), what)[topic]
    if isinstance(found, KafkaError) and not is_denial(found):
        if absent is not None:
            raise ClusterError([absent])
    elif isinstance(found, KafkaError) or right not in read_held_on(found):
        raise ClusterError([name_missing(connection, right.name.capitalize(), [topic])])


def missing_on_group(connection: Connection, right: str, group: str, otherwise: str) -> Finding:
    """Return the finding for a missing right on a consumer group, with the way out."""
    what = f"the account lacks {right} on the group {group} of {connection.entry.name}"
    way_out = f"grant it: {_grant(connection, right)} --group {group}; or {otherwise}"
    return Finding("cluster-rights", what, way_out)


def _grant(connection: Connection, right: str) -> str:
    user = connection.settings.get("sasl.username") or "NAME"
    return f"kafka-acls --add --allow-principal User:{user} --operation {right}"


def name_missing(connection: Connection, right: str, topics: Collection[str]) -> Finding:
    """Return the finding for a missing right on topics, or without any, on the cluster.

    The topic `*` stands for all of them.
    """
    names = sorted(topics)
    grant = _grant(connection, right)
    if not names:
        what = f"the account lacks {right} on the cluster {connection.entry.name}"
        return Finding("cluster-rights", what, f"grant it: {grant} --cluster")
    shown = "all topics" if names == ["*"] else ", ".join(names[:NAMES_SHOWN])
    if len(names) > NAMES_SHOWN:
        shown += f" and {len(names) - NAMES_SHOWN} more"
    what = f"the account lacks {right} on {shown} of {connection.entry.name}"
    way_out = f"grant it: {grant} --topic {shlex.quote(names[0])}"
    if right in _FOR_APPLY:
        way_out += f", or for apply {_FOR_APPLY[right]}, which brings {right}"
    return Finding("cluster-rights", what, way_out)
