"""The usage of a topic: consumer groups, newest record, end offsets. Read for deletions only.

A group uses a topic by its committed offsets, or by reading it now. It is active while it has
members. Hidden parts of an active group are reported, never ignored: brokers omit groups that an
account may not see, and groups whose coordinator is away.

Committed offsets are read through kafka-python: librdkafka 2.16 ends the process if a coordinator
that moves refuses them (NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, ClusterMetadata

from reconciler.kafka.connection import PAUSES_S, REQUEST_S, Connection
from reconciler.kafka.errors import UntranslatableError, error_of, explain_error, may_pass
from reconciler.kafka.lock import KIND
from reconciler.kafka.metadata import read_metadata
from reconciler.kafka.offsets import Offsets, read_offsets
from reconciler.kafka.rights import is_denial, read_held
from reconciler.kafka.second_client import (
    NoAnswerError,
    ask_second_client,
    describe_error,
)
from reconciler.model.cluster import TopicUsage
from reconciler.model.rights import GROUP


def read_usage(connection: Connection, names: Collection[str]) -> dict[str, TopicUsage]:
    """Read the usage of topics; a topic that the brokers do not know is omitted.

    Groups are read before the ends of the partitions, so that a write meanwhile is not missed.
    Errors: ClusterError if the cluster does not answer at all.
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
    offsets = read_offsets(connection, partitions)
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


def _sum_up(found: Offsets, topic: str, partitions: int) -> TopicUsage:
    """Combine the leaders' answers for one topic."""
    seen_at_ms = found.seen_at_ms
    if topic in found.unseen:
        way_out = "make sure that every partition has a leader, and plan again"
        return TopicUsage(seen_at_ms, unseen=found.unseen[topic], way_out=way_out)
    keys = [(topic, number) for number in range(partitions)]
    ends = tuple(found.end[key] for key in keys)
    held = [found.end[key] - found.first[key] for key in keys]
    filled = [key for key, records in zip(keys, held, strict=True) if records]
    for key in filled:
        # -1 is the answer for an empty partition as well, so only filled ones are looked at.
        if found.newest[key] < 0:
            what = f"the records of its partition {key[1]} have no timestamps"
            return TopicUsage(seen_at_ms, ends=ends, unseen=what, way_out="delete it by hand")
    return TopicUsage(
        seen_at_ms,
        ends=ends,
        records=sum(held),
        emptied=any(end and not records for end, records in zip(ends, held, strict=True)),
        newest_ms=max((found.newest[key] for key in filled), default=None),
    )


T = TypeVar("T")

OFFSETS_TOPIC = "__consumer_offsets"
BATCH = 100
_IDLE = ("Empty", "Dead")
_UNSETTLED = ("PreparingRebalance", "CompletingRebalance", "Assigning")
_UNSETTLED_NOW = (
    ConsumerGroupState.PREPARING_REBALANCING,
    ConsumerGroupState.COMPLETING_REBALANCING,
    ConsumerGroupState.UNKNOWN,  # librdkafka has no names for the states of the new protocol
)
_SEEN_INTO = ("classic", "consumer")
_AGAIN = "plan again once it has settled"
_AGAIN_LATER = "plan again; the brokers' logs say more"


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
        """Note what cannot be seen; only the first note is reported."""
        if not self.unseen:
            self.unseen, self.way_out = what, way_out


def find_groups(
    connection: Connection, metadata: ClusterMetadata, partitions: Sequence[TopicPartition]
) -> Groups:
    """Find the active groups that use the topics of some partitions.

    Errors: ClusterError if the cluster does not answer at all.
    """
    found = Groups()
    check_visibility(connection, metadata, found)
    # By kafka-python: librdkafka leaves groups of some types out. The lock of an apply, possibly of
    # this one, is a group as well, and reads no topic.
    listed = _ask_or_miss(connection, lambda client: client.list_groups(), "be listed", found) or ()
    active = [
        group
        for group in listed
        if group.get("group_state") not in _IDLE
        and (group["group_id"], group["protocol_type"]) != (GROUP, KIND)
    ]
    for group in active:
        name, state = group["group_id"], group.get("group_state")
        if not has_known_kind(group):
            kind = group["group_type"].lower()
            what = f"{kind} group {name} is active, and which topics it reads cannot be seen"
            found.miss(what, "stop it for a moment and plan again, or delete the topic by hand")
        elif group["protocol_type"] == "consumer" and state in _UNSETTLED:
            what = f"consumer group {name} is rebalancing, so what it reads is unknown"
            found.miss(what, _AGAIN)
    # Every active group is asked for committed offsets, but only the members of consumer groups
    # show what they read.
    readers = [
        group["group_id"]
        for group in active
        if group["protocol_type"] == "consumer" and has_known_kind(group)
    ]
    topics = {partition.topic for partition in partitions}
    client = connection.client()
    failed = ask_until_told(lambda groups: _add_readers(client, groups, topics, found), readers)
    failed |= ask_until_told(
        lambda groups: _add_committers(connection, groups, partitions, found),
        [group["group_id"] for group in active],
    )
    for name in sorted(failed):
        error = failed[name]
        if is_denial(error):
            what = f"the account lacks Describe on the active consumer group {name}"
            found.miss(what, grant_describe(connection, f"--group {name}"))
        else:
            what = f"consumer group {name} cannot be described: {explain_error(error)}"
            found.miss(what, _AGAIN_LATER)
    return found


