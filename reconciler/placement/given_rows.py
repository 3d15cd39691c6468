"""Rows that were chosen before, next to those of a strategy: may they be used as well?

They may if the checker accepts them, and if no level from 1 to 4 is worse. Levels 5 and 6 do not
count: they depend on every row of the cluster, so any other change would make given rows worse.

Amounts, such as bytes, change all the time: a level of amounts is worse only if the growth of
each broker's load by a tenth does not explain it.

How often, and why a tenth: docs/explanation/placement.md, "When another request is merged first".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import NamedTuple

from reconciler.model.cluster import Assignment
from reconciler.model.plan import Level, LevelResult
from reconciler.placement.check import check_placement
from reconciler.placement.counts import Counts, Demand, list_demands
from reconciler.placement.levels import measure_levels
from reconciler.placement.next_leaders import NextLeaderBounds, NextLeaders
from reconciler.placement.problem import Placed, Problem

COMPARED = 4
"""The number of levels, from the first one, on which given rows must be as good."""

GROWTH = Fraction(1, 10)
"""The part of its load of amounts that a broker may have gained or lost since rows were given."""


class Judged(NamedTuple):
    """The placement to use, and every objection to the given rows; without one, it has them."""

    placed: Placed
    objections: tuple[str, ...] = ()


def prefer_rows(
    problem: Problem,
    placed: Placed,
    given: Mapping[str, Assignment],
    measured: Collection[Level] = (),
) -> Judged:
    """Replace a strategy's answer by given rows, if these are valid and as good.

    `given` holds the new rows by topic. It must cover exactly the wishes of the problem. The loads
    of the levels `measured` are amounts.
    """
    wished = {wish.topic for wish in problem.wishes}
    ineligible = [
        *(f"{topic}: new partitions without rows" for topic in sorted(wished - set(given))),
        *(f"{topic}: rows without new partitions" for topic in sorted(set(given) - wished)),
    ]
    if ineligible:
        return Judged(placed, tuple(ineligible))
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
    if differing:
        now, best = differing
        growth = _explain_growth(problem, placed, given, now.level) if now.level in measured else 0
        if now.reached - best.reached > growth:
            return Judged(placed, (_describe_loss(now, best),))
    return Judged(Placed(given, levels))


def _explain_growth(
    problem: Problem, placed: Placed, given: Mapping[str, Assignment], level: Level
) -> Fraction:
    """Return by how much given rows may have become worse than new ones through growth alone.

    Rows that add x instead of z to loads y differ by 2y·(x − z) and what does not depend on y. So
    if each load was within `GROWTH` of what it is now, no more than 2·GROWTH·y·|x − z| is new.
    """
    demands, load = list_demands(problem)
    before = load.leaders if level is Level.CLUSTER_LEADERS else load.replicas
    added = []
    for rows in (given, placed.rows):
        after = load.copy()
        for demand in demands:
            new = _index(demand, rows[demand.wish.topic])
            after.add(demand, Counts.of(new, len(demand.ids)))
        added.append(after.leaders if level is Level.CLUSTER_LEADERS else after.replicas)
    lines = zip(load.scales, before, *added, strict=True)
    change: int = sum(scale * y * abs(x - z) for scale, y, x, z in lines)
    return 2 * GROWTH * change


def _index(demand: Demand, rows: Assignment) -> list[list[int]]:
    """Return rows of broker ids as indices."""
    index = {broker: number for number, broker in enumerate(demand.ids)}
    return [[index[broker] for broker in row] for row in rows]


def _measure(
    problem: Problem, placed: Placed, given: Mapping[str, Assignment]
) -> tuple[LevelResult, ...]:
    """Measure the levels of valid rows. Their bounds are those of the strategy's answer."""
    demands, load = list_demands(problem)
    table = NextLeaders.count(problem)
    samples = []
    for demand in demands:
        rows = _index(demand, given[demand.wish.topic])
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
