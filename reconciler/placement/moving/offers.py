"""What one topic offers the cluster: paths that change none of its squares, with their prices.

Only arcs whose two ends have the same potential change no square: the least that a unit of a broker
costs the topic, wherever it can be handed. Cycles of negative price are cancelled until there is
none, which is the optimum (Klein 1967). Then the topic is no more than its cheapest paths.

Proof: docs/explanation/placement-moves.md, "Replicas that move".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from reconciler.placement.moving.graph import (
    find_cheapest,
    find_negative_cycle,
    find_prices,
    find_reach,
    group_brokers,
    list_bits,
)
from reconciler.placement.moving.levelling import Load
from reconciler.placement.moving.topic import Exchange, Topic


class Step(NamedTuple):
    """One topic hands a unit from one broker to another at a price."""

    offers: Offers
    gives: int
    takes: int
    price: int


class Offers:
    """The paths of a topic that is level, and their prices."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic

    @cached_property
    def _potentials(self) -> list[int]:
        """The least that a unit of each broker costs: the same for all choices that are level."""
        units = self.topic.units
        ascending = sorted(group_brokers(units).items())
        reached = [
            (self.topic.reach(b) if t else 0) | 1 << b for b, t in enumerate(self.topic.takes)
        ]
        return [next(n for n, mask in ascending if mask & brokers) + 1 for brokers in reached]

    @cached_property
    def _groups(self) -> list[int]:
        """The brokers with the same potential as each broker."""
        groups = group_brokers(self._potentials)
        return [groups[potential] for potential in self._potentials]

    def _find_ends(self) -> tuple[int, int]:
        """Find what may give and what may take a unit without a change of squares, as masks."""
        topic, gives, takes = self.topic, 0, 0
        for b, potential in enumerate(self._potentials):
            if topic.units[b] == potential and topic.holders[b] and topic.takes[b]:
                gives |= 1 << b
            elif topic.units[b] + 1 == potential:
                takes |= 1 << b
        return gives, takes

    def may_gain(self) -> bool:
        """Return whether any exchange has a negative price: if none has, no cycle has."""
        return any(self.topic.gains)

    def list_ends(self) -> dict[int, int]:
        """Return which brokers may take a unit of each broker without a change of squares."""
        gives, takes = self._find_ends()
        ends = {b: self.topic.reach(b) & takes & self._groups[b] for b in list_bits(gives)}
        return {b: mask for b, mask in ends.items() if mask}

    def list_paths(self) -> dict[int, dict[int, int]]:
        """Return what may take a unit of each broker, by the price of the cheapest path."""
        if self.topic.arcs.keys() == {0}:  # then every path is a cheapest one
            arcs = [
                takes & group for takes, group in zip(self.topic.takes, self._groups, strict=True)
            ]
            known: dict[int, int] = {}
            reached = {b: find_reach(arcs, b, known) & ends for b, ends in self.list_ends().items()}
            return {b: {0: mask} for b, mask in reached.items() if mask}
        return {
            b: {p: mask & ends for p, mask in self._find_prices(b).items() if mask & ends}
            for b, ends in self.list_ends().items()
        }

    def _find_prices(self, gives: int) -> dict[int, int]:
        return find_prices(self.topic.arcs, 1 << gives, self._groups[gives])

    def price(self, gives: int, takes: int) -> int | None:
        """Return the price of the cheapest path, if there is one."""
        found = self._find_prices(gives)
        return next((price for price, mask in found.items() if mask >> takes & 1), None)

    def find_path(self, step: Step) -> list[Exchange] | None:
        """Find the exchanges of a step, at its price at most; correct the masks."""
        _, gives, takes, limit = step
        while True:
            found = self._find_prices(gives)
            path = find_cheapest(self.topic.arcs, 1 << gives, 1 << takes, found)
            if path is None or sum(price for *_, price in path) > limit:
                return None
            if exchanges := self._find_rows(path, limit):
                return self._shorten(exchanges)

    def _find_rows(self, arcs: Sequence[tuple[int, int, int]], most: int) -> list[Exchange] | None:
        """Find the exchanges of arcs, at a price in total at most; else correct the masks."""
        exchanges = [self.topic.find_row(gives, takes) for gives, takes, _ in arcs]
        found = [exchange for exchange in exchanges if exchange]
        if len(found) == len(arcs) and sum(exchange.price for exchange in found) <= most:
            return found
        for gives, _, _ in arcs:
            self.topic.correct(gives)
        return None

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

    def cheapen(self, load: Load) -> None:
        """Cancel the cycles of negative price, also those that change the units of brokers."""
        while self.may_gain() and (cycle := self._find_negative_cycle()):
            # Two exchanges between racks pass the row's own node, so they are two cycles: the first
            # gives up what the second one does and the other way round. One of them still pays.
            while (clash := self._find_clash(cycle)) is not None:
                i, j = clash
                first, second = cycle[i], cycle[j]
                inner = [*cycle[i + 1 : j], *self._join(second, first)]
                outer = [*cycle[j + 1 :], *cycle[:i], *self._join(first, second)]
                cycle = inner if sum(e.price for e in inner) < 0 else outer
            self.push(cycle, load)

    def _find_negative_cycle(self) -> list[Exchange] | None:
        topic = self.topic
        while arcs := find_negative_cycle(topic.arcs, self._groups, *self._find_ends()):
            if exchanges := self._find_rows(arcs, -1):
                return exchanges
        return None

    def push(self, exchanges: Sequence[Exchange], load: Load) -> None:
        """Make all exchanges of a path or a cycle."""
        for exchange in exchanges:
            load.add(exchange.gives, -1)
            load.add(exchange.takes, 1)
        self.topic.change(_by_row(exchanges))


def _by_row(exchanges: Sequence[Exchange]) -> dict[int, tuple[int, int]]:
    """Return what each row gives up and takes, as masks."""
    rows: dict[int, tuple[int, int]] = {}
    for exchange in exchanges:
        gives, takes = rows.get(exchange.row, (0, 0))
        rows[exchange.row] = gives | 1 << exchange.gives, takes | 1 << exchange.takes
    return rows
