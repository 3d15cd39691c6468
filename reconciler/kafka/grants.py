"""Which rights of a list an account lacks, asked as that account. Nothing is changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from types import MappingProxyType

from confluent_kafka import KafkaError
from confluent_kafka.admin import AclOperation, AdminClient

from reconciler.errors import ClusterError, LockHeldError
from reconciler.kafka.client import NO_TOPIC
from reconciler.kafka.configs import read_broker_configs
from reconciler.kafka.connection import REQUEST_S, Connection
from reconciler.kafka.errors import error_of, may_ask_again
from reconciler.kafka.lock import Holder, hold_lock
from reconciler.kafka.metadata import read_metadata
from reconciler.kafka.rights import (
    UNTOLD,
    describe_topics,
    explain_unshown,
    find_hidden_configs,
    find_uncreatable,
    is_denial,
    list_held,
    list_shown,
)
from reconciler.model.rights import ALL, BRINGS, CheckedRights, Operation, ResourceKind, Right


def check_rights(
    connection: Connection, rights: Iterable[Right], names: Collection[str], holder: Holder
) -> CheckedRights:
    """Ask which rights the account holds: those on all topics on some `names`, as far as it shows.

    Brokers show the rights on a topic that exists. Without one of `names`, another topic is asked.
    A lock is taken under the name of `holder`, and left at once: only that shows Read on its group.
    Errors: ClusterError if no answer comes. Cost: a request for each kind of resource, and those
    of `describe_topics`.
    """
    lacking: dict[Right, tuple[str, ...]] = {}
    unknown: dict[Right, str] = {}
    what = f"asking for rights on {connection.entry.name}"
    for _, of_resource in groupby(sorted(rights), lambda r: (r.kind, r.name, r.prefixed)):
        asked = list(of_resource)
        if asked[0].kind == ResourceKind.GROUP and asked[0].operation == Operation.READ:
            answer = _ask_lock(connection, asked, holder)
        else:
            answer = connection.ask(partial(_ask, rights=asked, names=names), what)
        # Brokers that show no rights look as if the account lacked Describe on the cluster.
        looks_denied = asked[0].kind == ResourceKind.CLUSTER and answer.lacking
        if looks_denied and (why := explain_unshown(connection)):
            answer = _Answer(unknown=dict.fromkeys(asked, why))
        lacking |= {right: tuple(sorted(on)) for right, on in answer.lacking.items()}
        unknown |= answer.unknown
    return CheckedRights(lacking, MappingProxyType(unknown))


_NOTHING_YET = "nothing of it exists yet"


@dataclass(slots=True)
class _Answer:
    """The missing rights, with topics that lack them, and why others are not known."""

    lacking: dict[Right, set[str]] = field(default_factory=dict)
    unknown: dict[Right, str] = field(default_factory=dict)

    def add(self, rights: Iterable[Right], *names: str) -> None:
        for right in rights:
            self.lacking.setdefault(right, set()).update(names)


def _ask(client: AdminClient, rights: Sequence[Right], names: Collection[str]) -> _Answer:
    """Ask for rights on one resource."""
    match (first := rights[0]).kind:
        case ResourceKind.CLUSTER:
            return _ask_cluster(client, rights)
        case ResourceKind.GROUP:
            return _ask_groups(client, rights)
        case ResourceKind.TOPIC if first.prefixed:
            return _ask_topics(client, first.name, rights, names)
        case ResourceKind.TOPIC if first.name == ALL:
            return _ask_topics(client, "", rights, names)
        case ResourceKind.TOPIC:
            return _ask_topic(client, first.name, rights)


def _ask_cluster(client: AdminClient, rights: Sequence[Right]) -> _Answer:
    brokers, shown = list_held(client)
    held = shown or ()
    lacking = [right for right in rights if AclOperation[right.operation.name] not in held]
    # Without Describe, brokers show no rights. Then an answer about configs is all there is.
    if AclOperation.DESCRIBE not in held and read_broker_configs(client, brokers[:1]).values:
        lacking = [right for right in lacking if not _includes(right, Operation.DESCRIBE_CONFIGS)]
    answer = _Answer()
    answer.add(lacking)
    return answer


def _ask_groups(client: AdminClient, rights: Sequence[Right]) -> _Answer:
    """Ask whether any group may be described, by one that nobody has."""
    asked = client.describe_consumer_groups([NO_TOPIC], request_timeout=REQUEST_S)
    error = asked[NO_TOPIC].exception()
    answer = _Answer()
    if error is not None and is_denial(error_of(error)):
        answer.add(rights)
    elif error is not None and may_ask_again(error_of(error)):
        raise error
    return answer


def _ask_lock(connection: Connection, rights: Sequence[Right], holder: Holder) -> _Answer:
    answer = _Answer()
    try:
        with suppress(LockHeldError), hold_lock(connection, holder, group=rights[0].name):
            pass
    except ClusterError as error:
        if any(finding.rule == "cluster-rights" for finding in error.findings):
            answer.add(rights)
        else:  # such as a client that cannot connect with these settings
            why = "; ".join(finding.what for finding in error.findings)
            answer.unknown |= dict.fromkeys(rights, why)
    return answer


def _ask_topic(client: AdminClient, name: str, rights: Sequence[Right]) -> _Answer:
    found = describe_topics(client, [name])[name]
    answer = _Answer()
    if not isinstance(found, KafkaError):
        held = list_shown(found)
        if held is None:
            return _Answer(unknown=dict.fromkeys(rights, UNTOLD))
        answer.add(right for right in rights if AclOperation[right.operation.name] not in held)
    elif is_denial(found):
        answer.add(rights)
    else:
        answer.unknown |= dict.fromkeys(rights, _NOTHING_YET)
    return answer


def _ask_topics(
    client: AdminClient, prefix: str, rights: Sequence[Right], names: Collection[str]
) -> _Answer:
    """Ask for rights on all topics, or on those with a prefix.

    A topic of this prefix that nobody has stands for all: brokers hide that it does not exist.
    """
    probe = f"{prefix}{NO_TOPIC}"
    wanted = {name for name in names if name.startswith(prefix)}
    seen = read_metadata(client).topics
    if not wanted & seen.keys():
        wanted.update(sorted(n for n in seen if n.startswith(prefix) and n[:2] != "__")[:1])
    found = describe_topics(client, {*wanted, probe})
    answer = _Answer()
    on_existing = [right for right in rights if right.operation != Operation.CREATE]
    hidden, shown, why = set(), False, _NOTHING_YET
    for name, topic in found.items():
        if isinstance(topic, KafkaError):
            hidden |= {name} if is_denial(topic) else set()
            continue
        held = list_shown(topic)
        if held is None:
            why = UNTOLD
            continue
        shown = True
        lacking = [each for each in on_existing if AclOperation[each.operation.name] not in held]
        answer.add(lacking, name)
    # Whatever includes Describe would show a topic, and so it is with configs.
    answer.add((r for r in rights if _includes(r, Operation.DESCRIBE) and hidden), *hidden)
    blind = find_hidden_configs(client, {probe, *hidden})
    answer.add((r for r in rights if _includes(r, Operation.DESCRIBE_CONFIGS) and blind), *blind)
    absent = {name for name, topic in found.items() if isinstance(topic, KafkaError)} - hidden
    if uncreatable := find_uncreatable(client, {probe, *absent}):
        answer.add((r for r in rights if r.operation == Operation.CREATE), *uncreatable)
    plain = (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)  # the probe has answered for these
    answer.unknown |= {
        right: why
        for right in on_existing
        if not shown and right not in answer.lacking and right.operation not in plain
    }
    for on in answer.lacking.values():
        if probe in on:
            on.clear()  # it lacks on all of them, so no name is needed
    return answer


def _includes(right: Right, operation: Operation) -> bool:
    return operation in (right.operation, BRINGS.get(right.operation))
