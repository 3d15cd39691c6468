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

    from reconciler.placement.counts import ClusterLoad, Demand, Sample

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
        demands: Sequence[Demand],
        placed: list[Counts],
        before: ClusterLoad,
        bounds: Price | None = None,
    ) -> None:
        self.demands, self.placed, self.before = demands, placed, before
        self.bounds = bounds or cluster_bounds(self.samples(), before)
        self.load = before.copy()
        for demand, counts in zip(demands, placed, strict=True):
            self.load.add(demand, counts)

    def copy(self) -> JointTopics:
        placed = [counts.copy() for counts in self.placed]
        return JointTopics(self.demands, placed, self.before, self.bounds)

    def samples(self) -> list[Sample]:
        """Return every topic by itself."""
        return [
            (demand, counts, 1) for demand, counts in zip(self.demands, self.placed, strict=True)
        ]


def place_jointly(demands: Sequence[Demand], before: ClusterLoad) -> JointTopics:
    """Place all topics of a problem: the exact way, at about a millisecond a topic."""
    estate = _place_in_order(demands, range(len(demands)), before)
    return improve(estate) if len(demands) > 1 else estate


def improve(estate: JointTopics) -> JointTopics:
    """Bring an estate whose topics are optimal by themselves to the best that can be found."""
    # Nothing is promised for unequal weights, and this many topics would take too long.
    if len(estate.demands) > _PASSED and not has_one_weight(estate.demands):
        return estate
    if len(estate.demands) == 1:
        return _place_in_order(estate.demands, range(1), estate.before, estate.bounds)
    _polish(estate)
    if estate.load.price()[1] == estate.bounds[1] or len(estate.demands) > _KICKED:
        return estate
    # The order of placement decides which local optimum is reached, so try the opposite one too.
    order = range(len(estate.demands))[::-1]
    backwards = _place_in_order(estate.demands, order, estate.before, estate.bounds)
    _polish(backwards)
    return _kick(min(estate, backwards, key=lambda e: e.load.price()))


def has_one_weight(demands: Sequence[Demand]) -> bool:
    """Return whether all topics weigh the same, which is what joint optimality rests on."""
    return len({demand.weight for demand in demands}) <= 1


def _place_in_order(
    demands: Sequence[Demand],
    order: Sequence[int],
    before: ClusterLoad,
    bounds: Price | None = None,
) -> JointTopics:
    load = before.copy()
    placed: dict[int, Counts] = {}
    for t in order:
        placed[t] = place_topic(demands[t], load)
        load.add(demands[t], placed[t])
    return JointTopics(demands, [placed[t] for t in range(len(demands))], before, bounds)


def _polish(estate: JointTopics) -> None:
    """Level leaders (exact), then replicas, by paths and by placing single topics anew."""
    least_leaders, least_replicas = estate.bounds
    for number in range(1 + min(_PASSES, _PASSED // len(estate.demands))):
        price = estate.load.price()
        if number:  # in the first pass, topics were just placed, or come from the bulk path
            for t, demand in enumerate(estate.demands):
                old, before = estate.placed[t], estate.load.price()
                estate.load.add(demand, old, -1)
                new = place_topic(demand, estate.load)
                estate.load.add(demand, new)
                if estate.load.price() < before:
                    estate.placed[t] = new
                else:
                    estate.load.add(demand, new, -1)
                    estate.load.add(demand, old)
        if estate.load.price()[0] > least_leaders:
            level_leaders(estate.demands, estate.placed, estate.load)
        if estate.load.price()[1] > least_replicas:
            level_replicas(estate.demands, estate.placed, estate.load)
        at_best = estate.load.price()[1] == least_replicas
        if at_best or (number and estate.load.price() == price):
            return


def _kick(best: JointTopics) -> JointTopics:
    """Leave a local optimum by exchanges of leaders that cost nothing, and keep what gains."""
    left = min(_KICKS, _KICKED // len(best.demands))
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
    demand, old = estate.demands[t], estate.placed[t]
    leaders = old.leaders.copy()
    leaders[giver] -= 1
    leaders[taker] += 1
    estate.load.add(demand, old, -1)
    new = Counts(leaders, surround_leaders(demand, estate.load, leaders))
    estate.placed[t] = new if topic_price(demand, new) == topic_price(demand, old) else old
    estate.load.add(demand, estate.placed[t])


def _neutral_moves(estate: JointTopics) -> Iterator[tuple[tuple[int, int, int], ...]]:
    """Yield hand-overs of leaders that leave the cluster's leaders as even as they are.

    Either one from a broker to another that then stands as high as the first did, or two of
    different topics that undo each other.
    """
    singles = [
        (t, u, v)
        for t, demand in enumerate(estate.demands)
        for gate in leader_gates(demand, estate.placed[t])
        for u in sorted(gate.givers)
        for v in gate.takers
    ]
    led, scales = estate.load.leaders, estate.load.scales
    for t, u, v in singles:
        w = estate.demands[t].weight
        if scales[v] * (2 * led[v] + w) == scales[u] * (2 * led[u] - w):
            yield ((t, u, v),)
    for i, (t, u, v) in enumerate(singles):
        for s, x, y in singles[i + 1 :]:
            if s != t and (x, y) == (v, u) and estate.demands[s].weight == estate.demands[t].weight:
                yield (t, u, v), (s, x, y)
