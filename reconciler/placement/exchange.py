"""Levels 3 and 4 over several topics: units are handed along shortest paths of brokers.

For each topic, the leader counts that are optimal on its own levels form an M-convex set, and so do
the replica counts once leaders are fixed. Sums of such sets are M-convex again. On them, a
separable convex price is minimal if no broker can hand one unit to another with gain (Murota,
"Discrete Convex Analysis", SIAM 2003). In the sum of topics, such an exchange is a path: one topic
moves a unit from broker u to v, the next one from v to w. A shortest path has no shortcuts, so all
of its steps are feasible together, even several steps of one topic.

Proof: docs/explanation/placement-proofs.md, "Several topics".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from reconciler.placement.counts import ClusterLoad, Counts, Demand, topic_price
from reconciler.placement.flow import surround_leaders


class Gate(NamedTuple):
    """Within one topic, each giver may hand one unit to each taker, at no cost to the topic."""

    givers: frozenset[int]
    takers: Sequence[int]


class Step(NamedTuple):
    """One unit of one topic goes from `giver` to `taker`."""

    topic: int
    giver: int
    taker: int


def level_leaders(demands: Sequence[Demand], placed: list[Counts], load: ClusterLoad) -> None:
    """Make the cluster's leaders as even as the topics' own levels allow.

    Exact if weights are equal. `placed` and `load` (all topics included) are brought up to
    date; replicas follow the leaders at no cost to their topic.
    """

    def give(t: int, steps: Sequence[Step]) -> None:
        demand, old = demands[t], placed[t]
        load.add(demand, old, -1)
        leaders = _hand_over(old.leaders, steps)
        replicas = old.replicas
        if any(n > m for n, m in zip(leaders, replicas, strict=True)):
            replicas = surround_leaders(demand, load, leaders)
        new = Counts(leaders, replicas)
        if topic_price(demand, new) > topic_price(demand, old):
            raise AssertionError(f"{demand.wish.topic}: a free exchange of leaders cost something")
        placed[t] = new
        load.add(demand, new)

    weights = [demand.leader_weight for demand in demands]
    _level_classes(weights, lambda t: leader_gates(demands[t], placed[t]), give, load, "leaders")


def level_replicas(demands: Sequence[Demand], placed: list[Counts], load: ClusterLoad) -> None:
    """Make the cluster's replicas as even as they can be around the given leaders.

    Exact for these leaders if weights are equal.
    """

    def give(t: int, steps: Sequence[Step]) -> None:
        demand, old = demands[t], placed[t]
        load.add(demand, old, -1)
        placed[t] = Counts(old.leaders, _hand_over(old.replicas, steps))
        if topic_price(demand, placed[t]) > topic_price(demand, old):
            raise AssertionError(f"{demand.wish.topic}: a free exchange of replicas cost something")
        load.add(demand, placed[t])

    weights = [demand.weight for demand in demands]
    _level_classes(weights, lambda t: replica_gates(demands[t], placed[t]), give, load, "replicas")


def leader_gates(demand: Demand, counts: Counts) -> list[Gate]:
    """Return who may hand a lead to whom at no cost to the topic's leaders and replicas.

    A taker without a follower to promote needs one more replica, which another broker must be able
    to give up at the same height: `spare` holds the height of such brokers by rack.
    """
    leaders, replicas = counts.leaders, counts.replicas
    heights = [a + b for a, b in zip(demand.leaders, leaders, strict=True)]
    top = max((h for h, n in zip(heights, leaders, strict=True) if n), default=0)
    givers = [b for b, h in enumerate(heights) if h == top and leaders[b]]
    takers = [b for b, h in enumerate(heights) if h == top - 1 and leaders[b] < demand.count]
    heights_of = _Heights(demand, replicas)
    spare = [b for b in range(len(leaders)) if replicas[b] > leaders[b]]
    highest = heights_of.highest(spare)
    gates, always = [], []
    for v in takers:
        if replicas[v] > leaders[v] or heights_of.relieved(v, highest):
            always.append(v)
        elif friends := frozenset(u for u in givers if heights_of.may_hand(u, v)):
            gates.append(Gate(friends, (v,)))
    if givers and always:
        gates.append(Gate(frozenset(givers), always))
    return gates


def replica_gates(demand: Demand, counts: Counts) -> list[Gate]:
    """Return who may hand a follower to whom at no cost to the topic's replicas.

    Between racks first, then inside each rack, where the bounds of the rack do not matter.
    """
    leaders, replicas, rack_of = counts.leaders, counts.replicas, demand.rule.rack_of
    heights_of = _Heights(demand, replicas)
    givers, takers = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for b, height in enumerate(heights_of.heights):
        if replicas[b] > leaders[b]:
            givers[height].append(b)
        if replicas[b] < demand.count:
            takers[height + 1].append(b)
    gates = []
    for height in sorted(givers.keys() & takers.keys()):
        abroad = [v for v in takers[height] if heights_of.may_grow(v)]
        exporters = frozenset(u for u in givers[height] if heights_of.may_shrink(u))
        if exporters and abroad:
            gates.append(Gate(exporters, abroad))
        by_rack = defaultdict[int, list[int]](list)
        for v in takers[height]:
            by_rack[rack_of[v]].append(v)
        gates += [
            Gate(home, by_rack[j])
            for j in sorted(by_rack)
            if (home := frozenset(u for u in givers[height] if rack_of[u] == j))
        ]
    return gates


class _Heights:
    """The height of each broker's replicas of a topic, and the racks that may grow or shrink."""

    def __init__(self, demand: Demand, replicas: Sequence[int]) -> None:
        self.heights = [a + b for a, b in zip(demand.replicas, replicas, strict=True)]
        self._rack_of = demand.rule.rack_of
        held = [sum(replicas[b] for b in rack) for rack in demand.rule.racks]
        self._shrinks = [h > low for h, (low, _) in zip(held, demand.rack_bounds, strict=True)]
        self._grows = [h < high for h, (_, high) in zip(held, demand.rack_bounds, strict=True)]

    def may_shrink(self, b: int) -> bool:
        return self._shrinks[self._rack_of[b]]

    def may_grow(self, b: int) -> bool:
        return self._grows[self._rack_of[b]]

    def may_hand(self, u: int, v: int) -> bool:
        """Return whether a replica may go from u to v: same price, and the racks permit it."""
        home = self._rack_of[u] == self._rack_of[v]
        fits = home or (self.may_shrink(u) and self.may_grow(v))
        return fits and self.heights[u] == self.heights[v] + 1

    def highest(self, brokers: Sequence[int]) -> tuple[dict[int, int], int]:
        """Return the highest of some brokers in each rack, and in all racks that may shrink."""
        by_rack: dict[int, int] = {}
        for b in brokers:
            j = self._rack_of[b]
            by_rack[j] = max(by_rack.get(j, -1), self.heights[b])
        return by_rack, max((h for j, h in by_rack.items() if self._shrinks[j]), default=-1)

    def relieved(self, v: int, highest: tuple[dict[int, int], int]) -> bool:
        """Return whether one of those brokers may hand a replica to v."""
        by_rack, abroad = highest
        wanted = self.heights[v] + 1
        return by_rack.get(self._rack_of[v]) == wanted or (self.may_grow(v) and abroad == wanted)


