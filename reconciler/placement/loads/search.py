"""Rows inside the bands for little: move what frees most for its bytes, undo what is not needed.

No proof of the optimum: reaching a band is NP-hard (partition, bin packing). `bounds` proves how
far from it the rows can be at most. Same problem, same rows: ties are broken by numbers.

The argument: docs/explanation/placement-moves.md, "Balance by load".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, islice, product
from math import inf
from typing import NamedTuple

import numpy as np

from reconciler.placement.loads.bounds import Prices, bound_cost, bound_outside, find_prices
from reconciler.placement.loads.layout import Layout
from reconciler.placement.loads.problem import Floats, Ints, LoadProblem

_ROUNDS = 60
"""Repairs at most; fewer for large clusters, where single units matter less."""

_ROUNDS_OF_LEADS = 300
"""The same where leads move: rounds are fast, and every single lead counts."""

_UNITS = 600_000
"""Units in all repairs."""

_BATCH = 20_000
"""Changes at most that are taken from one evaluation of a large cluster."""

_LARGE = 30_000
"""Units from which changes are taken in batches."""

_LOOKED = 60_000
"""Units that are looked at for one evaluation of a large cluster, if any of them may move."""

_PAIRS = 40_000
"""Pairs of units that are looked at for one exchange."""

_NEAR = 1e-3
"""Scores this near to each other count as equal."""

_FEW = 30_000_000
"""Copies times units, up to which copies are looked at one by one."""

_NEAR_BOUND = 1.0005
"""A cost this near to its bound is not worth another search."""

_NEAR_ENOUGH = 1.02
"""The same for a large cluster, where a search takes seconds."""

_POWERS = (1.0, 0.7, 0.5)
"""A unit scores by its gain through its cost to this power: the lower, the larger the units."""

_REPAIRED = 2
"""The best starts that are repaired."""

_PROMISING = 1.005
"""A cost this near to the best one may become better."""

_COMBINED = 12
"""Copies of which every two and three are undone together."""

_NO_WORSE = 1e-3
"""A share this much further outside is no reason to copy more, if a band is out of reach."""

_TINY = 1e-12
"""Shares of a broker that count as nothing."""


class Balanced(NamedTuple):
    """Rows after a balance by load, and what proves how far they are from the best ones.

    `rows` (P, R) are as in the problem. No rows that leave as little outside cost less than
    `least_cost`, as the `prices` (K, B) prove; `least_outside` is what any rows leave, in shares.
    """

    rows: Ints
    least_cost: float
    least_outside: float
    prices: Floats


def balance_loads(problem: LoadProblem, most: float = inf) -> Balanced:
    """Make the cheapest changes found that bring all loads into their bands.

    If the bands are out of reach, the rows come as near as the search finds, or hardly less near
    for fewer bytes. If all changes would cost more than `most`, those are made that help most for
    their cost. Same problem, same rows.
    """
    best, prices = _search(problem)
    if _rank(best)[0] and len(best.part) < _LARGE:
        best = _cheapen(problem, best)
    if problem.measure_cost(best.now) > most:
        best = Layout(problem)
        best.left = most
        _relieve(best)
    outside = float(problem.measure_outside(best.load).sum())
    least = bound_outside(problem) if outside else 0.0
    return Balanced(best.now, bound_cost(problem, prices, outside), least, prices.prices)


def _search(problem: LoadProblem) -> tuple[Layout, Prices]:
    """Return the cheapest layout found of those that are least outside, and the bound's prices."""
    first = _relieve(Layout(problem))
    prices = find_prices(problem, problem.measure_cost(first.now))
    near = _NEAR_BOUND if len(first.part) < _LARGE else _NEAR_ENOUGH
    found, goal = [first], bound_cost(problem, prices, 0) * near
    for weights, power in _list_starts(problem, prices, len(first.part)):
        if _is_near(found[0], goal):
            break
        found = sorted([*found, _start(problem, weights, power)], key=_rank)
    return min((_repair(each, goal) for each in found[:_REPAIRED]), key=_rank), prices


