"""What placement is asked: eligible brokers, the load they carry, and wishes for new partitions."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconciler.model import Assignment, Broker


@dataclass(frozen=True, slots=True)
class Wish:
    """New partitions of one topic: `count` of them, `replication` replicas each.

    `existing` holds the rows that stay as they are; the new ones are appended to them.
    """

    topic: str
    existing: Assignment
    count: int
    replication: int
    rack_aware: bool = True


@dataclass(frozen=True, slots=True)
class Problem:
    """Brokers that may take something new, the replicas on them now, and the wishes.

    `leaders` and `replicas` count what every broker id holds over all topics of the cluster,
    preferred leaders and replicas, wished or not. Brokers are in the order of their ids.
    """

    brokers: tuple[Broker, ...]
    leaders: Mapping[int, int]
    replicas: Mapping[int, int]
    wishes: tuple[Wish, ...]

    def racks(self, wish: Wish) -> dict[str, tuple[int, ...]]:
        """Return broker ids by rack, racks by name and ids ascending; one rack if none matters.

        Brokers without a rack form the rack "", as they do for KRaft's own placer.
        """
        racks: dict[str, list[int]] = defaultdict(list)
        for broker in sorted(self.brokers):
            racks[(broker.rack or "") if wish.rack_aware else ""].append(broker.id)
        return {rack: tuple(racks[rack]) for rack in sorted(racks)}


def count_load(assignments: Iterable[Assignment]) -> tuple[Counter[int], Counter[int]]:
    """Count preferred leaders and replicas by broker id."""
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    for assignment in assignments:
        leaders.update(row[0] for row in assignment if row)
        for row in assignment:
            replicas.update(row)
    return leaders, replicas
