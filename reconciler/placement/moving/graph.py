"""Graphs whose nodes are brokers: the bits of a mask.

Belongs here: what may be reached, along which path of the fewest or the cheapest arcs, and cycles.
What they prove: docs/explanation/placement-moves.md, "Replicas that move".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

Arcs = Mapping[int, Sequence[int]]


def list_bits(mask: int) -> list[int]:
    """Return the brokers of a mask, ascending."""
    found = []
    while mask:
        bit = mask & -mask
        found.append(bit.bit_length() - 1)
        mask ^= bit
    return found


def group_brokers(numbers: Sequence[int]) -> dict[int, int]:
    """Return the brokers of each number as a mask."""
    groups: dict[int, int] = {}
    for b, number in enumerate(numbers):
        groups[number] = groups.get(number, 0) | 1 << b
    return groups


def find_reach(arcs: Sequence[int], broker: int, known: dict[int, int]) -> int:
    """Return the brokers behind a broker. `known` holds those of other brokers, and gets these."""
    if broker not in known:
        reached, new = 0, arcs[broker]
        while new:
            bit = new & -new
            c = bit.bit_length() - 1
            reached |= bit
            if c in known:
                reached |= known[c]
            else:
                new |= arcs[c]
            new &= ~reached
        known[broker] = reached
    return known[broker]


def find_shortest(arcs: Sequence[int], sources: int, targets: int) -> list[int] | None:
    """Find a path of the fewest arcs. `arcs` holds the brokers behind each broker as a mask."""
    seen, layer = sources, list_bits(sources)
    via: dict[int, int] = {}
    while layer:
        following = []
        for b in layer:
            new = arcs[b] & ~seen
            if goal := new & targets:
                path = [list_bits(goal)[0], b]
                while path[-1] in via:
                    path.append(via[path[-1]])
                return path[::-1]
            seen |= new
            for c in list_bits(new):
                via[c] = b
                following.append(c)
        layer = following
    return None


def find_prices(arcs: Arcs, sources: int, within: int) -> dict[int, int]:
    """Return the brokers behind some, by the price of a cheapest path.

    `arcs` holds the brokers behind each broker by price. `within` masks the brokers of all paths.
    Errors: AssertionError if a cycle costs less than 0.
    """
    found = {0: sources}
    waiting = {0: sources}
    least = min((0, *arcs)) * max(map(len, arcs.values()), default=0)
    while waiting:
        level = min(waiting)
        if level < least:  # no path without a cycle costs less
            raise AssertionError("a cycle costs less than 0")
        layer = list_bits(waiting.pop(level) & found[level])
        for price, masks in arcs.items():
            new, reached = 0, level + price
            for b in layer:
                new |= masks[b]
            new &= within
            for known, mask in found.items():
                if known <= reached:
                    new &= ~mask
            if new:
                for known in found:
                    found[known] &= ~new
                found[reached] = found.get(reached, 0) | new
                waiting[reached] = waiting.get(reached, 0) | new
    return found


def find_cheapest(
    arcs: Arcs, sources: int, targets: int, found: Mapping[int, int]
) -> list[tuple[int, int, int]] | None:
    """Find a path of the fewest arcs among the cheapest ones: its arcs with their prices.

    `found` holds the brokers by price, as `find_prices` returns them.
    """
    least = min((price for price, mask in found.items() if mask & targets), default=None)
    if least is None:
        return None
    prices = {b: price for price, mask in found.items() for b in list_bits(mask)}
    tight = [0] * (max(prices) + 1)
    for b, n in prices.items():
        for price, masks in arcs.items():
            tight[b] |= masks[b] & found.get(n + price, 0)
    path = find_shortest(tight, sources & found[0], targets & found[least])
    return [(b, c, prices[c] - prices[b]) for b, c in pairwise(path)] if path else None


def find_negative_cycle(
    arcs: Arcs, groups: Sequence[int], full: int, low: int
) -> list[tuple[int, int, int]] | None:
    """Find a cycle whose price is below 0: its arcs with their prices, without those of the sink.

    Only brokers of one group have arcs between them. The sink is behind the brokers `low`, and the
    brokers `full` are behind the sink; these arcs cost nothing.
    """
    sink = len(groups)
    labels: dict[int, int] = {}
    via: dict[int, tuple[int, int]] = {}
    gains = [masks for price, masks in arcs.items() if price < 0]
    waiting = deque(b for b in range(sink) if any(masks[b] for masks in gains))
    while waiting:
        source = waiting.popleft()
        label = labels.get(source, 0)
        if source == sink:
            behind = [(c, 0) for c in list_bits(full)]
        else:
            behind = [
                (c, price)
                for price, masks in arcs.items()
                if label + price < 0
                for c in list_bits(masks[source] & groups[source])
            ]
            if low >> source & 1:
                behind.append((sink, 0))
        for target, price in behind:
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
            return [arc for arc in reversed(cycle) if sink not in arc[:2]]
    return None
