"""Several topics together: levels 1 to 3 jointly optimal, level 4 the best found.

Topics are placed one after the other by flows, then levelled over all topics by exchange paths.
Level 4 is optimal for one topic and wherever it meets its bound. In general it is NP-hard
(not-all-equal satisfiability reduces to it), so a local search keeps the best found: each topic is
placed again against the others, then a walk over exchanges of leaders that cost nothing.

Both proofs: docs/explanation/placement-proofs.md, "Several topics".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from reconciler.placement.bounds import cluster_bounds
from reconciler.placement.counts import ClusterLoad, Counts, Demand, Sample, topic_price
from reconciler.placement.exchange import leader_gates, level_leaders, level_replicas
from reconciler.placement.flow import place_topic, surround_leaders

Price = tuple[int, int]
Handover = tuple[int, int, int]

_PASSES = 8
"""How often all topics are placed anew against the others, at most."""

_PASSED = 2_000
"""How many topics are placed anew in all passes together: about a millisecond each."""

_SEARCHED = 512
"""Up to how many topics local optima are left at all."""

_STEPS = 400
"""How many neutral exchanges of leaders are tried if the replicas' bound is not met."""

_STEPPED = 3_200
"""How many topics are looked at in all these steps together: many topics, few steps."""

_DRAWS = 32
"""How many hand-overs are drawn for one step at most."""


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
    if estate.load.price()[1] == estate.bounds[1] or len(estate.demands) > _SEARCHED:
        return estate
    # The order of placement decides which local optimum is reached, so try the opposite one too.
    order = range(len(estate.demands))[::-1]
    backwards = _place_in_order(estate.demands, order, estate.before, estate.bounds)
    _polish(backwards)
    return _walk(min(estate, backwards, key=lambda e: e.load.price()))


def has_one_weight(demands: Sequence[Demand]) -> bool:
    """Return whether all topics weigh the same, which is what joint optimality rests on."""
    return len({demand.weights for demand in demands}) <= 1


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


def _walk(best: JointTopics) -> JointTopics:
    """Leave a local optimum: walk over leaders that are as good, and keep the best replicas.

    Replicas are exact for given leaders, so only the leaders have to be searched.
    """
    current, numbers = best.copy(), _draw_numbers()
    for _ in range(min(_STEPS, _STEPPED // len(best.demands))):
        if best.load.price()[1] == best.bounds[1]:
            break
        before = current.load.price()[0]
        for t, giver, taker in _draw_move(current, numbers):
            _move_leader(current, t, giver, taker)
        if current.load.price()[0] != before:  # one of several topics could not move
            level_leaders(current.demands, current.placed, current.load)
        level_replicas(current.demands, current.placed, current.load)
        if current.load.price() < best.load.price():
            best = current.copy()
    return best


def _draw_numbers() -> Iterator[int]:
    """Yield the same numbers in every run (the congruential generator of Knuth's MMIX)."""
    number = 1
    while True:
        number = (number * 6364136223846793005 + 1442695040888963407) % 2**64
        yield number >> 33


def _move_leader(estate: JointTopics, t: int, giver: int, taker: int) -> None:
    demand, old = estate.demands[t], estate.placed[t]
    leaders = old.leaders.copy()
    leaders[giver] -= 1
    leaders[taker] += 1
    estate.load.add(demand, old, -1)
    new = Counts(leaders, surround_leaders(demand, estate.load, leaders))
    estate.placed[t] = new if topic_price(demand, new) == topic_price(demand, old) else old
    estate.load.add(demand, estate.placed[t])


def _draw_move(estate: JointTopics, numbers: Iterator[int]) -> tuple[Handover, ...]:
    """Draw hand-overs of leaders that leave the cluster's leaders as even as they are.

    One from a broker to another that then stands as high as the first did; or two or three of
    different topics that go round in a circle. None if none is found in some attempts.
    """
    singles = [
        (t, u, v)
        for t, demand in enumerate(estate.demands)
        for gate in leader_gates(demand, estate.placed[t])
        for u in sorted(gate.givers)
        for v in gate.takers
    ]
    onward = defaultdict[int, "list[Handover]"](list)
    for one in singles:
        onward[one[1]].append(one)
    led, scales = estate.load.leaders, estate.load.scales
    weight = [demand.leader_weight for demand in estate.demands]
    for _ in range(_DRAWS if singles else 0):
        t, u, v = one = singles[next(numbers) % len(singles)]
        if scales[v] * (2 * led[v] + weight[t]) == scales[u] * (2 * led[u] - weight[t]):
            return (one,)
        if not onward[v]:
            continue
        s, _, w = two = onward[v][next(numbers) % len(onward[v])]
        if s == t or weight[s] != weight[t]:
            continue
        if w == u:
            return (one, two)
        back = [r for r in onward[w] if r[2] == u and r[0] not in (s, t)]
        if back and weight[(three := back[next(numbers) % len(back)])[0]] == weight[t]:
            return (one, two, three)
    return ()
