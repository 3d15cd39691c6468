"""Strategy `optimal`: six levels in lexicographic order, each the least sum of squares.

Counts first, partitions last: `joint` finds the leaders and replicas of each topic on each broker,
`row_search` turns them into rows, and `bulk` does both for thousands of new topics. Existing
replicas do not move; those on brokers that take nothing new are in no sum.

The levels, and why squares and not max − min: docs/explanation/placement.md, "The problem".
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.placement.bounds import bound_next_leaders
from reconciler.placement.counts import Demand, list_demands
from reconciler.placement.joint import place_jointly
from reconciler.placement.levels import measure_levels
from reconciler.placement.next_leaders import NextLeaders
from reconciler.placement.problem import Placed, Problem
from reconciler.placement.row_search import place_rows

_BULK = 10_000
"""Minimum of new replicas for which numpy is faster, including its import."""

_ALIKE = 150
"""Minimum of new replicas per group of topics for which arrays are faster than topic by topic."""


def place_optimal(problem: Problem) -> Placed:
    """Place all wishes together.

    The first three levels are jointly optimal; the fourth is for a single topic, and otherwise
    if its result says so. That holds for wishes of equal weight. The last two are the best found.
    """
    demands, before = list_demands(problem)
    table = NextLeaders.count(problem)
    new = [demand for demand in demands if not demand.wish.existing]
    if _pays_in_bulk(new):
        from reconciler.placement.bulk import place_in_bulk

        rows, levels = place_in_bulk(demands, before, table)
    else:
        estate = place_jointly(demands, before)
        levels = measure_levels(estate.samples(), estate.bounds, estate.load)
        bounds = bound_next_leaders(estate.samples(), table)
        placed = list(zip(demands, estate.placed, strict=True))
        rows = place_rows(placed, estate.load, table, bounds)
        levels += table.measure(bounds)
    return Placed({wish.topic: rows.get(wish.topic, ()) for wish in problem.wishes}, levels)


def _pays_in_bulk(new: Sequence[Demand]) -> bool:
    copies = sum(demand.copies for demand in new)
    return copies >= max(_BULK, _ALIKE * len({demand.kind for demand in new}))