def _hand_over(counts: Sequence[int], steps: Sequence[Step]) -> list[int]:
    counts = list(counts)
    for step in steps:
        counts[step.giver] -= 1
        counts[step.taker] += 1
    return counts


def _level_classes(
    weights: Sequence[int],
    gates_of: Callable[[int], list[Gate]],
    give: Callable[[int, Sequence[Step]], None],
    load: ClusterLoad,
    side: str,
) -> None:
    """Level the topics of each weight among themselves, the heaviest first.

    A path moves one unit, so its steps must have one weight.
    """
    by_weight = defaultdict[int, list[int]](list)
    for t, weight in enumerate(weights):
        by_weight[weight].append(t)
    for weight, topics in sorted(by_weight.items(), reverse=True):
        network = _Network(topics, gates_of, len(load.scales))
        while path := network.find_path(getattr(load, side), load.scales, weight):
            by_topic = defaultdict[int, list[Step]](list)
            for step in path:
                by_topic[step.topic].append(step)
            # All steps of a topic at once: one of them alone may not be possible.
            for t, steps in by_topic.items():
                give(t, steps)
                network.refresh(t)


class _Network:
    """The gates of all topics, by giver."""

    def __init__(
        self, topics: Sequence[int], gates_of: Callable[[int], list[Gate]], brokers: int
    ) -> None:
        self._gates_of = gates_of
        self._gates: dict[int, list[Gate]] = {}
        self._by_giver: list[dict[tuple[int, int], Gate]] = [{} for _ in range(brokers)]
        for t in topics:
            self.refresh(t)

    def refresh(self, t: int) -> None:
        """Read the gates of a topic again."""
        for number, gate in enumerate(self._gates.get(t, ())):
            for giver in gate.givers:
                del self._by_giver[giver][t, number]
        self._gates[t] = self._gates_of(t)
        for number, gate in enumerate(self._gates[t]):
            for giver in sorted(gate.givers):
                self._by_giver[giver][t, number] = gate

    def find_path(
        self, loads: Sequence[int], scales: Sequence[int], weight: int
    ) -> list[Step] | None:
        """Find a shortest path from a broker to one if a unit costs less.

        Who was reached from a dearer broker in vain need not be looked at again: whatever lies
        behind costs more than that broker would save.
        """
        saved = [s * (2 * y - weight) for y, s in zip(loads, scales, strict=True)]
        price = [s * (2 * y + weight) for y, s in zip(loads, scales, strict=True)]
        settled: set[int] = set()
        opened: set[tuple[int, int]] = set()  # all takers of these gates are settled
        for source in sorted(range(len(loads)), key=lambda b: (-saved[b], b)):
            if source in settled or saved[source] <= min(price):
                continue
            via: dict[int, Step] = {}
            settled.add(source)
            line = [source]
            for u in line:
                for step in self._open_gates(u, opened):
                    v = step.taker
                    if v in settled:
                        continue
                    settled.add(v)
                    via[v] = step
                    if price[v] < saved[source]:
                        return _retrace(via, v)
                    line.append(v)
        return None

    def _open_gates(self, u: int, opened: set[tuple[int, int]]) -> Iterator[Step]:
        for key, gate in self._by_giver[u].items():
            if key not in opened:
                opened.add(key)
                for v in gate.takers:
                    yield Step(key[0], u, v)


def _retrace(via: dict[int, Step], end: int) -> list[Step]:
    path = []
    while end in via:
        path.append(via[end])
        end = via[end].giver
    return path[::-1]
