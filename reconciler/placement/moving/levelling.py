"""Level the units of one topic over brokers: the sum of their squares is as small as it can be.

The units of a topic form an M-convex set, so a choice is optimal if no single unit can be handed
from one broker to another at a gain (Murota 2003). It is handed along a shortest path of exchanges,
which all rows allow together.

Proof: docs/explanation/placement-moves.md, "Replicas that move".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from reconciler.placement.moving.graph import group_brokers, list_bits
from reconciler.placement.moving.topic import Exchange, Topic

FORBIDDEN = 1 << 100
"""What a unit beyond the most of a broker costs: more than any squares."""


class Load:
    """The units of the cluster on each broker, and what the next one and the last one cost.

    `most` bounds the units of some brokers. A unit beyond costs more than all squares together. The
    same is lost with a unit below, once a broker is `filled`: it is to have exactly its most.
    """

    def __init__(
        self, units: Sequence[int], scales: Sequence[int], most: Mapping[int, int] | None = None
    ) -> None:
        self._scales, self._most = scales, most or {}
        self._units = {b: units[b] for b in self._most}
        self._filled = 0
        self.next = [(2 * n + 1) * scale for n, scale in zip(units, scales, strict=True)]
        self.last = [(2 * n - 1) * scale for n, scale in zip(units, scales, strict=True)]
        for b in self._most:
            self._bound(b, 1)

    def add(self, broker: int, units: int) -> None:
        """Add units to a broker."""
        step = 2 * units * self._scales[broker]
        self.next[broker] += step
        self.last[broker] += step
        if broker in self._most:
            self._bound(broker, -1)
            self._units[broker] += units
            self._bound(broker, 1)

    def _bound(self, broker: int, sign: int) -> None:
        """Add to the costs of a broker what its most makes of them; take it away with -1."""
        room = self._most[broker] - self._units[broker]
        below = -FORBIDDEN if self._filled >> broker & 1 else 0
        self.next[broker] += sign * (FORBIDDEN if room <= 0 else below)
        self.last[broker] += sign * (FORBIDDEN if room < 0 else below)

    def find_excess(self) -> int:
        """Return the brokers that have more than their most, as a mask."""
        return sum(1 << b for b, most in self._most.items() if self._units[b] > most)

    def fill(self, brokers: int) -> None:
        """Make brokers have exactly their most from now on, if they can."""
        for b in list_bits(brokers & ~self._filled):
            self._bound(b, -1)
            self._filled |= 1 << b
            self._bound(b, 1)


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
    able = sum(1 << b for b, takes in enumerate(topic.takes) if takes and topic.holders[b])
    wanted = reduce(or_, topic.takes, 0)
    levels = sorted(group_brokers(topic.units).items())
    lower = [(n, mask & wanted) for n, mask in levels if mask & wanted]
    for most, full in reversed(levels):
        if not lower or most < lower[0][0] + 2:
            return None
        for b in sorted(list_bits(full & able), key=lambda b: (-load.last[b], b)):
            reached = topic.reach(b)
            for n, mask in lower:
                if n > most - 2:
                    break
                if mask & reached:
                    return b, min(list_bits(mask & reached), key=lambda c: (load.next[c], c))
    return None
