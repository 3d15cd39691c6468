"""Strategy `optimal`: the best placement that exists, and a statement of how good it is.

Counts first, partitions last. Hard rules, then four levels in lexicographic order, each as the
least sum of squares over the eligible brokers: leaders of the topic, replicas of the topic,
leaders of the cluster, replicas of the cluster. Existing replicas do not move; those on brokers
that take nothing new are in no sum. Squares and not max − min, because max − min is blind: over
loads of 10, 0, 0, 0 it cannot tell two more on one broker from one each on two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.placement.counts import pose
from reconciler.placement.joint import place_jointly
from reconciler.placement.levels import measure_levels
from reconciler.placement.problem import Placed
from reconciler.placement.realise import realise
from reconciler.placement.scatter import Heirs

if TYPE_CHECKING:
    from reconciler.model import Assignment
    from reconciler.placement.joint import Estate
    from reconciler.placement.problem import Problem


def place_optimal(problem: Problem) -> Placed:
    """Place all wishes together.

    The first three levels are jointly optimal; the fourth is for a single topic, and otherwise
    where its result says so. That holds for wishes of equal weight.
    """
    asks, before = pose(problem)
    estate = place_jointly(asks, before)
    rows = {wish.topic: () for wish in problem.wishes}
    return Placed({**rows, **_realise_all(problem, estate)}, measure_levels(estate))


def _realise_all(problem: Problem, estate: Estate) -> dict[str, Assignment]:
    index = {b: i for i, b in enumerate(sorted(broker.id for broker in problem.brokers))}
    heirs = Heirs(len(index))
    for ask in estate.asks:
        heirs.count_existing(ask.wish.existing, index)
    pairs = zip(estate.asks, estate.placed, strict=True)
    return {ask.wish.topic: realise(ask, counts, heirs) for ask, counts in pairs}
