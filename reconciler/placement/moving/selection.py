"""Choose brokers for many rows at once, exactly: a minimum-cost flow with convex prices.

One unit per chosen broker flows from its row through the rack and the broker of the row into the
broker of the topic, then into the broker of the cluster, then into the sink. Prices of a row's
broker are linear; those of a broker of the topic and of the cluster grow with what it holds, as
squares do. Rows with their racks are one laminar family, topics within the cluster the other, so
the optimum is integer (Ahuja, Magnanti, Orlin, "Network Flows", ch. 14).

The start is greedy. Then cycles of negative price are cancelled until there are none, which is the
optimum (Klein 1967). All rows of a topic share the nodes (topic, broker): an arc between two of
them is the cheapest exchange that any row offers.

Network and proof: docs/placement.md, "Replicas that move".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from reconciler.placement.cycles import find_negative_cycle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Row:
    """One row: `count` brokers are chosen from the keys of `prices`.

    `racks` holds the rack of each of these brokers, `bounds` the fewest and most chosen brokers of
    each rack. `ties` orders brokers of equal price at the start.
    """

    topic: int
    count: int
    prices: Mapping[int, int]
    racks: Mapping[int, int]
    bounds: Mapping[int, tuple[int, int]]
    ties: Mapping[int, int]


@dataclass(slots=True)
class Held:
    """What brokers hold, by topic and in the cluster: units by broker, fixed ones included.

    The price of n units is n * n * `topic_unit` and n * n * `cluster_unit` * `scales[b]`.
    """

    topics: list[Counter[int]]
    cluster: Counter[int]
    scales: Mapping[int, int]
    topic_unit: int
    cluster_unit: int

    def topic_price(self, topic: int, broker: int, more: int = 0) -> int:
        """Return the price of the next unit after `more` others; -1 gives that of the last one."""
        return (2 * (self.topics[topic][broker] + more) + 1) * self.topic_unit

    def cluster_price(self, broker: int, more: int = 0) -> int:
        """Return the price of the next unit after `more` others; -1 gives that of the last one."""
        unit = self.cluster_unit * self.scales[broker]
        return (2 * (self.cluster[broker] + more) + 1) * unit

    def add(self, topic: int, broker: int, units: int) -> None:
        """Add units to a broker."""
        self.topics[topic][broker] += units
        self.cluster[broker] += units


class _Arc(NamedTuple):
    """An arc of the residual network; `row` gives up one broker for another, or is -1."""

    source: int
    target: int
    price: int
    row: int = -1
    gives: int = -1
    takes: int = -1


def choose_brokers(rows: Sequence[Row], held: Held) -> list[frozenset[int]]:
    """Return the brokers of every row at the least total price. Adds them to `held`.

    Cost: a cycle costs O(topics * brokers²) for each arc of its length. Topics are solved one by
    one first, because most cycles stay within one topic and its network is small.
    """
    selection = _Selection(rows, held)
    everything = range(len(held.topics))
    for topics in [*([topic] for topic in everything), everything]:
        while cycle := selection.find_negative_cycle(topics):
            selection.push(cycle)
    return [frozenset(brokers) for brokers in selection.chosen]


class _Selection:
    """A feasible choice, and the exchanges that its rows offer."""

    def __init__(self, rows: Sequence[Row], held: Held) -> None:
        self.rows, self.held = rows, held
        self.chosen = [self._fill(row) for row in rows]
        self._order = sorted({b for row in rows for b in row.prices})
        self._place = {b: i for i, b in enumerate(self._order)}
        self._units = [Counter[int]() for _ in held.topics]
        for row, brokers in zip(rows, self.chosen, strict=True):
            self._units[row.topic].update(brokers)
        # The cheapest exchanges by topic, and by the brokers given up and taken. What is no longer
        # possible is dropped when it comes up.
        self._offers: list[dict[tuple[int, int], list[tuple[int, int]]]] = [{} for _ in held.topics]
        for number in range(len(rows)):
            for key, price in self._exchanges(number):
                self._offers[rows[number].topic].setdefault(key, []).append((price, number))
        for offers in self._offers:
            for heap in offers.values():
                heapify(heap)
        self._arcs = [list(self._list_offers(topic)) for topic in range(len(held.topics))]

    def _fill(self, row: Row) -> set[int]:
        """Choose the cheapest brokers as of now: first what the racks demand, then the rest."""
        chosen: set[int] = set()
        used = Counter[int]()
        prices = {
            b: (p + self.held.topic_price(row.topic, b) + self.held.cluster_price(b), row.ties[b])
            for b, p in row.prices.items()
        }
        ascending = sorted(prices, key=prices.__getitem__)
        for demanded in (True, False):
            for b in ascending:
                rack = row.racks[b]
                if len(chosen) == row.count:
                    break
                if b not in chosen and used[rack] < row.bounds[rack][not demanded]:
                    chosen.add(b)
                    used[rack] += 1
        for b in chosen:
            self.held.add(row.topic, b, 1)
        return chosen

    def _exchanges(self, number: int) -> Iterator[tuple[tuple[int, int], int]]:
        """Yield what a row can give up and take instead, and the difference of its prices."""
        row, chosen = self.rows[number], self.chosen[number]
        used = Counter(row.racks[b] for b in chosen)
        others = [b for b in row.prices if b not in chosen]
        for b in chosen:
            rack = row.racks[b]
            frees = used[rack] > row.bounds[rack][0]
            for c in others:
                other = row.racks[c]
                if other == rack or (frees and used[other] < row.bounds[other][1]):
                    yield (b, c), row.prices[c] - row.prices[b]

    def _is_open(self, number: int, gives: int, takes: int) -> bool:
        row, chosen = self.rows[number], self.chosen[number]
        return (
            gives in chosen
            and takes not in chosen
            and _within(row, chosen - {gives} | {takes}, (row.racks[gives], row.racks[takes]))
        )

    def _list_offers(self, topic: int) -> Iterator[_Arc]:
        for (b, c), heap in self._offers[topic].items():
            while heap and not self._is_open(heap[0][1], b, c):
                heappop(heap)
            if heap:
                price, number = heap[0]
                yield _Arc(self._place[b], self._place[c], price, number, b, c)

    def find_negative_cycle(self, topics: Sequence[int]) -> list[_Arc] | None:
        """Find a cycle of negative price through some topics."""
        arcs = list(self._list_arcs(topics))
        nodes = len(self._order) * (len(topics) + 1) + 1
        return find_negative_cycle(nodes, arcs)

    def _list_arcs(self, topics: Sequence[int]) -> Iterator[_Arc]:
        n, held = len(self._order), self.held
        clusters = n * len(topics)
        sink = clusters + n
        for number, topic in enumerate(topics):
            first, units = number * n, self._units[topic]
            for i, j, *exchange in self._arcs[topic]:
                yield _Arc(first + i, first + j, *exchange)
            for i, b in enumerate(self._order):
                node = first + i
                yield _Arc(node, clusters + i, held.topic_price(topic, b))
                if units[b]:
                    yield _Arc(clusters + i, node, -held.topic_price(topic, b, -1))
        for i, b in enumerate(self._order):
            yield _Arc(clusters + i, sink, held.cluster_price(b))
            if any(self._units[topic][b] for topic in topics):
                yield _Arc(sink, clusters + i, -held.cluster_price(b, -1))

    def push(self, cycle: Sequence[_Arc]) -> None:
        """Exchange along the cycle, or along a part of it that its rows allow at once."""
        while (row := self._overdrawn(cycle)) is not None:
            cycle = self._split(cycle, row)
        exchanges = [arc for arc in cycle if arc.row >= 0]
        for _, _, _, number, gives, takes in exchanges:
            topic = self.rows[number].topic
            for broker, units in ((gives, -1), (takes, 1)):
                self.held.add(topic, broker, units)
                self._units[topic][broker] += units
        for number in {arc.row for arc in exchanges}:
            mine = [arc for arc in exchanges if arc.row == number]
            self.chosen[number] -= {arc.gives for arc in mine}
            self.chosen[number] |= {arc.takes for arc in mine}
            offers = self._offers[self.rows[number].topic]
            for key, price in self._exchanges(number):
                heappush(offers.setdefault(key, []), (price, number))
        for topic in {self.rows[arc.row].topic for arc in exchanges}:
            self._arcs[topic] = list(self._list_offers(topic))

    def _overdrawn(self, cycle: Iterable[_Arc]) -> int | None:
        """Return a row whose racks do not allow all of its exchanges together."""
        gives: dict[int, set[int]] = {}
        takes: dict[int, set[int]] = {}
        for arc in cycle:
            if arc.row >= 0:
                gives.setdefault(arc.row, set()).add(arc.gives)
                takes.setdefault(arc.row, set()).add(arc.takes)
        for number, given in gives.items():
            row = self.rows[number]
            chosen = self.chosen[number] - given | takes[number]
            if not _within(row, chosen, row.bounds):
                return number
        return None

    def _split(self, cycle: Sequence[_Arc], number: int) -> list[_Arc]:
        # Two exchanges between racks pass the row's own node, so they are two cycles: the first
        # gives up what the second one does and the other way round. One of them still pays.
        row = self.rows[number]
        crossing = [
            i
            for i, arc in enumerate(cycle)
            if arc.row == number and row.racks[arc.gives] != row.racks[arc.takes]
        ]
        p, q = crossing[:2]
        first, second = cycle[p], cycle[q]
        inner = [*cycle[p + 1 : q], *self._exchange(number, second, first)]
        outer = [*cycle[q + 1 :], *cycle[:p], *self._exchange(number, first, second)]
        return inner if sum(arc.price for arc in inner) < 0 else outer

    def _exchange(self, number: int, gives: _Arc, takes: _Arc) -> list[_Arc]:
        if gives.gives == takes.takes:
            return []
        prices = self.rows[number].prices
        price = prices[takes.takes] - prices[gives.gives]
        return [_Arc(gives.source, takes.target, price, number, gives.gives, takes.takes)]


def _within(row: Row, chosen: Iterable[int], racks: Iterable[int]) -> bool:
    """Return whether some racks of a row have as many brokers as they must and may have."""
    used = Counter(row.racks[b] for b in chosen)
    return all(row.bounds[rack][0] <= used[rack] <= row.bounds[rack][1] for rack in racks)
