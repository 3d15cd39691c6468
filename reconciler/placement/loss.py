"""The effect of the loss of a broker or of a rack on partitions. Shares no code with placement.

A partition is led by the first living replica of its list that is in sync, as after a preferred
leader election; when that one goes, the next one is its heir.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from reconciler.model.cluster import Assignment, Broker, Replicas, TopicState


@dataclass(frozen=True, slots=True)
class Exposed:
    """The partitions of one topic, and its min.insync.replicas.

    A write with acks=all needs this number of replicas in sync, and never more than there are
    (KAFKA-21110). `in_sync` is empty if unknown, and shorter than `assignment` if later partitions
    are planned only: all replicas count then.
    """

    assignment: Assignment
    min_in_sync: int = 1
    in_sync: Assignment = ()

    def serving(self, living: Collection[int]) -> Iterator[Replicas]:
        """Yield the living in-sync replicas of each partition, in the order of its list."""
        for number, row in enumerate(self.assignment):
            synced = self.in_sync[number] if number < len(self.in_sync) else row
            yield tuple(b for b in row if b in living and b in synced)


@dataclass(frozen=True, slots=True)
class Loss:
    """The effect of losing some brokers at once.

    `heirs` counts the leaders that each survivor takes over. `under_min_in_sync` counts the
    partitions that take writes with acks=all before and not afterwards; `offline` those of them
    that are left without any replica.
    """

    brokers: frozenset[int]
    leaders_moved: int = 0
    heirs: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    under_min_in_sync: int = 0
    offline: int = 0

    @property
    def worst_heir(self) -> int:
        """The most leaders that one survivor takes over."""
        return max(self.heirs.values(), default=0)


def expose(
    topics: Iterable[TopicState], config_defaults: Mapping[str, str], otherwise: int = 1
) -> tuple[Exposed, ...]:
    """Return topics with what each needs in sync: its override, or the default in force."""
    key = "min.insync.replicas"
    default = config_defaults.get(key) or str(otherwise)
    return tuple(
        Exposed(topic.assignment, int(topic.config.get(key) or default), topic.in_sync)
        for topic in topics
    )


def measure_losses(
    topics: Iterable[Exposed], brokers: Collection[Broker], lost: Iterable[Collection[int]]
) -> tuple[Loss, ...]:
    """Measure each of several losses, apart from each other.

    `brokers` are those there are; those that are not alive serve nothing before either.
    Cost: one look at every different row for each broker in it, and for each loss that it is in.
    """
    losses = [_Tally(frozenset(each)) for each in lost]
    touched = defaultdict(list)
    for loss in losses:
        for broker in loss.brokers:
            touched[broker].append(loss)
    for (row, needed), count in _count_rows(topics, brokers).items():
        seen: set[int] = set()
        for broker in row:
            for loss in touched.get(broker, ()):
                if id(loss) not in seen:
                    seen.add(id(loss))
                    loss.take(row, needed, count)
    return tuple(loss.freeze() for loss in losses)


def lose_each_broker(topics: Iterable[Exposed], brokers: Collection[Broker]) -> Mapping[int, Loss]:
    """Measure the loss of every living broker, one at a time."""
    living = sorted(broker.id for broker in brokers if broker.alive)
    return dict(zip(living, measure_losses(topics, brokers, [[b] for b in living]), strict=True))


def lose_each_rack(topics: Iterable[Exposed], brokers: Collection[Broker]) -> Mapping[str, Loss]:
    """Measure the loss of every rack, one at a time; brokers without a rack are in none."""
    racks: dict[str, list[int]] = defaultdict(list)
    for broker in brokers:
        if broker.alive and broker.rack is not None:
            racks[broker.rack].append(broker.id)
    names = sorted(racks)
    losses = measure_losses(topics, brokers, [racks[name] for name in names])
    return dict(zip(names, losses, strict=True))


def count_unwritable(topics: Iterable[Exposed], brokers: Collection[Broker]) -> tuple[int, int]:
    """Count the partitions that take no writes with acks=all, and those without any replica."""
    rows = _count_rows(topics, brokers)
    under = sum(count for (row, needed), count in rows.items() if len(row) < needed)
    return under, sum(count for (row, _), count in rows.items() if not row)


def _count_rows(
    topics: Iterable[Exposed], brokers: Iterable[Broker]
) -> Counter[tuple[Replicas, int]]:
    """Count the different rows of serving replicas, together with what they need."""
    living = {broker.id for broker in brokers if broker.alive}
    rows: Counter[tuple[Replicas, int]] = Counter()
    for topic in topics:
        needed = (min(topic.min_in_sync, len(row)) for row in topic.assignment)
        rows.update(zip(topic.serving(living), needed, strict=True))
    return rows


class _Tally:
    """One loss while it is counted."""

    def __init__(self, brokers: frozenset[int]) -> None:
        self.brokers = brokers
        self.moved = self.under = self.offline = 0
        self.heirs: Counter[int] = Counter()

    def take(self, row: Replicas, needed: int, count: int) -> None:
        left = [broker for broker in row if broker not in self.brokers]
        if row[0] in self.brokers:
            self.moved += count
            if left:
                self.heirs[left[0]] += count
        if len(row) >= needed > len(left):
            self.under += count
        if not left:
            self.offline += count

    def freeze(self) -> Loss:
        heirs = MappingProxyType(dict(sorted(self.heirs.items())))
        return Loss(self.brokers, self.moved, heirs, self.under, self.offline)
