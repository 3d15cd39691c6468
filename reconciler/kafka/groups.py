"""Consumer groups of a cluster: members, committed offsets, and the end offsets of topics.

What an account may not see, or what no client can ask for, is said and not left out silently.
Committed offsets are read through kafka-python, for the reason in `usage`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ClusterMetadata

from reconciler.errors import Finding, Severity
from reconciler.kafka.connection import REQUEST_S, Connection
from reconciler.kafka.errors import UntranslatableError, error_of, explain_error
from reconciler.kafka.lock import KIND
from reconciler.kafka.metadata import read_metadata
from reconciler.kafka.offsets import END, read_offsets
from reconciler.kafka.rights import is_denial
from reconciler.kafka.second_client import NoAnswerError, ask_second_client, describe_error
from reconciler.kafka.usage import (
    Groups,
    ask_until_told,
    check_visibility,
    cut_batches,
    grant_describe,
    has_known_kind,
)
from reconciler.model.cluster import CommittedOffsets, Place, TopicState
from reconciler.model.groups import Group, GroupMember, GroupsReading
from reconciler.model.rights import GROUP

_COMMITS = ("classic", "consumer", "streams")
_READ_BY = "neither client has the request that shows what it reads"


def read_groups(connection: Connection, topics: Collection[str] | None = None) -> GroupsReading:
    """Read the groups of a cluster, with their offsets on some topics; None: on all topics.

    Groups that hold the lock of an apply are left out. Errors: ClusterError if the cluster does not
    answer at all. Cost: a request for each broker, one or two for every 100 groups, and one for
    every 1,000 partitions and leader.
    """
    metadata = connection.ask(read_metadata, f"reading {connection.entry.name}")
    visible = Groups()
    found = _find_groups(connection, metadata, visible)
    _add_members(connection, found)
    groups = [_select(group, topics) for _, group in sorted(found.groups.items())]
    places = {
        place
        for group in groups
        for place in (*group.committed, *(p for member in group.members for p in member.reads))
        if place[0] in metadata.topics
    }
    asked = [TopicPartition(*place) for place in sorted(places)]
    ends = read_offsets(connection, asked, [END]).end if asked else {}
    return GroupsReading(tuple(groups), MappingProxyType(ends), tuple(note_unseen(visible)))


def read_committed(
    connection: Connection, topics: Mapping[str, TopicState]
) -> tuple[CommittedOffsets | None, tuple[Finding, ...]]:
    """Read the committed offsets of all groups on some topics, and a note on what is missing.

    None if no group may be seen, or of none its offsets. Errors: ClusterError if the cluster does
    not answer at all. Cost: a request for each broker, and one for every 100 groups.
    """
    metadata = connection.ask(read_metadata, f"reading {connection.entry.name}")
    visible = Groups()
    found = _find_groups(connection, metadata, visible)
    missed = {
        name: group.unseen
        for name, group in sorted(found.groups.items())
        if group.unseen and (group.kind not in _COMMITS or group.unseen != _READ_BY)
    }
    way_out = grant_describe(connection, "--group '*'") if found.denied else ""
    if visible.unseen or (missed and len(missed) == len(found.groups)):
        why = visible.unseen or _name_missed(missed)
        return None, (_note_reads(f"are unknown: {why}", visible.way_out or way_out),)
    notes = (_note_reads(f"leave out {_name_missed(missed)}", way_out),) if missed else ()
    shown = {
        name: committed
        for name, group in sorted(found.groups.items())
        if name not in missed and (committed := _list_committed(group.committed, topics))
    }
    return shown, notes


def _note_reads(what: str, way_out: str) -> Finding:
    return Finding("groups-unseen", f"rates of reads {what}", way_out, severity=Severity.NOTE)


def _name_missed(missed: Mapping[str, str]) -> str:
    """Name one group whose offsets are unknown with the reason, and count the others."""
    (name, why), *others = missed.items()
    more = f", and {len(others):,} more" if others else ""
    return f"group {name} ({why}){more}"


def _list_committed(
    committed: Mapping[Place, int], topics: Mapping[str, TopicState]
) -> dict[str, tuple[int, ...]]:
    """Return the offsets of one group by topic, one for each partition."""
    return {
        name: tuple(committed.get((name, p), -1) for p in range(len(topics[name].assignment)))
        for name in sorted({name for name, _ in committed})
        if name in topics
    }


def _find_groups(connection: Connection, metadata: ClusterMetadata, visible: Groups) -> _Found:
    """List all groups with their offsets; `visible` gets the reason why some may be missing."""
    from kafka.errors import IncompatibleBrokerVersion
    from kafka.errors import KafkaError as ClientError

    check_visibility(connection, metadata, visible)
    try:
        return ask_second_client(connection, _ask_for_groups)
    except (UntranslatableError, NoAnswerError) as error:
        visible.miss(f"consumer groups cannot be listed: {error}", "kafka-consumer-groups may")
    except ClientError as error:
        what = f"consumer groups cannot be listed: {describe_error(error)}"
        way_out = "the brokers' logs say more"
        if isinstance(error, IncompatibleBrokerVersion):
            way_out = "the tools of the service may list them"
        visible.miss(what, way_out)
    return _Found()


def note_unseen(found: Groups) -> Iterator[Finding]:
    """Yield a warning if there may be groups that nobody could see."""
    if found.unseen:
        yield Finding("groups-unseen", found.unseen, found.way_out, severity=Severity.WARNING)


@dataclass(slots=True)
class _Found:
    """The groups by name, as far as they are known. `denied`: offsets of some may not be read."""

    groups: dict[str, Group] = field(default_factory=dict)
    denied: bool = False

    def miss(self, name: str, why: str) -> None:
        """Note why something of a group is missing; the first reason is kept."""
        group = self.groups[name]
        self.groups[name] = replace(group, unseen=group.unseen or why)


def _ask_for_groups(client: Any) -> _Found:
    """List all groups, and their committed offsets."""
    found = _Found()
    for each in client.list_groups():
        if (each["group_id"], each["protocol_type"]) == (GROUP, KIND):
            continue
        kind = (each.get("group_type") or "classic").lower()
        unseen = "" if has_known_kind(each) else _READ_BY
        state = each.get("group_state") or ""
        name, protocol = each["group_id"], each["protocol_type"]
        found.groups[name] = Group(name, kind, protocol, state, unseen=unseen)
    committing = sorted(name for name, group in found.groups.items() if group.kind in _COMMITS)
    for batch in cut_batches(committing):
        _take_committed(client, batch, found)
    return found


def _take_committed(client: Any, names: Sequence[str], found: _Found) -> None:
    """Take the offsets of groups in one request; if one is refused, of each group alone."""
    from kafka.errors import BrokerResponseError, RetriableError

    try:
        told = client.list_group_offsets(dict.fromkeys(names))
    except BrokerResponseError as error:
        if isinstance(error, RetriableError) and len(names) > 1:
            raise  # a coordinator moves: the second client asks again
        if len(names) == 1:
            found.denied |= is_denial(KafkaError(error.errno))
            found.miss(names[0], f"its offsets cannot be read: {describe_error(error)}")
            return
        for name in names:
            _take_committed(client, [name], found)
        return
    for name, held in told.items():
        committed = {(p.topic, p.partition): o.offset for p, o in held.items() if o.offset >= 0}
        found.groups[name] = replace(found.groups[name], committed=MappingProxyType(committed))


def _add_members(connection: Connection, found: _Found) -> None:
    """Add the members of the groups that librdkafka can describe."""
    names = [
        name
        for name, group in found.groups.items()
        if group.kind in ("classic", "consumer") and group.state not in ("Empty", "Dead")
    ]

    def ask(wanted: Sequence[str]) -> dict[str, KafkaError]:
        failed: dict[str, KafkaError] = {}
        client = connection.client()
        for batch in cut_batches(wanted):
            asked = client.describe_consumer_groups(batch, request_timeout=REQUEST_S)
            for name, answer in asked.items():
                try:
                    described = answer.result()
                except KafkaException as exception:
                    failed[name] = error_of(exception)
                    continue
                members = tuple(map(_read_member, described.members))
                found.groups[name] = replace(found.groups[name], members=members)
        return failed

    for name, error in ask_until_told(ask, names).items():
        why = explain_error(error)
        found.miss(name, "the account lacks Describe on it" if is_denial(error) else why)


def _read_member(member: Any) -> GroupMember:
    # With the new protocol a member gets the partitions of its target only when others gave them
    # up (KIP-848).
    assigned = filter(None, (member.assignment, member.target_assignment))
    reads = {(p.topic, p.partition) for each in assigned for p in each.topic_partitions}
    return GroupMember(member.client_id, member.host.removeprefix("/"), frozenset(reads))


def _select(group: Group, topics: Collection[str] | None) -> Group:
    """Keep what a group has of some topics."""
    if topics is None:
        return group

    def keep(places: Mapping[Place, int]) -> Mapping[Place, int]:
        return {place: offset for place, offset in places.items() if place[0] in topics}

    members = tuple(
        replace(m, reads=frozenset(place for place in m.reads if place[0] in topics))
        for m in group.members
    )
    return replace(group, members=members, committed=MappingProxyType(keep(group.committed)))
