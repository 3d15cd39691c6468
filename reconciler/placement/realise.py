"""Counts become rows, one partition at a time, by a greedy that never fails; choices serve level 5.

Counts can be realised if leaders sum up to the partitions D, leaders <= replicas <= D on every
broker, and each rack's replicas are within D times the bounds of one row. So a row only has to
leave counts that obey the same conditions for D - 1:

- any broker that still needs leaders can lead;
- a broker that needs a replica of each of the partitions left is taken;
- each rack takes what keeps it within its bounds.

All other choices go to the failover targets.

Proof by induction, which is this algorithm: docs/placement.md, "Counts first, partitions last".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.placement.scatter import Heirs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconciler.model import Assignment
    from reconciler.placement.counts import Ask, Counts


def realise_all(placed: Iterable[tuple[Ask, Counts]]) -> dict[str, Assignment]:
    """Return the rows of many topics, heirs spread over all of them."""
    placed = list(placed)
    index = {b: i for ask, _ in placed[:1] for i, b in enumerate(ask.ids)}
    heirs = Heirs(len(index))
    for ask, _ in placed:
        heirs.count_existing(ask.wish.existing, index)
    return {ask.wish.topic: realise(ask, counts, heirs) for ask, counts in placed}


def realise(ask: Ask, counts: Counts, heirs: Heirs) -> Assignment:
    """Return rows of broker ids that have exactly these counts. Cost: O(brokers) a partition."""
    rest = _Rest(ask, counts)
    rows = []
    for left in range(ask.count, 0, -1):
        leader = rest.next_leader()
        followers = rest.choose_followers(leader, left, heirs.after[leader])
        rest.take(leader, followers)
        row = heirs.order(leader, followers, ask.ranks)
        rows.append(tuple(ask.ids[b] for b in row))
    return tuple(rows)


class _Rest:
    """The counts that are still to be realised."""

    def __init__(self, ask: Ask, counts: Counts) -> None:
        self._ask = ask
        self._leaders, self._replicas = counts.leaders.copy(), counts.replicas.copy()
        self._held = [sum(counts.replicas[b] for b in rack) for rack in ask.rule.racks]
        self._busy = [b for b, n in enumerate(counts.replicas) if n]
        self._last: int | None = None

    def next_leader(self) -> int:
        """Return whoever owes most leads, so that neighbouring partitions differ."""
        leaders, ranks = self._leaders, self._ask.ranks
        return max(
            (b for b in self._busy if leaders[b]),
            key=lambda b: (leaders[b], b != self._last, ranks[b], -b),
        )

    def choose_followers(self, leader: int, left: int, after: list[int]) -> list[int]:
        """Choose followers: those that must, then those that have inherited least."""
        leaders, replicas, rule = self._leaders, self._replicas, self._ask.rule
        must = [b for b in self._busy if replicas[b] == left and b != leader]
        needs, spare = self._rack_room(left)
        for b in (leader, *must):
            needs[rule.rack_of[b]] -= 1
            spare[rule.rack_of[b]] -= 1
        chosen = must
        missing = self._ask.wish.replication - 1 - len(must)
        free = missing - sum(n for n in needs if n > 0)
        if not missing:
            return chosen
        ranks = self._ask.ranks
        able = (
            (after[b], -replicas[b], ranks[b], b)
            for b in self._busy
            if leaders[b] < replicas[b] < left and b != leader
        )
        for *_, b in sorted(able):
            j = rule.rack_of[b]
            if spare[j] > 0 and (needs[j] > 0 or free > 0):
                chosen.append(b)
                free -= needs[j] <= 0
                needs[j] -= 1
                spare[j] -= 1
                if len(chosen) == self._ask.wish.replication - 1:
                    break
        return chosen

    def _rack_room(self, left: int) -> tuple[list[int], list[int]]:
        """Return the fewest and most replicas that each rack may take of the next row."""
        needs, spare = [], []
        for held, low, high in zip(
            self._held, self._ask.rule.fewest, self._ask.rule.most, strict=True
        ):
            needs.append(max(low, held - high * (left - 1)))
            spare.append(min(high, held - low * (left - 1)))
        return needs, spare

    def take(self, leader: int, followers: list[int]) -> None:
        """Take a row away."""
        self._leaders[leader] -= 1
        for b in (leader, *followers):
            self._replicas[b] -= 1
            self._held[self._ask.rule.rack_of[b]] -= 1
        self._busy = [b for b in self._busy if self._replicas[b]]
        self._last = leader
