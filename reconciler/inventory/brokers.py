"""Brokers as rows: how much each of them holds, and of what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from reconciler.inventory.inventory import Inventory
from reconciler.model.cluster import ClusterState, LogDirectory


class BrokerStatus(StrEnum):
    """Whether a broker serves. A `cordoned` one does, and takes no new replicas."""

    ALIVE = "alive"
    CORDONED = "cordoned"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker. Counts are of all topics, internal ones too; what was not read is None.

    `preferred` counts the partitions that it should lead, `leaders` those that it leads.
    `behind` counts its replicas that are not in sync. `size_bytes` sums its replicas, each at the
    size of the largest replica of its partition. `directory_bytes` sums the replicas in each of
    several log directories, by path.
    """

    broker: int
    rack: str | None
    status: BrokerStatus
    preferred: int
    leaders: int | None
    replicas: int
    behind: int | None
    size_bytes: int | None = None
    directories: tuple[LogDirectory, ...] = ()
    directory_bytes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def used(self) -> tuple[int, int] | None:
        """The bytes in use and in total on its log directories; None if they are unknown."""
        sums = [(d.total_bytes, d.usable_bytes) for d in self.directories if d.online]
        known = [(t, u) for t, u in sums if t is not None and u is not None]
        if not known or len(known) < len(sums):
            return None
        total = sum(total for total, _ in known)
        return total - sum(usable for _, usable in known), total

    @property
    def offline_directories(self) -> int:
        """The number of its log directories that have failed."""
        return sum(not directory.online for directory in self.directories)

    @property
    def is_unhealthy(self) -> bool:
        """Whether it does not serve, lacks a log directory, or is behind with a replica."""
        return self.status is BrokerStatus.DEAD or bool(self.offline_directories or self.behind)


def list_brokers(inventory: Inventory) -> Iterator[BrokerRow]:
    """Yield the row of each broker, by id."""
    state = inventory.state
    leaders, preferred, replicas, behind, sizes = (Counter[int]() for _ in range(5))
    knows_leaders = knows_sync = True
    knows_sizes = bool(state.directories)
    for topic in state.topics.values():
        knows_leaders &= bool(topic.leaders)
        knows_sync &= bool(topic.in_sync)
        leaders.update(topic.leaders)
        for number, row in enumerate(topic.assignment):
            preferred[row[0]] += 1
            replicas.update(row)
            if topic.in_sync and number not in topic.reassigning:
                behind.update(set(row).difference(topic.in_sync[number]))
            size = topic.size_bytes[number] if topic.size_bytes else 0
            for each in row:
                sizes[each] += max(size, 0)
    for broker in state.brokers:
        status = BrokerStatus.CORDONED if broker.cordoned else BrokerStatus.ALIVE
        if not broker.alive:
            status = BrokerStatus.DEAD
        yield BrokerRow(
            broker=broker.id,
            rack=broker.rack,
            status=status,
            preferred=preferred[broker.id],
            leaders=leaders[broker.id] if knows_leaders else None,
            replicas=replicas[broker.id],
            behind=behind[broker.id] if knows_sync else None,
            size_bytes=sizes[broker.id] if knows_sizes else None,
            directories=state.directories.get(broker.id, ()),
            directory_bytes=_add_up_directories(state, broker.id),
        )


def _add_up_directories(state: ClusterState, broker: int) -> Mapping[str, int]:
    stored = state.stored.get(broker, {})
    sums = {each.path: 0 for each in state.directories.get(broker, ()) if stored and each.online}
    for replica in stored.values():
        sums[replica.path] += replica.size_bytes
    return sums
