"""How many leaders a broker takes over if another one, or a rack, is lost. From the rows alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reconciler.model.cluster import Assignment, Broker


class Takeovers(NamedTuple):
    """By who is lost, a broker or a rack: how many leaders each broker takes over."""

    by_broker: Mapping[int, Counter[int]]
    by_rack: Mapping[str, Counter[int]]

    @property
    def most(self) -> tuple[int, int]:
        """The most that one broker takes over: if a broker is lost, and if a rack is lost."""
        return _most(self.by_broker.values()), _most(self.by_rack.values())

    @property
    def squares(self) -> tuple[int, int]:
        return _squares(self.by_broker.values()), _squares(self.by_rack.values())


def count_takeovers(brokers: Iterable[Broker], assignments: Iterable[Assignment]) -> Takeovers:
    """Count, for brokers that are all alive. The loss of the only rack leaves nobody to lead."""
    rack = {broker.id: broker.rack for broker in brokers}
    by_broker: dict[int, Counter[int]] = defaultdict(Counter)
    by_rack: dict[str, Counter[int]] = defaultdict(Counter)
    for assignment in assignments:
        for leader, *followers in assignment:
            if followers:
                by_broker[leader][followers[0]] += 1
            home = rack[leader]
            outside = [b for b in followers if rack[b] != home]
            if home is not None and outside:
                by_rack[home][outside[0]] += 1
    return Takeovers(by_broker, by_rack)


def _most(counts: Iterable[Counter[int]]) -> int:
    return max((max(each.values()) for each in counts if each), default=0)


def _squares(counts: Iterable[Counter[int]]) -> int:
    return sum(times * times for each in counts for times in each.values())
