"""Rows that were chosen before, next to those of a strategy: may they be used as well?

They may if the checker accepts them, and if no level from 1 to 4 is worse. Levels 5 and 6 do not
count: they depend on every row of the cluster, so any other change would make given rows worse.

How often: docs/placement.md, "When another request is merged first".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from reconciler.model.cluster import Assignment
from reconciler.model.plan import LevelResult
from reconciler.placement.check import check_placement
from reconciler.placement.counts import Counts, list_demands
from reconciler.placement.levels import measure_levels
from reconciler.placement.next_leaders import NextLeaderBounds, NextLeaders
from reconciler.placement.problem import Placed, Problem

COMPARED = 4
"""The number of levels, from the first one, on which given rows must be as good."""


class Judged(NamedTuple):
    """The placement to use, and every objection to the given rows; without one, it has them."""

    placed: Placed
    objections: tuple[str, ...] = ()


def prefer_rows(problem: Problem, placed: Placed, given: Mapping[str, Assignment]) -> Judged:
    """Replace a strategy's answer by given rows, if these are valid and as good.

    `given` holds the new rows by topic. It must cover exactly the wishes of the problem.
    """
    wished = {wish.topic for wish in problem.wishes}
    strangers = [
        *(f"{topic}: new partitions without rows" for topic in sorted(wished - set(given))),
        *(f"{topic}: rows without new partitions" for topic in sorted(set(given) - wished)),
    ]
    if strangers:
        return Judged(placed, tuple(strangers))
    if violations := check_placement(problem, given):
        return Judged(placed, violations)
    if given == placed.rows:
        return Judged(placed)
    if not placed.levels:
        return Judged(placed, ("the strategy of the cluster gives other rows now",))
    levels = _measure(problem, placed, given)
    pairs = list(zip(levels, placed.levels, strict=True))[:COMPARED]
    # The first level that differs decides, as it does for the strategy.
    differing = next(((now, best) for now, best in pairs if now.reached != best.reached), None)
    if differing and differing[0].reached > differing[1].reached:
        return Judged(placed, (_describe_loss(*differing),))
    return Judged(Placed(given, levels))


def _measure(
    problem: Problem, placed: Placed, given: Mapping[str, Assignment]
) -> tuple[LevelResult, ...]:
    """Measure the levels of valid rows. Their bounds are those of the strategy's answer."""
    demands, load = list_demands(problem)
    table = NextLeaders.count(problem)
    samples = []
    for demand in demands:
        index = {broker: number for number, broker in enumerate(demand.ids)}
        rows = [[index[broker] for broker in row] for row in given[demand.wish.topic]]
        counts = Counts.of(rows, len(demand.ids))
        samples.append((demand, counts, 1))
        load.add(demand, counts)
        for row in rows:
            table.add(table.find(row))
    _, _, leaders, replicas, after, beyond = placed.levels
    bounds = NextLeaderBounds(
        after.bound, after.skew_bound or 0, beyond.bound, beyond.skew_bound or 0
    )
    return (
        *measure_levels(samples, (leaders.bound, replicas.bound), load),
        *table.measure(bounds),
    )


def _describe_loss(given: LevelResult, best: LevelResult) -> str:
    # In percent, because the squares are scaled if brokers have capacities.
    lower = f"sum of squares {100 * (given.reached - best.reached) / given.reached:.2g} % lower"
    if given.skew != best.skew:
        lower = f"max − min {best.skew} instead of {given.skew}, {lower}"
    return f"new rows spread the {best.level} more evenly ({lower})"
