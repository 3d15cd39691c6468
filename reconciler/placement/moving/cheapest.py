"""Lower the price of all rows without a change of the squares of any topic or of the cluster.

A cycle of negative price is cancelled until there is none, which is the optimum (Klein 1967).
Cycles within one topic come first. Then a topic is only what it offers the cluster: from broker b
to broker c, the least price of a path through its rows. So a cycle of the cluster is looked for on
the brokers and the sink alone. Only arcs whose two ends have the same potential change no square.

Proof: docs/placement.md, "Replicas that move".
"""

from __future__ import annotations

from collections import deque
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from reconciler.placement.moving.topic import (
    Exchange,
    find_reach,
    group_brokers,
    list_bits,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.placement.moving.levelling import Load
    from reconciler.placement.moving.topic import Topic


def cheapen(topics: Sequence[Topic], load: Load) -> None:
    """Cancel all cycles of negative price."""
    offers = [_Offers(topic) for topic in topics]
    for each in offers:
        each.cheapen()
    cluster = _Cluster(offers, load)
    while cycle := cluster.find_negative_cycle():
        cluster.push(cycle)


class _Offers:
    """What a topic offers the cluster: paths that change none of its squares, with their prices."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        # The least that a unit on each broker costs, wherever it can be handed.
        self._potentials = [0] * len(topic.units)
        ascending = sorted(group_brokers(topic.units).items())
        for b in range(len(topic.units)):
            reached = (topic.reach(b) if topic.takes[b] else 0) | 1 << b
            self._potentials[b] = next(n for n, mask in ascending if mask & reached) + 1
        self._groups = group_brokers(self._potentials)

    def list_ends(self) -> dict[int, int]:
        """Return which brokers may take a unit of each broker without a change of squares."""
        units, potentials = self.topic.units, self._potentials
        ends = dict.fromkeys(self._groups, 0)
        for b, potential in enumerate(potentials):
            if units[b] + 1 == potential:
                ends[potential] |= 1 << b
        return {
            b: self.topic.reach(b) & ends[potential]
            for b, potential in enumerate(potentials)
            if units[b] == potential and self.topic.holders[b] and self.topic.takes[b]
        }

    def list_paths(self, most: int) -> dict[int, dict[int, int]]:
        """Return what may take a unit of each broker, by the price of the path, up to `most`."""
        return {
            b: {p: mask & ends for p, mask in self._label(b, most, None).items() if mask & ends}
            for b, ends in self.list_ends().items()
        }

    def price(self, gives: int, takes: int) -> int | None:
        """Return the price of the cheapest path, if there is one."""
        found = self._label(gives, len(self._potentials), None)
        return next((price for price, mask in found.items() if mask >> takes & 1), None)

    def _label(self, source: int, most: int, via: dict[int, int] | None) -> dict[int, int]:
        """Return the brokers behind one, by the price of the cheapest path, up to `most`."""
        topic = self.topic
        gains, swaps, takes = topic.gains, topic.swaps, topic.takes
        group = self._groups[self._potentials[source]]
        within = dict.fromkeys(range(most + 1), 1 << source)  # at this price or below it
        waiting = {0: 1 << source}
        while waiting:
            level = min(waiting)
            layer = waiting.pop(level) & ~within.get(level - 1, 0)
            for b in list_bits(layer):
                for reached, mask in (
                    (level - 1, gains.get(b, 0)),
                    (level, swaps.get(b, 0)),
                    (level + 1, takes[b] if level < most else 0),
                ):
                    new = mask & group & ~within.get(reached, 0)
                    if new:
                        for price in range(reached, most + 1):
                            within[price] = within.get(price, 0) | new
                        waiting[reached] = waiting.get(reached, 0) | new
                        if via is not None:
                            via |= dict.fromkeys(list_bits(new), b)
        return {price: mask & ~within.get(price - 1, 0) for price, mask in within.items()}

    def find_path(self, step: _Step, most: int) -> list[Exchange] | None:
        """Find a path for a step, with no part that costs more than `most`; correct the masks."""
        _, source, target, limit = step
        while True:
            via: dict[int, int] = {}
            found = self._label(source, most, via)
            if not any(mask >> target & 1 for price, mask in found.items() if price <= limit):
                return None
            path = []
            takes = target
            while takes != source:
                gives = via[takes]
                path.append((gives, takes))
                takes = gives
            exchanges = [self.topic.find_row(*pair) for pair in reversed(path)]
            if None not in exchanges and sum(e.price for e in exchanges if e) <= limit:
                return self._shorten([e for e in exchanges if e])
            for gives, _ in path:
                self.topic.correct(gives)

    def _shorten(self, path: list[Exchange]) -> list[Exchange]:
        """Leave out what lies between two exchanges that the racks of a row forbid together."""
        while (clash := self._find_clash(path)) is not None:
            i, j = clash
            path = [*path[:i], *self._join(path[i], path[j]), *path[j + 1 :]]
        return path

    def _find_clash(self, exchanges: Sequence[Exchange]) -> tuple[int, int] | None:
        """Find two exchanges between racks of one row whose racks do not allow all of its ones."""
        topic = self.topic
        for number, (gives, takes) in _by_row(exchanges).items():
            chosen, racks = topic.chosen[number] & ~gives | takes, topic.rows[number].racks
            if all(low <= (chosen & mask).bit_count() <= high for mask, low, high in racks):
                continue
            crossing = [
                i
                for i, e in enumerate(exchanges)
                if e.row == number and not any(m >> e.gives & m >> e.takes & 1 for m, _, _ in racks)
            ]
            return crossing[0], crossing[1]
        return None

    def _join(self, gives: Exchange, takes: Exchange) -> list[Exchange]:
        """Return the exchange of what one gives up and what another one of the row takes."""
        if gives.gives == takes.takes:
            return []
        first = self.topic.rows[gives.row].classes[0]
        price = (not first >> takes.takes & 1) - (not first >> gives.gives & 1)
        return [Exchange(gives.topic, gives.row, gives.gives, takes.takes, price)]

    def cheapen(self) -> None:
        """Cancel the cycles of negative price within the topic."""
        while cycle := self._find_negative_cycle():
            # Two exchanges between racks pass the row's own node, so they are two cycles: the first
            # gives up what the second one does and the other way round. One of them still pays.
            while (clash := self._find_clash(cycle)) is not None:
                i, j = clash
                first, second = cycle[i], cycle[j]
                inner = [*cycle[i + 1 : j], *self._join(second, first)]
                outer = [*cycle[j + 1 :], *cycle[:i], *self._join(first, second)]
                cycle = inner if sum(e.price for e in inner) < 0 else outer
            self.topic.change(_by_row(cycle))

    def _find_negative_cycle(self) -> list[Exchange] | None:
        topic = self.topic
        labels: dict[int, int] = {}
        via: dict[int, int] = {}
        waiting = deque(sorted(topic.gains))
        while waiting:
            b = waiting.popleft()
            label, group = labels.get(b, 0), self._groups[self._potentials[b]]
            gains, swaps = topic.gains.get(b, 0) & group, topic.swaps.get(b, 0) & group
            arcs = ((-1, gains), (0, swaps), (1, topic.takes[b] & group if label < -1 else 0))
            for price, mask in arcs:
                for c in list_bits(mask):
                    if label + price >= labels.get(c, 0):
                        continue
                    labels[c] = label + price
                    walked = b
                    while walked != c and walked in via:
                        walked = via[walked]
                    via[c] = b
                    if walked != c:
                        waiting.append(c)
                    elif cycle := self._list_cycle(via, c):
                        return cycle
                    else:
                        return self._find_negative_cycle()
        return None

    def _list_cycle(self, via: dict[int, int], start: int) -> list[Exchange] | None:
        pairs = [(via[start], start)]
        while pairs[-1][0] != start:
            pairs.append((via[pairs[-1][0]], pairs[-1][0]))
        exchanges = [self.topic.find_row(*pair) for pair in reversed(pairs)]
        found = [e for e in exchanges if e]
        if len(found) == len(pairs) and sum(e.price for e in found) < 0:
            return found
        for gives, _ in pairs:
            self.topic.correct(gives)
        return None


class _Step(NamedTuple):
    """One topic hands a unit from one broker to another at a price."""

    offers: _Offers
    gives: int
    takes: int
    price: int


class _Cluster:
    """The brokers of the cluster and the sink, with the paths that topics offer between them."""

    def __init__(self, offers: Sequence[_Offers], load: Load) -> None:
        self._offers, self._load = offers, load
        self._sink = len(load.next)
        self._turn = 0
        ties = [0] * self._sink
        for each in offers:
            for b, ends in each.list_ends().items():
                ties[b] |= ends
        ascending = sorted(group_brokers(load.next).items())
        known: dict[int, int] = {}
        self._potentials = [
            next(p for p, mask in ascending if mask & (find_reach(ties, b, known) | 1 << b))
            for b in range(self._sink)
        ]
        groups = group_brokers(self._potentials)
        self._groups = [groups[potential] for potential in self._potentials]
        self._list_all_paths(1)

    def _list_all_paths(self, most: int) -> None:
        """List what all topics offer up to a price."""
        self._most = most
        self._arcs: dict[int, list[int]] = {}
        self._paths: dict[int, dict[int, dict[int, int]]] = {}
        for number in range(len(self._offers)):
            self._list_paths(number)

    def _list_paths(self, number: int) -> None:
        paths = self._paths[number] = self._offers[number].list_paths(self._most)
        for b, by_price in paths.items():
            for price, mask in by_price.items():
                if price not in self._arcs:
                    self._arcs[price] = [0] * self._sink
                self._arcs[price][b] |= mask

    def find_negative_cycle(self) -> list[_Step] | None:
        """Find a cycle of negative price."""
        while True:
            cycle = self._search()
            if not cycle:
                return None
            steps = [
                self._find_step(gives, takes, price)
                for gives, takes, price in cycle
                if self._sink not in {gives, takes}
            ]
            found = [step for step in steps if step]
            if len(found) == len(steps):
                return found

    def _search(self) -> list[tuple[int, int, int]] | None:
        """Find the arcs of a cycle of negative price; an arc may have gone."""
        labels: dict[int, int] = {}
        via: dict[int, tuple[int, int]] = {}
        below = [masks for price, masks in self._arcs.items() if price < 0]
        waiting = deque(b for b in range(self._sink) if any(masks[b] for masks in below))
        while waiting:
            source = waiting.popleft()
            label = labels.get(source, 0)
            if label < -self._most - 1:
                self._list_all_paths(2 * self._most)
                return self._search()
            for target, price in self._list_arcs(source, label):
                if label + price >= labels.get(target, 0):
                    continue
                labels[target] = label + price
                walked = source
                while walked != target and walked in via:
                    walked = via[walked][0]
                via[target] = source, price
                if walked != target:
                    waiting.append(target)
                    continue
                cycle = [(source, target, price)]
                while cycle[-1][0] != target:
                    node = cycle[-1][0]
                    cycle.append((via[node][0], node, via[node][1]))
                return cycle[::-1]
        return None

    def _list_arcs(self, source: int, label: int) -> list[tuple[int, int]]:
        """List the arcs from a node with a label that may lead below 0."""
        load = self._load
        if source == self._sink:
            return [(b, 0) for b in range(source) if load.last[b] == self._potentials[b]]
        arcs = [
            (c, price)
            for price, masks in self._arcs.items()
            if label + price < 0
            for c in list_bits(masks[source] & self._groups[source])
        ]
        if load.next[source] == self._potentials[source]:
            arcs.append((self._sink, 0))
        return arcs

    def _find_step(self, gives: int, takes: int, price: int) -> _Step | None:
        """Find a topic that offers a path at a price, in turn; drop the arc if none does."""
        count = len(self._offers)
        for step in range(count):
            number = (self._turn + step) % count
            if self._paths[number].get(gives, {}).get(price, 0) >> takes & 1:
                offers = self._offers[number]
                found = _Step(offers, gives, takes, price)
                if offers.find_path(found, self._most):
                    self._turn = (number + 1) % count
                    return found
                self._list_paths(number)
        self._arcs[price][gives] = 0
        for paths in self._paths.values():
            self._arcs[price][gives] |= paths.get(gives, {}).get(price, 0)
        return None

    def push(self, cycle: list[_Step]) -> None:
        """Hand units along a cycle, or along a part of it that its topics allow at once."""
        while (part := _split(cycle)) is not None:
            cycle = part
        for step in cycle:
            if not (path := step.offers.find_path(step, self._sink)):
                raise AssertionError("a topic does not offer two paths at once that do not cross")
            step.offers.topic.change(_by_row(path))
            self._load.add(step.gives, -1)
            self._load.add(step.takes, 1)
        for number in {step.offers.topic.number for step in cycle}:
            self._list_paths(number)


def _split(cycle: list[_Step]) -> list[_Step] | None:
    """Return a shorter cycle that pays, if two paths of one topic may cross.

    Where paths cross, their ends can be exchanged, and the new paths together cost no more.
    """
    for i, j in combinations(range(len(cycle)), 2):
        first, second = cycle[i], cycle[j]
        if first.offers is not second.offers:
            continue
        here = first.offers.price(first.gives, second.takes)
        there = first.offers.price(second.gives, first.takes)
        if here is None or there is None or here + there > first.price + second.price:
            continue
        outer = [*cycle[:i], first._replace(takes=second.takes, price=here), *cycle[j + 1 :]]
        inner = [second._replace(takes=first.takes, price=there), *cycle[i + 1 : j]]
        return outer if sum(step.price for step in outer) < 0 else inner
    return None


def _by_row(exchanges: Sequence[Exchange]) -> dict[int, tuple[int, int]]:
    """Return what each row gives up and takes, as masks."""
    rows: dict[int, tuple[int, int]] = {}
    for exchange in exchanges:
        gives, takes = rows.get(exchange.row, (0, 0))
        rows[exchange.row] = gives | 1 << exchange.gives, takes | 1 << exchange.takes
    return rows
