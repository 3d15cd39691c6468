"""Level units over the cluster and lower the price of all rows, topics staying level.

The nodes are the brokers, the arcs are what the topics offer, and each broker has an arc to the
sink. At the start the topics are as cheap as they can be, so no cycle costs less than 0. A unit is
handed along a cheapest path, so none does afterwards: the price is the least for these loads. What
other loads with the same squares allow is found as a cycle of negative price through the sink, and
cancelled until there is none, which is the optimum (Klein 1967).

Proof: docs/explanation/placement-moves.md, "Replicas that move".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations
from operator import or_

from reconciler.placement.moving.graph import (
    find_cheapest,
    find_negative_cycle,
    find_prices,
    find_reach,
    group_brokers,
)
from reconciler.placement.moving.levelling import Load
from reconciler.placement.moving.offers import Offers, Step


class Cluster:
    """The brokers of the cluster, with the paths that topics offer between them."""

    def __init__(self, offers: Sequence[Offers], load: Load) -> None:
        self._offers, self._load = offers, load
        self._everything = (1 << len(load.next)) - 1
        self._turn = 0
        self._arcs: dict[int, list[int]] = {}
        self._paths: list[dict[int, dict[int, int]]] = [{} for _ in offers]
        self._unlisted = set(range(len(offers)))
        """The topics that have changed since their paths were listed."""

    def _list_arcs(self) -> Mapping[int, Sequence[int]]:
        """Return what the topics offer: what may take a unit of each broker, by price."""
        for number in sorted(self._unlisted):
            self._list_paths(number)
        self._unlisted.clear()
        return self._arcs

    def _list_paths(self, number: int) -> None:
        paths = self._paths[number] = self._offers[number].list_paths()
        for b, by_price in paths.items():
            for price, mask in by_price.items():
                if price not in self._arcs:
                    self._arcs[price] = [0] * len(self._load.next)
                self._arcs[price][b] |= mask

    def level(self) -> None:
        """Minimise the squares of the cluster, each time along a cheapest path."""
        while path := self._find_gain():
            if steps := self._find_steps(path):
                self._push(steps, pays=False)

    def _find_gain(self) -> list[tuple[int, int, int]] | None:
        """Find a path between two brokers such that a unit costs less on the second one."""
        costs = sorted(group_brokers(self._load.next).items())
        for last, sources in sorted(group_brokers(self._load.last).items(), reverse=True):
            if last <= costs[0][0]:
                return None
            found = find_prices(self._list_arcs(), sources, self._everything)
            for cost, targets in costs:
                if cost >= last:
                    break
                if path := find_cheapest(self._arcs, sources, targets, found):
                    return path
        return None

    def find_full(self) -> int:
        """Return the brokers above their most, and those that could only take their units to be so.

        They are a mask; after `level`, none of them can hand a unit to any other broker.
        """
        found = find_prices(self._list_arcs(), self._load.find_excess(), self._everything)
        return reduce(or_, found.values())

    def cheapen(self) -> None:
        """Cancel all cycles of negative price that change no squares."""
        if not any(each.may_gain() for each in self._offers):
            return
        load = self._load
        ties = [0] * len(load.next)
        for each in self._offers:
            for b, ends in each.list_ends().items():
                ties[b] |= ends
        ascending = sorted(group_brokers(load.next).items())
        known: dict[int, int] = {}
        potentials = [
            next(p for p, mask in ascending if mask & (find_reach(ties, b, known) | 1 << b))
            for b in range(len(load.next))
        ]
        by_potential = group_brokers(potentials)
        groups = [by_potential[potential] for potential in potentials]

        def find_cycle() -> list[tuple[int, int, int]] | None:
            full = sum(
                1 << b for b, potential in enumerate(potentials) if load.last[b] == potential
            )
            low = sum(1 << b for b, potential in enumerate(potentials) if load.next[b] == potential)
            return find_negative_cycle(self._list_arcs(), groups, full, low)

        while cycle := find_cycle():
            if steps := self._find_steps(cycle):
                self._push(steps, pays=True)

    def _find_steps(self, arcs: Sequence[tuple[int, int, int]]) -> list[Step] | None:
        """Find the topics of all arcs; an arc may have gone."""
        steps = [self._find_step(*arc) for arc in arcs]
        found = [step for step in steps if step]
        return found if len(found) == len(steps) else None

    def _find_step(self, gives: int, takes: int, price: int) -> Step | None:
        """Find a topic that offers a path at a price, in turn; drop the arc if none does."""
        count = len(self._offers)
        for step in range(count):
            number = (self._turn + step) % count
            if self._paths[number].get(gives, {}).get(price, 0) >> takes & 1:
                offers = self._offers[number]
                found = Step(offers, gives, takes, price)
                if offers.find_path(found):
                    self._turn = (number + 1) % count
                    return found
                self._list_paths(number)
        self._arcs[price][gives] = 0
        for paths in self._paths:
            self._arcs[price][gives] |= paths.get(gives, {}).get(price, 0)
        return None

    def _push(self, steps: list[Step], *, pays: bool) -> None:
        """Hand units along a path or a cycle, or a part of it that its topics allow at once."""
        while (part := _split(steps, pays=pays)) is not None:
            steps = part
        for step in steps:
            if not (path := step.offers.find_path(step)):
                raise AssertionError("a topic does not offer two paths at once that do not cross")
            step.offers.push(path, self._load)
        self._unlisted |= {step.offers.topic.number for step in steps}


def _split(steps: list[Step], *, pays: bool) -> list[Step] | None:
    """Return a part of a path or of a cycle that pays, if two paths of one topic may cross.

    Where paths cross, their ends can be exchanged, and the new paths together cost no more. What is
    left of a path between two brokers leads from the one to the other.
    """
    for i, j in combinations(range(len(steps)), 2):
        first, second = steps[i], steps[j]
        if first.offers is not second.offers:
            continue
        here = first.offers.price(first.gives, second.takes)
        there = first.offers.price(second.gives, first.takes)
        if here is None or there is None or here + there > first.price + second.price:
            continue
        outer = [*steps[:i], first._replace(takes=second.takes, price=here), *steps[j + 1 :]]
        inner = [second._replace(takes=first.takes, price=there), *steps[i + 1 : j]]
        return inner if pays and sum(step.price for step in outer) >= 0 else outer
    return None
