"""The rights of the two accounts: the one table that the check, the printed forms and a test use.

docs/reference/permissions.md says what each right is for, and a test compares its commands with
this table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

GROUP = "reconciler-apply"
"""The lock of apply: whoever holds it may write."""
MOVES_GROUP = "reconciler-moves"
"""The lock of moves: a run of moves holds it for hours, and the lock of apply only while it writes.
"""
HISTORY_GROUP = "reconciler-history"
"""What a reader of the audit topic calls its group. It joins none."""
CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of the kind cluster."""
ALL = "*"
_AUDIT_TOPIC = "audit_topic"


class Account(StrEnum):
    """An account of reconciler: one that reads, for plans, and one that writes, for applies."""

    PLANNER = "planner"
    APPLIER = "applier"


class Task(StrEnum):
    """What an account needs rights for."""

    PLAN = "plan"
    APPLY = "apply"
    AUDIT = "audit"
    DELETE = "delete"
    ELECT = "elect"
    MOVES = "moves"


class ResourceKind(StrEnum):
    """A kind of resource that ACLs protect."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"


class Operation(StrEnum):
    """An operation of an ACL, as kafka-acls spells it."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DELETE = "Delete"
    ALTER = "Alter"
    DESCRIBE = "Describe"
    ALTER_CONFIGS = "AlterConfigs"
    DESCRIBE_CONFIGS = "DescribeConfigs"


BRINGS: Mapping[Operation, Operation] = MappingProxyType(
    {
        Operation.READ: Operation.DESCRIBE,
        Operation.WRITE: Operation.DESCRIBE,
        Operation.DELETE: Operation.DESCRIBE,
        Operation.ALTER: Operation.DESCRIBE,
        Operation.ALTER_CONFIGS: Operation.DESCRIBE_CONFIGS,
    }
)
"""For brokers, these operations include another one."""


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """An operation that an ACL allows on a resource; `prefixed`: on all whose names begin so."""

    kind: ResourceKind
    name: str
    prefixed: bool
    operation: Operation


@dataclass(frozen=True, slots=True)
class CheckedRights:
    """Rights that an account lacks, with topics that show it, and why others are not known.

    No topics are named if the right is missing on the entire resource.
    """

    lacking: Mapping[Right, tuple[str, ...]]
    unknown: Mapping[Right, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class _Need:
    task: Task
    account: Account
    kind: ResourceKind
    name: str
    operations: tuple[Operation, ...]


_TOPICS, _CLUSTER = (ResourceKind.TOPIC, ALL), (ResourceKind.CLUSTER, CLUSTER_NAME)
_AUDIT = (ResourceKind.TOPIC, _AUDIT_TOPIC)
_LOCK, _MOVES_LOCK = (ResourceKind.GROUP, GROUP), (ResourceKind.GROUP, MOVES_GROUP)
_GROUPS = (ResourceKind.GROUP, ALL)
_O, _PLANNER, _APPLIER = Operation, Account.PLANNER, Account.APPLIER

_NEEDS = (
    _Need(Task.PLAN, _PLANNER, *_TOPICS, (_O.DESCRIBE, _O.DESCRIBE_CONFIGS)),
    _Need(Task.PLAN, _PLANNER, *_CLUSTER, (_O.DESCRIBE,)),
    _Need(Task.APPLY, _APPLIER, *_TOPICS, (_O.CREATE, _O.ALTER, _O.ALTER_CONFIGS)),
    _Need(Task.APPLY, _APPLIER, *_CLUSTER, (_O.DESCRIBE,)),
    _Need(Task.APPLY, _APPLIER, *_LOCK, (_O.READ,)),
    _Need(Task.AUDIT, _PLANNER, *_AUDIT, (_O.READ,)),
    _Need(Task.AUDIT, _APPLIER, *_AUDIT, (_O.WRITE,)),
    _Need(Task.ELECT, _APPLIER, *_CLUSTER, (_O.ALTER,)),
    _Need(Task.ELECT, _APPLIER, *_TOPICS, (_O.DESCRIBE,)),
    _Need(Task.ELECT, _APPLIER, *_LOCK, (_O.READ,)),
    _Need(Task.DELETE, _PLANNER, *_GROUPS, (_O.DESCRIBE,)),
    _Need(Task.DELETE, _APPLIER, *_GROUPS, (_O.DESCRIBE,)),
    _Need(Task.DELETE, _APPLIER, *_TOPICS, (_O.DELETE, _O.DESCRIBE)),
    _Need(Task.DELETE, _APPLIER, *_CLUSTER, (_O.DESCRIBE,)),
    _Need(Task.MOVES, _PLANNER, *_CLUSTER, (_O.DESCRIBE, _O.DESCRIBE_CONFIGS)),
    _Need(Task.MOVES, _PLANNER, *_TOPICS, (_O.DESCRIBE, _O.DESCRIBE_CONFIGS)),
    _Need(Task.MOVES, _APPLIER, *_CLUSTER, (_O.ALTER, _O.ALTER_CONFIGS)),
    _Need(Task.MOVES, _APPLIER, *_TOPICS, (_O.DESCRIBE, _O.ALTER_CONFIGS)),
    _Need(Task.MOVES, _APPLIER, *_LOCK, (_O.READ,)),
    _Need(Task.MOVES, _APPLIER, *_MOVES_LOCK, (_O.READ,)),
)


def list_rights(
    account: Account,
    tasks: Collection[Task],
    *,
    audit_topic: str | None = None,
    prefixes: Collection[str] = (),
) -> tuple[Right, ...]:
    """List the smallest rights of an account for some tasks, without those that others bring.

    In: the prefixes of the topics of the estate, if the account is to have rights on these only. A
    run of moves needs all topics. Without an audit topic, its rights are left out.
    """
    return reduce_rights(_list_needed(account, tasks, audit_topic, prefixes))


def reduce_rights(rights: Iterable[Right]) -> tuple[Right, ...]:
    """Leave out what other rights on the same resource bring. Returns: sorted, each once."""
    needed = set(rights)
    brought = {
        replace(right, operation=BRINGS[right.operation])
        for right in needed
        if right.operation in BRINGS
    }
    return tuple(sorted(needed - brought))


def _list_needed(
    account: Account, tasks: Collection[Task], audit_topic: str | None, prefixes: Collection[str]
) -> Iterator[Right]:
    names: tuple[str, ...]
    for need in _NEEDS:
        names, prefixed = (need.name,), False
        if need.account != account or need.task not in tasks:
            continue
        if need.name == _AUDIT_TOPIC:
            if audit_topic is None:
                continue
            names = (audit_topic,)
        elif prefixes and (need.kind, need.name) == _TOPICS:
            names, prefixed = tuple(prefixes), True
        for name in names:
            yield from (Right(need.kind, name, prefixed, each) for each in need.operations)


def list_operations(task: Task, kind: ResourceKind) -> tuple[Operation, ...]:
    """List the operations that the account of apply needs for a task, with those they bring."""
    own = [
        operation
        for need in _NEEDS
        if (need.task, need.account, need.kind) == (task, Account.APPLIER, kind)
        for operation in need.operations
    ]
    return tuple(dict.fromkeys([*own, *_list_brought(own)]))


def _list_brought(operations: Iterable[Operation]) -> Iterator[Operation]:
    return (BRINGS[each] for each in operations if each in BRINGS)