def _cheapen(problem: LoadProblem, best: Layout) -> Layout:
    """Return a cheaper layout that is hardly further outside than the best one.

    Bands that are out of reach make any gain worth any cost: six times the bytes to be closer by a
    millionth of a share. So what was reached becomes the bands, a little wider, and only the cost
    counts. No broker is further outside than with the best layout, or than it was.
    """
    as_it_is = Layout(problem)
    if _rank(as_it_is)[0] <= _rank(best)[0] + 2 * _NO_WORSE:  # twice, so that a second run stays
        return as_it_is
    outside = problem.measure_outside(best.load)
    before = problem.measure_outside(as_it_is.load)
    part = _NO_WORSE / np.count_nonzero(outside)
    most = np.maximum(outside, np.minimum(outside + part, before)) * (outside > 0)
    more = np.ceil(most * problem.scale[:, None]).astype(np.int64)
    wider = replace(problem, low=problem.low - more, high=problem.high + more)
    near, _ = _search(wider)
    return near if not _rank(near)[0] and near.cost < best.cost else best


def _rank(layout: Layout) -> tuple[float, float]:
    return round(float(layout.weigh_outside().sum()), 12), layout.cost


def _is_near(layout: Layout, goal: float) -> bool:
    """Return whether nothing is outside, and no search would save much."""
    return not _rank(layout)[0] and layout.problem.measure_cost(layout.now) <= goal


def _list_starts(
    problem: LoadProblem, prices: Prices, units: int
) -> Iterator[tuple[Floats | None, float]]:
    """Yield other ways to begin: what a broker outside counts, and the power of the cost.

    By the prices of the bound, what binds counts, and the rest hardly does.
    """
    price = np.abs(prices.prices)
    weights: list[Floats | None] = [None]
    if price.max() > 0 and (len(problem.loads) > 1 or (problem.loads != problem.cost).any()):
        shares = [np.maximum(price / price.max(), floor) for floor in (0.02, 0.2)]
        weights += [share / problem.scale.mean() for share in shares]
    powers = _POWERS if units < _LARGE else _POWERS[:1]
    for power, weight in product(powers, weights):
        if weight is not None or power != 1:
            yield weight, power


def _start(problem: LoadProblem, weights: Floats | None, power: float) -> Layout:
    layout = Layout(problem)
    layout.power = power
    if weights is not None:
        layout.weights, plain = weights, layout.weights
        _reduce(layout)
        layout.weights = plain
    _relieve(layout)
    layout.power = 1.0
    return layout


def _relieve(layout: Layout) -> Layout:
    _reduce(layout)
    _trim(layout)
    return layout


def _reduce(layout: Layout) -> None:
    """Take the best change at the broker furthest outside, until no change helps any broker."""
    stuck: list[int] = []
    while True:
        outside = layout.weigh_outside()
        outside[stuck] = 0
        worst = int(outside.argmax())
        if outside[worst] <= _TINY:
            return
        if _move_best(layout, worst) or _swap_best(layout, worst):
            stuck = []
        else:
            stuck.append(worst)


def _move_best(layout: Layout, broker: int) -> bool:
    """Make the moves from or to a broker that free most for their cost; return whether any did."""
    leaving = np.flatnonzero((layout.place == broker) & layout.movable)
    entering = np.flatnonzero((layout.place != broker) & layout.movable)
    every, one = np.arange(layout.problem.brokers), np.array([broker])
    found = (_weigh(layout, leaving, every), _weigh(layout, entering, one))
    units, targets, gain, cost = (np.concatenate(each) for each in zip(*found, strict=True))
    if not len(units):
        return False
    score = _score(gain, cost, layout.power)
    if len(layout.place) < _LARGE:
        index = _pick(layout, units, targets, gain, score)
        layout.move(int(units[index]), int(targets[index]))
        return True
    best = np.argpartition(-score, _BATCH)[:_BATCH] if len(score) > _BATCH else slice(None)
    units, targets, score = units[best], targets[best], score[best]
    order = np.lexsort((targets, units, -score))
    units, targets = units[order], targets[order]
    _, first = np.unique(layout.part[units], return_index=True)  # one change of each partition
    first = np.sort(first)
    units, targets = units[first], targets[first]
    together = layout.list_independent(units, targets)
    together[0] = True
    layout.move_all(units[together], targets[together])
    return True


def _weigh(layout: Layout, units: Ints, brokers: Ints) -> tuple[Ints, Ints, Floats, Floats]:
    """Return the permitted moves that help: unit, broker, gain and cost, each of one length."""
    gain, cost = layout.weigh_moves(units, brokers)
    helps = (gain > _TINY) & (cost <= layout.left)
    some = np.flatnonzero(helps.any(axis=1))
    permitted = np.zeros_like(helps)
    if len(some) > _LOOKED:  # the best of them first: what a broker needs is mostly among these
        score = np.where(helps[some], _score(gain[some], cost[some], layout.power), 0).max(axis=1)
        best = np.sort(some[np.argpartition(-score, _LOOKED)[:_LOOKED]])
        permitted[best] = helps[best] & layout.list_permitted(units[best], brokers)
    if not permitted.any():
        permitted[some] = helps[some] & layout.list_permitted(units[some], brokers)
    at, column = np.nonzero(permitted)
    return units[at], brokers[column], gain[at, column], cost[at, column]


