"""The input and output of placement. Input: eligible brokers, their load, and wishes for new
partitions. Output: the new rows, and the result and lower bound of every level of the objective.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType

from reconciler.model.cluster import Assignment, Broker
from reconciler.model.plan import LevelResult

_UNIT = 2**20


@dataclass(frozen=True, slots=True)
class Wish:
    """New partitions of one topic: `count` of them, `replication` replicas each.

    `existing` holds the rows that stay as they are; the new ones are appended to them. `weight`
    says how heavily one replica weighs on its broker, next to those of other wishes (megabytes,
    or kilobytes per second), and `leader_weight` how heavily one preferred leader does among the
    leaders. Topics stay even by count; weights matter to the cluster's levels.
    """

    topic: str
    existing: Assignment
    count: int
    replication: int
    rack_aware: bool = True
    weight: int = 1
    leader_weight: int = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """Brokers that may take something new, the replicas on them now, and the wishes.

    `leaders` and `replicas` say what every broker id holds over all topics of the cluster,
    preferred leaders and replicas, wished or not: counts, or sums of weights if the wishes
    carry some. `capacity` says how much a broker can bear next to others (1 if it is not
    named); loads are then levelled in proportion to it, as far as the topics' own evenness lets
    them be. With equal weights, of leaders and of replicas, the promises of the optimal strategy
    hold for any capacities whose ratios are exact in 20 binary digits; with unequal weights the
    joint levels are best found, with their bounds (dividing weights evenly contains the partition
    problem).
    `others` holds the rows of all topics that are not wished: next leaders are counted over the
    whole cluster, each row once, whatever it weighs. `also_alive` holds the living brokers that
    take nothing new. All other brokers of existing rows are dead, and lead nothing.
    """

    brokers: tuple[Broker, ...]
    leaders: Mapping[int, int]
    replicas: Mapping[int, int]
    wishes: tuple[Wish, ...]
    capacity: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    others: Sequence[Assignment] = ()
    also_alive: tuple[Broker, ...] = ()

    def racks(self, wish: Wish) -> dict[str, tuple[int, ...]]:
        """Return broker ids by rack, racks by name and ids ascending; one rack if none matters.

        Brokers without a rack form the rack "", as they do for KRaft's own placer.
        """
        racks: dict[str, list[int]] = defaultdict(list)
        for broker in sorted(self.brokers):
            racks[(broker.rack or "") if wish.rack_aware else ""].append(broker.id)
        return {rack: tuple(racks[rack]) for rack in sorted(racks)}

    def scales(self) -> tuple[int, ...]:
        """Return what a squared load costs on each broker, by id: the inverse of its capacity."""
        return scale_brokers(sorted(broker.id for broker in self.brokers), self.capacity)


@dataclass(frozen=True, slots=True)
class Placed:
    """The new rows by topic, and the levels in order; none if the strategy does not optimise."""

    rows: Mapping[str, Assignment]
    levels: tuple[LevelResult, ...] = ()


def scale_brokers(ids: Iterable[int], capacity: Mapping[int, int]) -> tuple[int, ...]:
    """Return what a squared load costs on each broker: the inverse of its capacity, or 1 if even.

    `capacity` is that of some brokers by id, 1 if it is not named.
    """
    capacities = [capacity.get(b, 1) for b in ids]
    if len(set(capacities)) <= 1:
        return (1,) * len(capacities)
    most = max(capacities)
    return tuple(max(1, round(_UNIT * most / capacity)) for capacity in capacities)


def count_load(assignments: Iterable[Assignment]) -> tuple[Counter[int], Counter[int]]:
    """Count preferred leaders and replicas by broker id."""
    rows = list(chain.from_iterable(assignments))
    return Counter([row[0] for row in rows if row]), Counter(chain.from_iterable(rows))
