"""Level units over brokers: first within each topic, then over the cluster.

Both levels are sums of squares. The units of a topic form an M-convex set, and so do those of the
cluster, so a choice is optimal if no single unit can be handed from one broker to another at a gain
(Murota 2003). It is handed along a shortest path of exchanges, which all rows allow together.

Proof: docs/placement.md, "Replicas that move".
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from reconciler.placement.moving.topic import find_reach, find_shortest, list_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.placement.moving.topic import Exchange, Topic


class Load:
    """The units of the cluster on each broker, and what the next one and the last one cost."""

    def __init__(self, units: Sequence[int], scales: Sequence[int]) -> None:
        self._scales = scales
        self.next = [(2 * n + 1) * scale for n, scale in zip(units, scales, strict=True)]
        self.last = [(2 * n - 1) * scale for n, scale in zip(units, scales, strict=True)]

    def add(self, broker: int, units: int) -> None:
        """Add units to a broker."""
        step = 2 * units * self._scales[broker]
        self.next[broker] += step
        self.last[broker] += step


def level_topic(topic: Topic, load: Load) -> None:
    """Minimise the squares of one topic."""
    while (pair := _find_gain(topic, load)) is not None:
        if path := topic.find_path(*pair):
            _push(topic, load, path)


def _push(topic: Topic, load: Load, path: Sequence[Exchange]) -> None:
    for exchange in path:
        topic.push(exchange)
    load.add(path[0].gives, -1)
    load.add(path[-1].takes, 1)


def _find_gain(topic: Topic, load: Load) -> tuple[int, int] | None:
    """Find a broker that has two units more than one that can take a unit of it."""
    units = topic.units
    fullest = sorted(
        (b for b, takes in enumerate(topic.takes) if takes and topic.holders[b]),
        key=lambda b: (-units[b], -load.last[b], b),
    )
    if not fullest:
        return None
    everything = 0
    for takes in topic.takes:
        everything |= takes
    least = min(units[c] for c in list_bits(everything))
    for b in fullest:
        if units[b] < least + 2:
            return None
        c = min(list_bits(topic.reach(b)), key=lambda c: (units[c], load.next[c], c))
        if units[c] <= units[b] - 2:
            return b, c
    return None


def level_cluster(topics: Sequence[Topic], load: Load) -> None:
    """Minimise the squares of the cluster among those that are optimal for each topic."""
    _Cluster(topics, load).level()


class _Cluster:
    """The exchanges that change no topic's squares, and what they mean to the cluster."""

    def __init__(self, topics: Sequence[Topic], load: Load) -> None:
        self._topics, self._load = topics, load
        brokers = range(len(load.next))
        self._arcs = [0 for _ in brokers]
        self._ties: list[dict[int, int]] = [{} for _ in topics]
        self._turn = 0
        for topic in topics:
            self._tie(topic)

    def _tie(self, topic: Topic) -> None:
        """Find what may take a unit of each broker of a topic that has just one unit less."""
        levels: dict[int, int] = {}
        for c, n in enumerate(topic.units):
            levels[n] = levels.get(n, 0) | 1 << c
        ties = self._ties[topic.number] = {}
        for b, takes in enumerate(topic.takes):
            if takes and topic.holders[b] and (lower := levels.get(topic.units[b] - 1)):
                tied = topic.reach(b) & lower
                if tied:
                    ties[b] = tied
                    self._arcs[b] |= tied

    def level(self) -> None:
        while (pair := self._find_gain()) is not None:
            brokers = find_shortest(self._arcs, *pair)
            steps = []
            for gives, takes in pairwise(brokers or ()):
                if (topic := self._find_topic(gives, takes)) is None:
                    break
                steps.append((topic, gives, takes))
            else:
                for topic, gives, takes in steps:
                    if not (path := topic.find_path(gives, takes)):
                        raise AssertionError("a shortest path used a topic twice that allows once")
                    _push(topic, self._load, path)
                for topic in {topic.number: topic for topic, _, _ in steps}.values():
                    self._tie(topic)

    def _find_gain(self) -> tuple[int, int] | None:
        """Find two brokers such that a unit costs less on the second one."""
        load = self._load
        if max(load.last) <= min(load.next):
            return None
        fullest = sorted(range(len(load.last)), key=lambda b: (-load.last[b], b))
        known: dict[int, int] = {}
        for b in fullest:
            reached = find_reach(self._arcs, b, known)
            if reached:
                c = min(list_bits(reached), key=lambda c: (load.next[c], c))
                if load.next[c] < load.last[b]:
                    return b, c
        return None

    def _find_topic(self, gives: int, takes: int) -> Topic | None:
        """Find a topic that ties two brokers, in turn; correct the arcs if there is none."""
        count = len(self._topics)
        for step in range(count):
            topic = self._topics[(self._turn + step) % count]
            if self._ties[topic.number].get(gives, 0) >> takes & 1:
                if topic.find_path(gives, takes):
                    self._turn = (topic.number + 1) % count
                    return topic
                self._tie(topic)
        self._arcs[gives] &= ~(1 << takes)
        return None
