"""Strategy `kafka`: what KRaft's controller does when it is left to place replicas itself.

Racks in the order of their names and brokers in the order of their ids, each list entered at a
random place, a step further with every partition; shuffled after as many partitions as there are
brokers. It looks neither at existing replicas nor at other topics: an expansion is placed like a
new topic. Kept to measure against, never to plan with.

Source: org.apache.kafka.metadata.placement.StripedReplicaPlacer of Kafka 3.9 to 4.4, and
java.util.Random. If rack names sort as Java hashes them (single letters do), the same seed
gives the same rows; elsewhere the same distribution.

Measured against ours: docs/explanation/placement.md, "What Kafka does".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from reconciler.model.cluster import Assignment, Broker, Replicas
from reconciler.placement.problem import Problem

_Card = TypeVar("_Card")
_MASK = (1 << 48) - 1
_MULTIPLIER = 0x5DEECE66D


def place_like_kafka(
    problem: Problem, seed: int, fenced: Collection[Broker] = ()
) -> Mapping[str, Assignment]:
    """Place every wish as a controller would whose random numbers have this seed, topics by name.

    Returns the new rows by topic. The brokers of the problem are those that are not `fenced`,
    which a controller takes as followers if their rack has no other broker left in its turn.
    """
    random = _JavaRandom(seed)
    placed = {}
    for wish in sorted(problem.wishes, key=lambda wish: wish.topic):
        racks = _RackList(problem.brokers, fenced, random)
        placed[wish.topic] = tuple(racks.next_row(wish.replication) for _ in range(wish.count))
    return placed


class _JavaRandom:
    """The generator of java.util.Random: 48 bits, linear congruential."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def below(self, bound: int) -> int:
        """Draw from 0 up to `bound`, without it."""
        if bound & (bound - 1) == 0:
            return (bound * self._next_31_bits()) >> 31
        while True:
            bits = self._next_31_bits()
            drawn = bits % bound
            if bits - drawn + bound - 1 < 1 << 31:
                return drawn

    def shuffle(self, cards: list[_Card]) -> None:
        """Shuffle in place, from the end, as Collections.shuffle does."""
        for last in range(len(cards) - 1, 0, -1):
            other = self.below(last + 1)
            cards[last], cards[other] = cards[other], cards[last]

    def _next_31_bits(self) -> int:
        self._state = (self._state * _MULTIPLIER + 0xB) & _MASK
        return self._state >> 17


class _BrokerList:
    """Some brokers of a rack: within an epoch each is dealt once, from a start that moves on."""

    def __init__(self, ids: Iterable[int], random: _JavaRandom) -> None:
        self.ids = sorted(ids)
        self._offset = random.below(len(self.ids)) if self.ids else 0
        self._dealt = 0
        self._epoch = 0

    def next(self, epoch: int) -> int | None:
        """Deal a broker, or None when all were dealt in this epoch."""
        if not self.ids:
            return None
        if self._epoch != epoch:
            self._epoch, self._dealt = epoch, 0
            self._offset = (self._offset + 1) % len(self.ids)
        if self._dealt >= len(self.ids):
            return None
        self._dealt += 1
        return self.ids[(self._dealt - 1 + self._offset) % len(self.ids)]


class _Rack:
    """A rack: its brokers that are not fenced, who alone may lead, and those that are."""

    def __init__(self, active: Iterable[int], fenced: Iterable[int], random: _JavaRandom) -> None:
        self.fenced = _BrokerList(fenced, random)
        self.active = _BrokerList(active, random)

    def next(self, epoch: int) -> int | None:
        """Deal a broker, a fenced one only if no other is left in this epoch."""
        broker = self.active.next(epoch)
        return self.fenced.next(epoch) if broker is None else broker


class _RackList:
    """The racks of a cluster, entered a step further with every partition."""

    def __init__(
        self, active: Collection[Broker], fenced: Collection[Broker], random: _JavaRandom
    ) -> None:
        names = sorted({_name_rack(broker) for broker in (*active, *fenced)})
        self._random = random
        self._by_name = [
            _Rack(_list_ids(active, name), _list_ids(fenced, name), random) for name in names
        ]
        self._racks = list(self._by_name)
        self._active = len(active)
        self._offset = random.below(len(self._racks))
        self._epoch = 0

    def next_row(self, replication: int) -> Replicas:
        """Deal the replicas of one more partition, leader first."""
        if self._epoch == self._active and self._active > 1:
            self._shuffle()
        self._offset %= len(self._racks)
        first, leader = self._deal_leader()
        row = [leader]
        index, to_skip = self._offset, first
        while len(row) < replication:
            if index == to_skip:
                to_skip = -1  # the leader's rack is passed over once, not in later rounds
            elif (broker := self._racks[index].next(self._epoch)) is not None:
                row.append(broker)
            index = (index + 1) % len(self._racks)
        self._epoch += 1
        self._offset += 1
        return tuple(row)

    def _deal_leader(self) -> tuple[int, int]:
        index = self._offset
        while (leader := self._racks[index].active.next(self._epoch)) is None:
            index = (index + 1) % len(self._racks)
        return index, leader

    def _shuffle(self) -> None:
        self._random.shuffle(self._racks)
        for rack in self._by_name:
            self._random.shuffle(rack.fenced.ids)
            self._random.shuffle(rack.active.ids)
        self._epoch = 0


def _name_rack(broker: Broker) -> tuple[bool, str]:
    """Return what racks are sorted by: brokers without one come first."""
    return broker.rack is not None, broker.rack or ""


def _list_ids(brokers: Iterable[Broker], rack: tuple[bool, str]) -> list[int]:
    return [broker.id for broker in brokers if _name_rack(broker) == rack]
