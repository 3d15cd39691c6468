"""What the page shows of the live state: problems, brokers that are down, topics, and trends."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_TOPICS = 2_000
"""In the inventory."""

PROBLEMS: Mapping[str, str] = MappingProxyType(
    {
        "offline": "offline",
        "unwritable": "below min.insync.replicas",
        "under_replicated": "under-replicated",
    }
)
"""The name of each fault of a partition on the page, worst first."""


@dataclass(frozen=True, slots=True)
class HealthTotals:
    """The current problems of the fleet, and the number of clusters that have each.

    Units: partitions; brokers; log directories; clusters. Only clusters that were read are counted.
    """

    offline: int = 0
    unwritable: int = 0
    under_replicated: int = 0
    brokers_down: int = 0
    directories_offline: int = 0
    clusters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProblemLine:
    """One problem of a topic. `affected` of its `partitions` have it.

    `lagging` are the brokers whose replicas are not in sync.
    """

    problem: str
    cluster: str
    topic: str
    owner: str | None
    affected: int
    partitions: int
    lagging: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicLine:
    """One topic of the inventory.

    `differs` says how it differs from its spec. `changed` is the collection that first saw its last
    change, None without one. Replication is the least and the most over its partitions.
    """

    cluster: str
    topic: str
    owner: str | None
    partitions: int
    replication: tuple[int, int]
    size_bytes: int | None
    overrides: tuple[tuple[str, str], ...] = ()
    differs: str = ""
    changed: str | None = None
    event: str | None = None


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The fleet at one collection, over the clusters that it read. Units: as their names say.

    Faults are None for a history of an earlier release; bytes are None if no broker reported them.
    """

    collection: str
    clusters: int
    topics: int
    partitions: int
    size_bytes: int | None
    offline: int | None
    unwritable: int | None
    under_replicated: int | None
    brokers_down: int | None
