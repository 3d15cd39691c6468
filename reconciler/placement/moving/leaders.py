"""Choose the preferred leaders of many rows from their replicas, exactly: three levels of one flow.

A row hands one unit, its leader, to a place: a topic on a broker. Places hand theirs to their
broker, and brokers to the sink. First the squares of the places are as small as they can be, then
those of the brokers, then the fewest leaders change. A level leaves its dual prices behind: all
choices that are as good use only arcs whose ends have one price. So the next level has fewer arcs,
and bounds, instead of the squares of the levels before it.

Proof: docs/explanation/placement-moves.md, "Replicas that move".
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from heapq import heapify, heappush, heapreplace
from typing import NamedTuple

Arc = tuple[int, int]


class LeaderRow(NamedTuple):
    """A row of a topic: the brokers that may lead it, and the one that leads it now."""

    topic: int
    able: tuple[int, ...]
    leader: int


class Step(NamedTuple):
    """A unit goes from one node to another; it is the leader of a row, or of none (-1)."""

    gives: int
    takes: int
    row: int


def choose_leaders(
    rows: Sequence[LeaderRow],
    topics: Sequence[Sequence[int]],
    cluster: Sequence[int],
    scales: Sequence[int],
    ties: Sequence[Sequence[int]],
) -> list[int]:
    """Return the broker that leads each row.

    `topics` holds the leaders that each topic has on each broker without these rows, and `cluster`
    those of all topics. `scales` says what a squared load costs on a broker, and `ties` orders
    brokers at the start, by topic.
    """
    network = _Network(rows, topics, cluster)
    network.start(rows, scales, ties)
    network.level(range(network.places), [1] * network.places)
    network.open(range(network.places))
    brokers = range(network.places, network.sink)
    network.level(brokers, scales)
    network.open(brokers)
    network.keep()
    return [network.up[place] - network.places for place in network.chosen]


class _Network:
    """Places, then brokers, then the sink, as nodes, and the units on their arcs.

    `flow` is what a node hands up. It is between `low` and `high` if its arc is open.
    """

    def __init__(
        self,
        rows: Sequence[LeaderRow],
        topics: Sequence[Sequence[int]],
        cluster: Sequence[int],
    ) -> None:
        numbers: dict[tuple[int, int], int] = {}
        self.choices = [
            [numbers.setdefault((row.topic, b), len(numbers)) for b in row.able] for row in rows
        ]
        self.places = len(numbers)
        self.sink = self.places + len(cluster)
        self.up = [self.places + b for _, b in numbers] + [self.sink] * len(cluster)
        self.chosen = [-1] * len(rows)
        self._kept = [numbers.get((row.topic, row.leader), -1) for row in rows]
        self._led: list[dict[int, None]] = [{} for _ in range(self.sink + 1)]
        self._fixed = [topics[t][b] for t, b in numbers] + [*cluster, 0]
        for v, broker in enumerate(self.up[: self.places]):
            self._fixed[broker] -= self._fixed[v]
        self.flow = [0] * (self.sink + 1)
        self._low, self._high = [0] * (self.sink + 1), [0] * (self.sink + 1)
        self._open = bytearray(self.sink + 1)
        self._below: list[list[int]] = [[] for _ in range(self.sink + 1)]
        for v, above in enumerate(self.up):
            self._below[above].append(v)

    def start(
        self, rows: Sequence[LeaderRow], scales: Sequence[int], ties: Sequence[Sequence[int]]
    ) -> None:
        """Let rows keep their leaders; the others get the one that costs least as of now."""
        flow, up = self.flow, self.up
        flow[:] = self._fixed
        for v in range(self.places):
            flow[up[v]] += flow[v]
        free = []
        for row, place in enumerate(self._kept):
            if place in self.choices[row]:
                self._start_row(row, place)
            else:
                free.append(row)
        for row in free:
            by_broker = ties[rows[row].topic]

            def cost(v: int, by_broker: Sequence[int] = by_broker) -> tuple[int, int, int]:
                b = up[v] - self.places
                return flow[v], (2 * flow[up[v]] + 1) * scales[b], by_broker[b]

            self._start_row(row, min(self.choices[row], key=cost))

    def _start_row(self, row: int, place: int) -> None:
        self._lead(row, place)
        self.flow[place] += 1
        self.flow[self.up[place]] += 1

    def _lead(self, row: int, place: int) -> None:
        if self.chosen[row] >= 0:
            del self._led[self.chosen[row]][row]
        self.chosen[row] = place
        self._led[place][row] = None

    def _list_arcs(self, v: int, seen: Container[int]) -> Iterator[Arc]:
        """Yield where a unit of a node can go, and the row that it is the leader of, or -1.

        What is `seen` when its turn comes is left out: nearly all, so this is where searches spend
        their time. The node itself is seen.
        """
        if self._open[v] and self.flow[v] < self._high[v] and self.up[v] not in seen:
            yield self.up[v], -1
        choices = self.choices
        for row in self._led[v]:
            for w in choices[row]:
                if w not in seen:
                    yield w, row
        for u in self._below[v]:
            if u not in seen and self._open[u] and self.flow[u] > self._low[u]:
                yield u, -1

    def _push(self, path: Sequence[Step]) -> None:
        for gives, takes, row in path:
            if row >= 0:
                self._lead(row, takes)
            elif gives < takes:
                self.flow[gives] += 1
            else:
                self.flow[takes] -= 1

    def level(self, nodes: range, scales: Sequence[int]) -> None:
        """Minimise the squares of some nodes. The largest gains first: they need the fewest units.

        The nodes above them are out of reach, because their arcs are not open yet.
        """
        self._scales = dict(zip(nodes, scales, strict=True))
        if not nodes:
            return
        for v in nodes:
            below = sum(self.flow[u] for u in self._below[v])
            self.flow[v] = self._fixed[v] + len(self._led[v]) + below
        gap = max(map(self._last, nodes)) - min(map(self._next, nodes))
        while gap > 0:
            if not self._hand_on(nodes, gap):
                gap = min(gap - 1, max(gap // 4, 1))

    def _next(self, v: int) -> int:
        return self._scales[v] * (2 * self.flow[v] + 1)

    def _last(self, v: int) -> int:
        return self._scales[v] * (2 * self.flow[v] - 1)

    def _hand_on(self, nodes: range, gap: int) -> bool:
        """Hand on units that cost less elsewhere, by `gap` at least. Return whether any did.

        What was searched in vain for a dearer unit has nothing for a cheaper one. If no node has a
        unit as cheap as that, only the other givers are looked for: no path needs to be searched.
        """
        seen: set[int] = set()
        found = False
        least = min(map(self._next, nodes)) + gap
        givers = [v for v in nodes if self._last(v) >= least]
        others = set(givers)
        cheapest = [(self._next(v), v) for v in nodes if self._may_take(v)]
        heapify(cheapest)
        for source in sorted(givers, key=lambda v: (-self._last(v), v)):
            others.discard(source)
            while source not in seen and (most := self._last(source) - gap) >= least - gap:
                while cheapest and cheapest[0][0] < (cost := self._next(cheapest[0][1])):
                    heapreplace(cheapest, (cost, cheapest[0][1]))
                if not cheapest or cheapest[0][0] > most:
                    self._reach(source, seen, others)
                    break

                def takes(v: int, most: int = most) -> bool:
                    return v in nodes and self._next(v) <= most

                if not (path := _find_path(self._list_arcs, source, takes, seen)):
                    break
                self._push(path)
                self.flow[source] -= 1
                heappush(cheapest, (self._next(source), source))
                self.flow[path[-1].takes] += 1
                found = True
        return found

    def _may_take(self, v: int) -> bool:
        """Return whether a unit can ever get to a node; none gets to a drained broker."""
        below = self._below[v]
        return v < self.places or any(self._open[u] and self._low[u] < self._high[u] for u in below)

    def _reach(self, source: int, seen: set[int], wanted: set[int]) -> None:
        """Add what units of a node can reach to `seen`, until nothing that is wanted is left."""
        seen.add(source)
        reached = [source]
        for v in reached:
            if not wanted:
                return
            for w, _ in self._list_arcs(v, seen):
                seen.add(w)
                reached.append(w)
                wanted.discard(w)

    def open(self, nodes: range) -> None:
        """Open the arcs of nodes that are level. Only what is as good stays possible."""
        prices = self._find_prices(nodes)
        for row, place in enumerate(self.chosen):
            self.choices[row] = [w for w in self.choices[row] if prices[w] == prices[place]]
        for v in range(nodes.start):
            if prices[v] != prices[self.up[v]]:
                self._open[v] = False
        for v in nodes:
            self._open[v] = True
            self._low[v] = self.flow[v] - (self._last(v) == prices[v])
            self._high[v] = self.flow[v] + (self._next(v) == prices[v])

    def _find_prices(self, nodes: range) -> list[int | None]:
        """Return the least that a unit of each node costs, wherever it can be handed."""
        able: list[list[int]] = [[] for _ in range(self.sink + 1)]
        for row, choices in enumerate(self.choices):
            for w in choices:
                able[w].append(row)
        prices: list[int | None] = [None] * (self.sink + 1)
        for target in sorted(nodes, key=lambda v: (self._next(v), v)):
            price, waiting = self._next(target), [target]
            while waiting:
                v = waiting.pop()
                if prices[v] is not None:
                    continue
                prices[v] = price
                waiting += [self.chosen[row] for row in able[v]]
                waiting += [
                    u for u in self._below[v] if self._open[u] and self.flow[u] < self._high[u]
                ]
                if self._open[v] and self.flow[v] > self._low[v]:
                    waiting.append(self.up[v])
        return prices

    def keep(self) -> None:
        """Change the fewest leaders: begin with none, and repair the bounds along cheapest paths.

        No arc costs less than 0 at the start, and a cheapest path leaves it so (primal-dual).
        """
        for row, place in enumerate(self._kept):
            if place in self.choices[row]:
                self._lead(row, place)
        excess = self._find_excess()
        prices = [0] * len(excess)

        def price(v: int, w: int, row: int) -> int:
            changes = (self._kept[row] == v) - (self._kept[row] == w) if row >= 0 else 0
            return changes + prices[v] - prices[w]

        def list_free(v: int, seen: Container[int]) -> Iterator[Arc]:
            return ((w, row) for w, row in self._list_arcs(v, seen) if not price(v, w, row))

        while sources := [v for v, units in enumerate(excess) if units > 0]:
            distances, nearest = self._find_distances(sources, excess, price)
            for v, distance in distances.items():
                prices[v] -= nearest - distance
            seen: set[int] = set()
            for source in sources:
                while excess[source] > 0 and source not in seen:
                    if path := _find_path(list_free, source, lambda v: excess[v] < 0, seen):
                        self._push(path)
                        excess[source] -= 1
                        excess[path[-1].takes] += 1

    def _find_excess(self) -> list[int]:
        """Return how many units too many each node has, its bounds kept; below 0, too few."""
        units = [n + len(led) for n, led in zip(self._fixed, self._led, strict=True)]
        total = sum(self.flow[v] for v in range(self.places, self.sink))
        excess = []
        for v, above in enumerate(self.up):
            low, high = (
                (self._low[v], self._high[v]) if self._open[v] else (self.flow[v], self.flow[v])
            )
            self.flow[v] = min(max(units[v], low), high)
            excess.append(units[v] - self.flow[v])
            units[above] += self.flow[v]
        return [*excess, units[self.sink] - total]

    def _find_distances(
        self, sources: list[int], excess: Sequence[int], price: Callable[[int, int, int], int]
    ) -> tuple[dict[int, int], int]:
        """Return what is as near as the nearest node with too few units, and how near that is."""
        distances: dict[int, int] = {}
        waiting = {0: [*sources]}
        while waiting:
            near = min(waiting)
            layer = waiting.pop(near)
            for v in layer:
                if v in distances:
                    continue
                distances[v] = near
                for w, row in self._list_arcs(v, distances):
                    far = price(v, w, row)
                    (waiting.setdefault(near + far, []) if far else layer).append(w)
            if any(excess[v] < 0 for v in layer):
                return distances, near
        raise AssertionError("the bounds of the levels leave no leaders")


def _find_path(
    list_arcs: Callable[[int, Container[int]], Iterator[Arc]],
    source: int,
    is_target: Callable[[int], bool],
    seen: set[int],
) -> list[Step] | None:
    """Find a path from a node to a target. What is left in `seen` was searched in vain."""
    path: list[Step] = []
    seen.add(source)
    v, waiting = source, [list_arcs(source, seen)]
    while waiting:
        arc = next(waiting[-1], None)
        if arc is None:
            waiting.pop()
            if path:
                v = path.pop().gives
            continue
        w, row = arc
        seen.add(w)
        path.append(Step(v, w, row))
        if is_target(w):
            seen.difference_update((source, *(step.takes for step in path)))
            return path
        v = w
        waiting.append(list_arcs(w, seen))
    return None
