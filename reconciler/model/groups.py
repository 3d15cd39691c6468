"""Consumer groups as they are read: members, what they read, and committed offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from reconciler.errors import Finding
from reconciler.model.cluster import Place


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group, and the partitions that it reads now or is about to."""

    client: str
    host: str
    reads: frozenset[Place] = frozenset()


@dataclass(frozen=True, slots=True)
class Group:
    """A group. `kind` is classic, consumer, share or streams; `state` is as brokers spell it.

    `protocol` is "consumer" for what reads topics, else that of a tool, such as "connect".
    `unseen` says why members or offsets are missing.
    """

    name: str
    kind: str
    protocol: str
    state: str
    members: tuple[GroupMember, ...] = ()
    committed: Mapping[Place, int] = field(default_factory=lambda: MappingProxyType({}))
    unseen: str = ""


@dataclass(frozen=True, slots=True)
class GroupsReading:
    """The groups of a cluster by name, and the end offsets of what they committed or read.

    A partition whose end could not be read is not in `ends`. `notes` say what could not be seen.
    """

    groups: tuple[Group, ...] = ()
    ends: Mapping[Place, int] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Producers:
    """Who wrote to a topic lately, as far as leaders remember: producers with an id (KIP-360).

    `count` is the number of their ids, `transactional` holds the transactional ids among them.
    `unseen` says why they are unknown. A producer that is not idempotent has no id.
    """

    count: int = 0
    transactional: tuple[str, ...] = ()
    unseen: str = ""