def _score(gain: Floats, cost: Floats, power: float) -> Floats:
    """Return the gain for the cost; what costs nothing comes first."""
    free = cost <= 0
    return np.where(free, 1e12 * (1 + gain), gain / np.where(free, 1.0, cost) ** power)


def _pick(layout: Layout, units: Ints, targets: Ints, gain: Floats, score: Floats) -> int:
    """Return the best change: of about equal scores the one that gains most, then by fullness."""
    near = np.flatnonzero(score >= score.max() * (1 - _NEAR))
    fullness = (layout.load / layout.problem.scale[:, None]).sum(axis=0)
    slope = fullness[layout.place[units[near]]] - fullness[targets[near]]
    order = np.lexsort((targets[near], units[near], -slope, -gain[near].round(9)))
    return int(near[order[0]])


def _swap_best(layout: Layout, broker: int) -> bool:
    """Make the best exchange of a unit of a broker with one elsewhere. Return whether there is."""
    place = layout.place
    mine = np.flatnonzero((place == broker) & layout.movable)
    others = np.flatnonzero((place != broker) & layout.movable)
    if not len(mine) or not len(others):
        return False
    mine, others = _sample(layout, mine, others)
    first = np.repeat(mine, len(others))
    second = np.tile(others, len(mine))
    gain, cost = layout.weigh_swaps(first, second)
    helps = np.flatnonzero((gain > _TINY) & (cost <= layout.left))
    helps = helps[layout.permits_swap(first[helps], second[helps])]
    if not len(helps):
        return False
    score = _score(gain[helps], cost[helps], layout.power)
    index = int(helps[np.lexsort((second[helps], first[helps], -score))[0]])
    one, other = int(first[index]), int(second[index])
    here, there = int(layout.place[one]), int(layout.place[other])
    layout.move(one, there)
    layout.move(other, here)
    return True