def check_visibility(connection: Connection, metadata: ClusterMetadata, found: Groups) -> None:
    """Note if brokers would silently omit groups."""
    described = connection.ask(
        lambda client: client.describe_cluster(
            include_authorized_operations=True, request_timeout=REQUEST_S
        ).result(),
        f"asking for rights on {connection.entry.name}",
    )
    if AclOperation.DESCRIBE not in read_held(connection, described.authorized_operations):
        what = "consumer groups are not visible: the account lacks Describe on the cluster"
        found.miss(what, grant_describe(connection, "--cluster"))
    offsets = metadata.topics.get(OFFSETS_TOPIC)
    if offsets and any(partition.leader < 0 for partition in offsets.partitions.values()):
        what = f"consumer groups are not visible: partitions of {OFFSETS_TOPIC} have no leader"
        found.miss(what, "start their brokers, and plan again")


def _ask_or_miss(
    connection: Connection, question: Callable[[Any], T], what: str, found: Groups
) -> T | None:
    """Ask the second client; if it fails, note that groups cannot `what`."""
    from kafka.errors import IncompatibleBrokerVersion
    from kafka.errors import KafkaError as ClientError

    try:
        return ask_second_client(connection, question)
    except UntranslatableError as error:
        reason, way_out = str(error), "delete it by hand"
    except NoAnswerError as error:
        reason, way_out = str(error), _AGAIN_LATER
    except IncompatibleBrokerVersion as error:
        reason, way_out = describe_error(error), "delete it with the tools of the service"
    except ClientError as error:
        reason, way_out = describe_error(error), _AGAIN_LATER
    found.miss(f"consumer groups cannot {what}: {reason}", way_out)
    return None


def has_known_kind(group: Mapping[str, Any]) -> bool:
    """Return whether clients can see what a group of its kind reads."""
    return (group.get("group_type") or "classic").lower() in _SEEN_INTO


def ask_until_told(
    ask: Callable[[Sequence[str]], dict[str, KafkaError]], groups: Sequence[str]
) -> dict[str, KafkaError]:
    """Ask about groups; retry those whose coordinator may answer later. Returns the failures."""
    failed: dict[str, KafkaError] = {}
    for pause in (0.0, *PAUSES_S):
        if groups:
            time.sleep(pause)
            failed = {g: error for g, error in failed.items() if g not in groups} | ask(groups)
            groups = [group for group, error in failed.items() if may_pass(error)]
    return failed


def _add_readers(
    client: AdminClient, groups: Sequence[str], topics: set[str], found: Groups
) -> dict[str, KafkaError]:
    """Add the groups whose members read a topic now, or are about to (KIP-848)."""
    asked: dict[str, Any] = {}
    for batch in cut_batches(groups):
        asked |= client.describe_consumer_groups(batch, request_timeout=REQUEST_S)
        wait(asked.values())
    failed = {}
    for group, answer in asked.items():
        try:
            described = answer.result()
        except KafkaException as exception:
            failed[group] = error_of(exception)
            continue
        if described.state in _UNSETTLED_NOW:
            what = f"consumer group {group} is rebalancing, so what it reads is unknown"
            found.miss(what, _AGAIN)
        assigned = [member.assignment for member in described.members]
        # With the new protocol a member gets the partitions of its target only when others gave
        # them up (KIP-848).
        assigned += [m.target_assignment for m in described.members if m.target_assignment]
        read = {partition.topic for each in assigned for partition in each.topic_partitions}
        for topic in topics & read:
            found.add(topic, group)
    return failed


def _add_committers(
    connection: Connection,
    groups: Sequence[str],
    partitions: Sequence[TopicPartition],
    found: Groups,
) -> dict[str, KafkaError]:
    """Add the groups that hold committed offsets. Cost: a request per coordinator and batch."""

    def ask(client: Any) -> dict[str, KafkaError]:
        failed: dict[str, KafkaError] = {}
        for batch in cut_batches(groups):
            failed |= _ask_for_offsets(client, batch, partitions, found)
        return failed

    return _ask_or_miss(connection, ask, "be asked for their offsets", found) or {}


def _ask_for_offsets(
    client: Any, groups: Sequence[str], partitions: Sequence[TopicPartition], found: Groups
) -> dict[str, KafkaError]:
    """Ask for the offsets of all groups in one request; if one is refused, for each group alone."""
    from kafka.errors import BrokerResponseError
    from kafka.structs import TopicPartition as ClientPartition

    # Of many partitions, what a group committed is the shorter answer.
    wanted = None
    if len(partitions) <= BATCH:
        wanted = [ClientPartition(each.topic, each.partition) for each in partitions]
    try:
        told = client.list_group_offsets(dict.fromkeys(groups, wanted))
    except BrokerResponseError as error:
        if len(groups) == 1:
            return {groups[0]: KafkaError(error.errno)}
        alone = (_ask_for_offsets(client, [group], partitions, found) for group in groups)
        return {group: trouble for each in alone for group, trouble in each.items()}
    for group, held in told.items():
        for partition, committed in held.items():
            if committed.offset >= 0:
                found.add(partition.topic, group)
    return {}


def cut_batches(groups: Sequence[str]) -> Iterator[list[str]]:
    """Yield batches of groups that the brokers answer within a request's timeout."""
    for start in range(0, len(groups), BATCH):
        yield list(groups[start : start + BATCH])


def grant_describe(connection: Connection, on: str) -> str:
    user = connection.settings.get("sasl.username") or "NAME"
    return f"grant it: kafka-acls --add --allow-principal User:{user} --operation Describe {on}"
