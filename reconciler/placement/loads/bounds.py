"""What no rows can cost less than: prices on load prove it, and so do units that move as a whole.

Any prices prove a bound, so a reader can verify one without the search that found them.

The argument: docs/explanation/placement-moves.md, "Balance by load".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import NamedTuple

import numpy as np

from reconciler.placement.loads.layout import count_topics
from reconciler.placement.loads.problem import NOBODY, Floats, Ints, LoadProblem

_WORK = 300_000_000
"""Partitions times brokers, over all steps: some seconds."""

_AT_ONCE = 4_000_000
"""Partitions times brokers that are billed together, which bounds the memory."""

_STEPS = 600

_FEWEST_STEPS = 40
"""With fewer, prices get no better than those in closed form."""

_NEAR = 0.999
"""A bound this near to the cost is good enough."""

_PACE = 0.1
"""The first step of prices, as a part of the largest one."""

_FORBIDDEN = 1e30
"""More than any unit costs."""

_SLACK = 1e-9
"""Rounding of sums, as a part of them."""


class Prices(NamedTuple):
    """Prices (K, B) of load, and what they prove of the cost of rows inside all bands."""

    prices: Floats
    proven: float


def find_prices(problem: LoadProblem, reached: float) -> Prices:
    """Return prices with a high bound on the cost of rows inside all bands.

    In: the cost that a search has reached. Near enough to it, no better prices are looked for.
    """
    found = max(
        (Prices(each, bound_by_prices(problem, each)[0]) for each in _price_outside(problem)),
        key=_rank_prices,
        default=Prices(np.zeros(problem.low.shape), 0.0),
    )
    steps = _count_steps(problem)
    near = max(found.proven, bound_by_units(problem)) >= reached * _NEAR
    return found if near or steps < _FEWEST_STEPS else _raise_prices(problem, found, steps)


def bound_cost(problem: LoadProblem, prices: Prices, outside: float) -> float:
    """Return a lower bound on the cost of all rows that leave no more than this outside the bands.

    In: any prices, and what may be outside, in shares: it may be where the price is highest.
    """
    highest = float((np.abs(prices.prices) * problem.scale[:, None]).max(initial=0))
    cost = prices.proven - highest * outside * (1 + _SLACK)
    if not outside:
        cost = max(cost, bound_by_units(problem))
    cost = max(cost * (1 - _SLACK), 0.0)
    return float(ceil(round(cost, 6))) if (problem.cost == 1).all() else cost


def bound_outside(problem: LoadProblem) -> float:
    """Return the least that any rows leave outside the bands, in shares, whatever they cost.

    It is 0 if these prices do not prove that the bands are out of reach.
    """
    free = replace(problem, cost=np.zeros_like(problem.cost))
    most = 1 / problem.scale[:, None]
    prices = np.zeros(problem.low.shape)
    best = 0.0
    steps = _count_steps(problem)
    for step in range(steps):
        value, slope = bound_by_prices(free, prices)
        best = max(best, value)
        pace = _PACE * (1 - step / steps)
        size = np.abs(slope).max()
        if not size:
            break
        prices = np.clip(prices + pace * most * slope / size, -most, most)
    return best * (1 - _SLACK)


def _count_steps(problem: LoadProblem) -> int:
    return int(min(_STEPS, _WORK // max(1, len(problem.rows) * problem.brokers)))


def bound_by_prices(problem: LoadProblem, prices: Floats) -> tuple[float, Floats]:
    """Return the bound that prices (K, B) of load prove, and its slope by price.

    Every partition takes the brokers that are cheapest to it, whatever others do: its copies and
    the prices of its load. What brokers may hold at least and at most is then paid back. No rows
    inside the bands can cost less, since a positive price pays for at most `high`, and a negative
    one for at least `low` (Lagrange duality).
    """
    least, load = _choose_cheapest(problem, prices)
    bounds = np.where(prices > 0, problem.high, problem.low)
    slope = load + problem.fixed - bounds
    return least + float((prices * (problem.fixed - bounds)).sum()), slope


def bound_by_units(problem: LoadProblem) -> float:
    """Return the least that units cost which leave the brokers above their band, or enter others.

    Of each broker it takes the cheapest units per load until the rest is inside; one resource and
    one side count, since a copy both leaves a broker and enters another. Where all units carry the
    same, no more of a topic count than may leave or enter the broker by the spread of topics.
    """
    load = problem.add_up(problem.rows)
    held = problem.rows != NOBODY
    part = np.flatnonzero(held) // problem.rows.shape[1]
    place = problem.rows[held]
    part, place = part[problem.movable[part]], place[problem.movable[part]]
    whole = bool((problem.cost == 1).all())
    limits = _limit_topics(problem)
    best = 0.0
    for k, amounts in enumerate(problem.loads):
        over, under = load[k] - problem.high[k], problem.low[k] - load[k]
        for missing, leaves in ((over, True), (under, False)):
            costs = 0.0
            for broker in np.flatnonzero(missing > 0):
                units = part[place == broker]
                if not leaves:
                    units = _list_entering(problem, int(broker))
                if limits is not None and len(np.unique(amounts[units])) == 1:
                    units = _take_of_topics(problem, units, limits[int(leaves)][:, broker])
                needed = int(missing[broker])
                costs += _cover(amounts[units], problem.cost[units], needed, whole=whole)
            best = max(best, costs)
    return best


def _limit_topics(problem: LoadProblem) -> tuple[Ints, Ints] | None:
    """Return how many replicas of each topic may enter and leave each broker (T, B)."""
    if problem.spread is None or problem.within is not None:
        return None
    counts, least, most = count_topics(problem)
    return most[:, None] - counts, counts - least[:, None]


def _take_of_topics(problem: LoadProblem, units: Ints, limit: Ints) -> Ints:
    """Return the cheapest units of each topic (T), as many as its limit."""
    topics = problem.topics[units]
    order = np.lexsort((problem.cost[units], topics))
    units, topics = units[order], topics[order]
    starts = np.flatnonzero(np.diff(topics, prepend=-1))
    rank = np.arange(len(units)) - np.repeat(starts, np.diff(starts, append=len(units)))
    return np.asarray(units[rank < limit[topics]])


def _list_entering(problem: LoadProblem, broker: int) -> Ints:
    """Return the partitions that could get a unit on a broker, where they have none yet."""
    chosen = problem.movable & ~(problem.rows == broker).any(axis=1)
    if problem.within is not None:
        chosen &= (problem.within == broker).any(axis=1)
    return np.flatnonzero(chosen)


def _cover(amounts: Ints, cost: Ints, missing: int, *, whole: bool) -> float:
    """Return the least cost of units that have an amount together; parts of units count."""
    useful = amounts > 0
    amounts, cost = amounts[useful], cost[useful]
    order = np.argsort(cost / amounts, kind="stable")
    reached = np.cumsum(amounts[order])
    count = int(np.searchsorted(reached, missing))
    if count >= len(order):
        return float(cost.sum())  # not even all of them
    if whole:
        return count + 1.0
    before = int(reached[count - 1]) if count else 0
    last = order[count]
    part = (missing - before) / int(amounts[last])
    return float(cost[order[:count]].sum()) + part * float(cost[last])


def _price_outside(problem: LoadProblem) -> Iterator[Floats]:
    """Yield prices that bill all brokers above their band, and such that pay all below it."""
    load = problem.add_up(problem.rows)
    typical = _find_typical(problem)
    for k in range(len(load)):
        for sign, outside in ((1.0, load > problem.high), (-1.0, load < problem.low)):
            if outside[k].any():
                each = np.zeros(load.shape)
                each[k] = np.where(outside[k], sign * typical[k], 0.0)
                yield each


def _find_typical(problem: LoadProblem) -> Floats:
    """Return the cost (K) of a unit of load: 1 if bytes are balanced."""
    totals = (problem.loads * (problem.rows != NOBODY).sum(axis=1)).sum(axis=1)
    cost = (problem.cost * (problem.rows != NOBODY).sum(axis=1)).sum()
    return np.asarray(cost / np.maximum(totals, 1))


def _raise_prices(problem: LoadProblem, start: Prices, steps: int) -> Prices:
    """Return prices with a higher bound: Adam (Kingma and Ba, 2015) on the dual, averaged."""
    typical = _find_typical(problem)[:, None]
    unit = problem.scale[:, None]
    prices, best = start.prices.copy(), start
    mean, square = np.zeros(prices.shape), np.zeros(prices.shape)
    total, count = np.zeros(prices.shape), 0
    for step in range(1, steps + 1):
        value, slope = bound_by_prices(problem, prices)
        if value > best.proven:
            best = Prices(prices.copy(), value)
        slope = slope / unit
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope**2
        pace = 0.08 * (1 - step / (steps + 1)) ** 1.5
        change = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.99**step)) + 1e-12)
        prices = prices + typical * pace * change
        if 2 * step > steps:
            total, count = total + prices, count + 1
    averaged = total / max(count, 1)
    return max(best, Prices(averaged, bound_by_prices(problem, averaged)[0]), key=_rank_prices)


def _rank_prices(prices: Prices) -> float:
    return prices.proven


def _choose_cheapest(problem: LoadProblem, prices: Floats) -> tuple[float, Floats]:
    """Return what the cheapest brokers of all partitions cost, and the load (K, B) they get."""
    chosen_part, chosen_broker, costs = [], [], 0.0
    for part, brokers, cost in _choose_brokers(problem, prices):
        chosen_part.append(part)
        chosen_broker.append(brokers)
        costs += cost
    part, broker = np.concatenate(chosen_part), np.concatenate(chosen_broker)
    load = np.stack(
        [np.bincount(broker, each[part], minlength=problem.brokers) for each in problem.loads]
    )
    return costs, load.astype(np.float64)


def _choose_brokers(problem: LoadProblem, prices: Floats) -> Iterator[tuple[Ints, Ints, float]]:
    """Yield partitions and brokers, one pair for each unit, and what they cost together."""
    rows, stays = problem.rows, ~problem.movable
    for part, row in ((np.flatnonzero(stays), rows[stays]),):
        held = row != NOBODY
        units = np.broadcast_to(part[:, None], row.shape)[held]
        cost = (prices[:, row[held]] * problem.loads[:, units]).sum()
        yield units, row[held], float(cost)
    counts = (rows != NOBODY).sum(axis=1)
    caps = _cap_racks(problem)
    for count, cap in sorted(set(zip(counts[problem.movable], caps[problem.movable], strict=True))):
        every = np.flatnonzero(problem.movable & (counts == count) & (caps == cap))
        for part in np.array_split(every, -(-len(every) * problem.brokers // _AT_ONCE)):
            if not count:
                continue
            billed, brokers = _bill(problem, prices, part)
            columns = _take_cheapest(billed, problem.racks, int(count), int(cap))
            cost = np.take_along_axis(billed, columns, axis=1).sum()
            chosen = columns if brokers is None else np.take_along_axis(brokers, columns, axis=1)
            yield np.repeat(part, columns.shape[1]), chosen.ravel(), float(cost)


def _bill(problem: LoadProblem, prices: Floats, part: Ints) -> tuple[Floats, Ints | None]:
    """Return what each broker costs a partition (n, B), or each that it may use, and which."""
    rows, loads = problem.rows[part], problem.loads[:, part]
    if problem.within is not None:
        brokers = problem.within[part]
        billed = (prices[:, brokers] * loads[:, :, None]).sum(axis=0)
        home = brokers == rows[:, :1]
        new = np.where(problem.receivers[brokers], problem.cost[part][:, None], _FORBIDDEN)
        billed = billed + np.where(home, 0.0, new)
        return np.where(brokers == NOBODY, _FORBIDDEN, billed), brokers
    billed = loads.T @ prices + problem.cost[part][:, None]
    billed[:, ~problem.receivers] = _FORBIDDEN
    at, column = np.nonzero(rows != NOBODY)
    broker = rows[at, column]
    billed[at, broker] = (prices[:, broker] * loads[:, at]).sum(axis=0)
    return billed, None


def _cap_racks(problem: LoadProblem) -> Ints:
    """Return how many units of a row (P) one rack may have: as many as one has, at most."""
    if not problem.racks.any() or problem.within is not None:
        return np.zeros(len(problem.rows), dtype=np.int64)
    of_row = np.where(problem.rows == NOBODY, NOBODY, problem.racks[problem.rows])
    names = np.arange(problem.racks.max() + 1)
    return np.asarray((of_row[:, :, None] == names).sum(axis=1).max(axis=1))


def _take_cheapest(billed: Floats, racks: Ints, count: int, cap: int) -> Ints:
    """Return the columns (n, count) of the cheapest brokers, at most `cap` of a rack if it is set.

    Rows also keep their number of racks. That is left out here, which can only lower the bound.
    """
    if cap:
        of_rack = (np.flatnonzero(racks == rack) for rack in np.unique(racks))
        kept = [_take_least(billed, brokers, cap) for brokers in of_rack]
        columns = np.concatenate(kept, axis=1)
        least = np.take_along_axis(billed, columns, axis=1)
        order = np.argsort(least, axis=1, kind="stable")[:, :count]
        return np.asarray(np.take_along_axis(columns, order, axis=1))
    return _take_least(billed, np.arange(billed.shape[1]), count)


def _take_least(billed: Floats, columns: Ints, count: int) -> Ints:
    if count == 1:
        return np.asarray(columns[np.argmin(billed[:, columns], axis=1)][:, None])
    if count < len(columns):
        billed = billed[:, columns]
        return np.asarray(columns[np.argpartition(billed, count, axis=1)[:, :count]])
    return np.repeat(columns[None], len(billed), axis=0)