def _sample(layout: Layout, mine: Ints, others: Ints) -> tuple[Ints, Ints]:
    """Thin out units to a number of pairs, evenly by what they carry."""
    carried = (layout.problem.loads / layout.problem.scale[:, None]).sum(axis=0)

    def thin(units: Ints, most: int) -> Ints:
        if len(units) <= most:
            return units
        order = units[np.argsort(carried[layout.part[units]], kind="stable")]
        return order[np.linspace(0, len(order) - 1, most).astype(np.int64)]

    mine = thin(mine, 300)
    return mine, thin(others, max(1, _PAIRS // len(mine)))


def _trim(layout: Layout) -> None:
    """Undo copies that are not needed, and replace others by smaller ones, while that saves."""
    _undo(layout)
    copied = layout.list_copied()
    if len(copied) * len(layout.part) > _FEW:
        return
    for unit in copied[np.lexsort((copied, -layout.price[layout.part[copied]]))]:
        _replace(layout, int(unit))


def _undo(layout: Layout) -> None:
    """Send copied units home, the largest first, if no broker is further outside then."""
    copied = layout.list_copied()
    every = np.arange(layout.problem.brokers)
    gain, cost = layout.weigh_moves(copied, every)
    fits = (gain >= -_TINY / 10) & (cost < 0)
    some = fits.any(axis=1)
    fits[some] &= layout.list_permitted(copied[some], every)
    at, brokers = np.nonzero(fits)
    for index in np.lexsort((brokers, copied[at], cost[at, brokers])):
        unit, broker = copied[at[index]][None], brokers[index][None]
        if layout.place[unit[0]] in layout.problem.rows[layout.part[unit[0]]]:
            continue
        again, _ = layout.weigh_moves(unit, broker)
        if again[0, 0] >= -_TINY / 10 and layout.list_permitted(unit, broker)[0, 0]:
            layout.move(int(unit[0]), int(broker[0]))


def _replace(layout: Layout, unit: int) -> bool:
    """Copy a cheaper unit from where this one was, instead of this one."""
    target, one = int(layout.place[unit]), np.array([unit])
    homes = layout.list_homes(unit)
    before = float(layout.weigh_outside().sum())
    price = layout.price[layout.part]
    for home in homes[layout.list_permitted(one, homes)[0]] if len(homes) else ():
        layout.move(unit, int(home))
        worse = float(layout.weigh_outside().sum()) - before
        units = np.flatnonzero((layout.place == home) & layout.movable & (price < price[unit]))
        if len(units):
            to = np.array([target])
            gain, cost = layout.weigh_moves(units, to)
            fits = (gain[:, 0] >= worse - _TINY / 10) & (cost[:, 0] < price[unit])
            fits[fits] = layout.list_permitted(units[fits], to)[:, 0]
            if fits.any():
                chosen = units[fits]
                best = chosen[np.lexsort((chosen, cost[fits, 0]))[0]]
                layout.move(int(best), target)
                return True
        layout.move(unit, target)
    return False


def _repair(layout: Layout, goal: float) -> Layout:
    """Undo some copies, without these units, and fill in anew; keep what is better."""
    best, rank, better = layout, _rank(layout), True
    most = _ROUNDS if layout.problem.within is None else _ROUNDS_OF_LEADS
    rounds = min(most, _UNITS // max(1, len(layout.part)))
    while better:
        better = False
        for undone in islice(_list_groups(best), rounds):
            if _is_near(best, goal):
                return best
            rounds -= 1
            trial = _redo(best, undone)
            if _rank(trial) < (rank[0], rank[1] * _PROMISING):
                _trim(trial)
            if _rank(trial) < rank:
                best, rank, better = trial, _rank(trial), True
    return _kick(best) if rank[0] else best


def _kick(layout: Layout) -> Layout:
    """Move a unit though that makes it worse, and see what follows: one large for some small."""
    best, rank = layout, _rank(layout)
    rounds = min(_ROUNDS_OF_LEADS, _UNITS // max(1, len(layout.part)))
    for unit, broker in islice(_list_kicks(layout), rounds):
        one, to = np.array([unit]), np.array([broker])
        if not best.list_permitted(one, to)[0, 0]:
            continue
        trial = best.copy()
        trial.move(unit, broker)
        trial.movable = best.movable.copy()
        trial.movable[unit] = False
        _reduce(trial)
        trial.movable = best.movable
        _trim(trial)
        if _rank(trial) < rank:
            best, rank = trial, _rank(trial)
    return best


def _list_kicks(layout: Layout) -> Iterator[tuple[int, int]]:
    """Yield units of brokers that are outside, and where they could go; and the other way."""
    outside = layout.weigh_outside()
    order = np.argsort(-outside, kind="stable")
    for broker in order[outside[order] > _TINY]:
        every = np.arange(layout.problem.brokers)
        leaving = np.flatnonzero((layout.place == broker) & layout.movable)
        entering = np.flatnonzero((layout.place != broker) & layout.movable)
        for units, targets in ((leaving, every), (entering, broker[None])):
            at, to = np.nonzero(layout.list_permitted(units, targets))
            yield from zip(units[at].tolist(), targets[to].tolist(), strict=True)


def _redo(layout: Layout, undone: Sequence[int]) -> Layout:
    """Return the layout with some copies undone, and others made instead."""
    trial = layout.copy()
    gone = [unit for unit in undone if _send_home(trial, unit)]
    movable = trial.movable
    trial.movable = movable.copy()
    trial.movable[gone] = False
    _reduce(trial)
    trial.movable = movable
    _reduce(trial)
    _undo(trial)
    return trial


def _send_home(layout: Layout, unit: int) -> bool:
    one, homes = np.array([unit]), layout.list_homes(unit)
    if not len(homes) or layout.place[unit] in layout.problem.rows[layout.part[unit]]:
        return False
    allowed = layout.list_permitted(one, homes)[0]
    if not allowed.any():
        return False
    layout.move(unit, int(homes[allowed.argmax()]))
    return True


def _list_groups(layout: Layout) -> Iterator[Sequence[int]]:
    """Yield the copies to undo together: one, those of a broker, and neighbours by size."""
    copied = layout.list_copied()
    copied = copied[np.lexsort((copied, -layout.price[layout.part[copied]]))]
    to, of = layout.place[copied], layout.problem.rows[layout.part[copied], layout.slot[copied]]
    for unit in copied:
        yield [int(unit)]
    for broker in range(layout.problem.brokers):
        for chosen in (copied[to == broker].tolist(), copied[of == broker].tolist()):
            if len(chosen) > 1:
                yield chosen[:3]
                yield chosen[-3:]
    for step in (1, 2, 3, 5):
        yield from zip(copied.tolist(), copied[step:].tolist(), strict=False)
    some = copied[:_COMBINED].tolist()
    yield from combinations(some, 2)
    yield from combinations(some, 3)
