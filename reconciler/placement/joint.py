"""Several topics together: levels 1 to 3 jointly optimal, level 4 the best found.

Topics are placed one after the other by flows, then levelled over all topics by exchange paths.
Level 4 is optimal for one topic and wherever it meets its bound. In general it is NP-hard
(not-all-equal satisfiability reduces to it), so a local search keeps the best found: each topic is
placed again against the others, then exchanges of leaders that cost nothing leave local optima.

Both proofs: docs/placement.md, "Several topics".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.placement.bounds import cluster_bounds
from reconciler.placement.counts import Counts, topic_price
from reconciler.placement.exchange import leader_gates, level_leaders, level_replicas
from reconciler.placement.flow import place_topic, surround_leaders

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reconciler.placement.counts import Ask, ClusterLoad, Sample

    Price = tuple[int, int]

_PASSES = 8
"""How often all topics are placed anew against the others, at most."""

_PASSED = 2_000
"""How many topics are placed anew in all passes together: about a millisecond each."""

_KICKS = 64
"""How many neutral exchanges of leaders are tried if the replicas' bound is not met."""

_KICKED = 512
"""How many topics are polished in all kicks together: many topics, few kicks."""


class JointTopics:
    """All topics of a problem with their counts, and the cluster's load with and without them.

    `bounds` are the least that the cluster's two levels could reach.
    """

    def __init__(
        self,
        asks: Sequence[Ask],
        placed: list[Counts],
        before: ClusterLoad,
        bounds: Price | None = None,
    ) -> None:
        self.asks, self.placed, self.before = asks, placed, before
        self.bounds = bounds or cluster_bounds(self.samples(), before)
        self.load = before.copy()
        for ask, counts in zip(asks, placed, strict=True):
            self.load.add(ask, counts)

    def copy(self) -> JointTopics:
        placed = [counts.copy() for counts in self.placed]
        return JointTopics(self.asks, placed, self.before, self.bounds)

    def samples(self) -> list[Sample]:
        """Return every topic by itself."""
        return [(ask, counts, 1) for ask, counts in zip(self.asks, self.placed, strict=True)]


def place_jointly(asks: Sequence[Ask], before: ClusterLoad) -> JointTopics:
    """Place all topics of a problem: the exact way, at about a millisecond a topic."""
    estate = _place_in_order(asks, range(len(asks)), before)
    return improve(estate) if len(asks) > 1 else estate


def improve(estate: JointTopics) -> JointTopics:
    """Bring an estate whose topics are optimal by themselves to the best that can be found."""
    # Nothing is promised for unequal weights, and this many topics would take too long.
    if len(estate.asks) > _PASSED and not has_one_weight(estate.asks):
        return estate
    if len(estate.asks) == 1:
        return _place_in_order(estate.asks, range(1), estate.before, estate.bounds)
    _polish(estate)
    if estate.load.price()[1] == estate.bounds[1] or len(estate.asks) > _KICKED:
        return estate
    # The order of placement decides which local optimum is reached, so try the opposite one too.
    order = range(len(estate.asks))[::-1]
    backwards = _place_in_order(estate.asks, order, estate.before, estate.bounds)
    _polish(backwards)
    return _kick(min(estate, backwards, key=lambda e: e.load.price()))


def has_one_weight(asks: Sequence[Ask]) -> bool:
    """Return whether all topics weigh the same, which is what joint optimality rests on."""
    return len({ask.weight for ask in asks}) <= 1


def _place_in_order(
    asks: Sequence[Ask], order: Sequence[int], before: ClusterLoad, bounds: Price | None = None
) -> JointTopics:
    load = before.copy()
    placed: dict[int, Counts] = {}
    for t in order:
        placed[t] = place_topic(asks[t], load)
        load.add(asks[t], placed[t])
    return JointTopics(asks, [placed[t] for t in range(len(asks))], before, bounds)


def _polish(estate: JointTopics) -> None:
    """Level leaders (exact), then replicas, by paths and by placing single topics anew."""
    least_leaders, least_replicas = estate.bounds
    for number in range(1 + min(_PASSES, _PASSED // len(estate.asks))):
        price = estate.load.price()
        if number:  # in the first pass, topics were just placed, or come from the bulk path
            for t, ask in enumerate(estate.asks):
                old, before = estate.placed[t], estate.load.price()
                estate.load.add(ask, old, -1)
                new = place_topic(ask, estate.load)
                estate.load.add(ask, new)
                if estate.load.price() < before:
                    estate.placed[t] = new
                else:
                    estate.load.add(ask, new, -1)
                    estate.load.add(ask, old)
        if estate.load.price()[0] > least_leaders:
            level_leaders(estate.asks, estate.placed, estate.load)
        if estate.load.price()[1] > least_replicas:
            level_replicas(estate.asks, estate.placed, estate.load)
        at_best = estate.load.price()[1] == least_replicas
        if at_best or (number and estate.load.price() == price):
            return


def _kick(best: JointTopics) -> JointTopics:
    """Leave a local optimum by exchanges of leaders that cost nothing, and keep what gains."""
    left = min(_KICKS, _KICKED // len(best.asks))
    improved = True
    while improved and best.load.price()[1] > best.bounds[1]:
        improved = False
        for moves in _neutral_moves(best):
            if not left:
                return best
            left -= 1
            other = best.copy()
            for t, giver, taker in moves:
                _move_leader(other, t, giver, taker)
            _polish(other)
            if other.load.price() < best.load.price():
                best, improved = other, True
                break
    return best


def _move_leader(estate: JointTopics, t: int, giver: int, taker: int) -> None:
    ask, old = estate.asks[t], estate.placed[t]
    leaders = old.leaders.copy()
    leaders[giver] -= 1
    leaders[taker] += 1
    estate.load.add(ask, old, -1)
    new = Counts(leaders, surround_leaders(ask, estate.load, leaders))
    estate.placed[t] = new if topic_price(ask, new) == topic_price(ask, old) else old
    estate.load.add(ask, estate.placed[t])


def _neutral_moves(estate: JointTopics) -> Iterator[tuple[tuple[int, int, int], ...]]:
    """Yield hand-overs of leaders that leave the cluster's leaders as even as they are.

    Either one from a broker to another that then stands as high as the first did, or two of
    different topics that undo each other.
    """
    singles = [
        (t, u, v)
        for t, ask in enumerate(estate.asks)
        for gate in leader_gates(ask, estate.placed[t])
        for u in sorted(gate.givers)
        for v in gate.takers
    ]
    led, scales = estate.load.leaders, estate.load.scales
    for t, u, v in singles:
        w = estate.asks[t].weight
        if scales[v] * (2 * led[v] + w) == scales[u] * (2 * led[u] - w):
            yield ((t, u, v),)
    for i, (t, u, v) in enumerate(singles):
        for s, x, y in singles[i + 1 :]:
            if s != t and (x, y) == (v, u) and estate.asks[s].weight == estate.asks[t].weight:
                yield (t, u, v), (s, x, y)
