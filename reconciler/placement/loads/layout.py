"""Rows while a search changes them: loads that follow, and what one more change would gain.

The argument: docs/explanation/placement-moves.md, "Balance by load".
"""

from __future__ import annotations

from math import inf

import numpy as np

from reconciler.placement.loads.problem import NOBODY, Flags, Floats, Ints, LoadProblem


class Layout:
    """Units on brokers. `place` (U) is the broker of each unit, and `part` (U) its partition.

    `load` (K, B) follows the changes. `weights` (K, B) say what one unit of load outside a band
    counts; by default it is counted in shares. `power` is that of the cost in a score. `left` is
    what changes may still cost, without surcharges, and `room` (B) what copies to a broker may.
    """

    def __init__(self, problem: LoadProblem) -> None:
        self.problem = problem
        self.now = problem.rows.copy()
        self.load = problem.add_up(problem.rows)
        self.weights = np.repeat(1 / problem.scale[:, None], problem.brokers, axis=1)
        self.power = 1.0
        self.left = inf
        no_limit = np.full(problem.brokers, np.iinfo(np.int64).max)
        self.room = no_limit if problem.room is None else problem.room.copy()
        held = problem.rows != NOBODY
        self.part = np.flatnonzero(held) // problem.rows.shape[1]
        self.slot = np.flatnonzero(held) % problem.rows.shape[1]
        self.place = problem.rows[held]
        self.movable = problem.movable[self.part]
        self.price = problem.cost + problem.surcharge
        self._counts, self._least, self._most = count_topics(problem)
        held_by_racks = self._count_racks(problem.rows)
        self._fullest, self._reach = held_by_racks.max(axis=1), (held_by_racks > 0).sum(axis=1)
        self._racked = bool(problem.racks.any()) and problem.within is None

    def copy(self) -> Layout:
        """Return the same units, to change them apart from these."""
        other = object.__new__(Layout)
        other.__dict__.update(self.__dict__)
        for name in ("now", "place", "load", "room", "_counts"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def weigh_outside(self) -> Floats:
        """Return what of each broker (B) is outside its bands, by the weights."""
        problem = self.problem
        outside = np.maximum(np.maximum(self.load - problem.high, problem.low - self.load), 0)
        return np.asarray((outside * self.weights).sum(axis=0))

    def list_permitted(self, units: Ints, brokers: Ints) -> Flags:
        """Return (n, m) whether each unit may go to each broker, and leave its own."""
        problem, part = self.problem, self.part[units]
        rows = self.now[part]
        allowed = problem.receivers[brokers] & self.movable[units][:, None]
        allowed = allowed & ~(rows[:, :, None] == brokers).any(axis=1)
        if problem.within is not None:
            return np.asarray(allowed & (problem.within[part][:, :, None] == brokers).any(axis=1))
        if problem.room is not None:
            fits = problem.cost[part][:, None] <= self.room[brokers]
            allowed &= fits | (problem.rows[part][:, :, None] == brokers).any(axis=1)
        if self._racked:
            allowed &= self._keeps_racks(units, rows, brokers)
        if problem.spread is not None:
            topics, source = problem.topics[part], self.place[units]
            leaves = self._counts[topics, source] > self._least[topics]
            room = self._counts[topics][:, brokers] < self._most[topics][:, None]
            allowed &= leaves[:, None] & room
        return np.asarray(allowed)

    def permits_swap(self, first: Ints, second: Ints) -> Flags:
        """Return (n) whether pairs of units may exchange their brokers."""
        problem, here, there = self.problem, self.place[first], self.place[second]
        one, other = self.part[first], self.part[second]
        allowed = self.movable[first] & self.movable[second] & (one != other)
        allowed &= problem.receivers[here] & problem.receivers[there]
        allowed &= ~(self.now[one] == there[:, None]).any(axis=1)
        allowed &= ~(self.now[other] == here[:, None]).any(axis=1)
        if problem.within is not None:
            allowed &= (problem.within[one] == there[:, None]).any(axis=1)
            return np.asarray(allowed & (problem.within[other] == here[:, None]).any(axis=1))
        if problem.room is not None:
            for part, to in ((one, there), (other, here)):
                allowed &= (problem.cost[part] <= self.room[to]) | self._is_home(part, to)
        if self._racked:
            allowed &= self._keeps_rack(first, there) & self._keeps_rack(second, here)
        if problem.spread is not None:
            topics, others = problem.topics[one], problem.topics[other]
            leaves = self._counts[topics, here] > self._least[topics]
            leaves &= self._counts[others, there] > self._least[others]
            leaves &= self._counts[topics, there] < self._most[topics]
            leaves &= self._counts[others, here] < self._most[others]
            allowed &= leaves | (topics == others)
        return np.asarray(allowed)

    def weigh_moves(self, units: Ints, brokers: Ints) -> tuple[Floats, Floats]:
        """Return (n, m) what is outside less if a unit goes to a broker, and what more it costs."""
        part, source = self.part[units], self.place[units]
        gain = np.zeros((len(units), len(brokers)))
        for k, amounts in enumerate(self.problem.loads[:, part]):
            before = self._weigh(k, source, self.load[k, source])
            freed = before - self._weigh(k, source, self.load[k, source] - amounts)
            now = self._weigh(k, brokers, self.load[k, brokers])
            then = self._weigh(k, brokers, self.load[k, brokers] + amounts[:, None])
            gain += freed[:, None] + now - then
        price = self.price[part]
        cost = price[:, None] * ~(self.problem.rows[part][:, :, None] == brokers).any(axis=1)
        return gain, cost - (price * ~self._is_home(part, source))[:, None]

    def weigh_swaps(self, first: Ints, second: Ints) -> tuple[Floats, Floats]:
        """Return (n) what is outside less if pairs of units exchange brokers, and what it costs."""
        here, there = self.place[first], self.place[second]
        one, other = self.part[first], self.part[second]
        gain = np.zeros(len(first))
        for k, amounts in enumerate(self.problem.loads):
            shift = amounts[other] - amounts[one]
            for broker, change in ((here, shift), (there, -shift)):
                gain += self._weigh(k, broker, self.load[k, broker])
                gain -= self._weigh(k, broker, self.load[k, broker] + change)
        cost = np.zeros(len(first))
        for part, old, new in ((one, here, there), (other, there, here)):
            changed = ~self._is_home(part, new) * 1.0 - ~self._is_home(part, old)
            cost += self.price[part] * changed
        return gain, cost

    def move(self, unit: int, broker: int) -> None:
        """Put a unit on another broker."""
        problem, part = self.problem, self.part[unit]
        source = self.place[unit]
        old, new = (b not in problem.rows[part] for b in (source, broker))
        self.left -= problem.cost[part] * (int(new) - int(old))
        if problem.room is not None:
            self.room[source] += problem.cost[part] * int(old)
            self.room[broker] -= problem.cost[part] * int(new)
        self.now[part, self.slot[unit]] = self.place[unit] = broker
        self.load[:, source] -= problem.loads[:, part]
        self.load[:, broker] += problem.loads[:, part]
        if problem.spread is not None:
            self._counts[problem.topics[part], source] -= 1
            self._counts[problem.topics[part], broker] += 1

    def list_independent(self, units: Ints, brokers: Ints) -> Flags:
        """Return (n) which moves may be made together, each with the gain that it has alone.

        In: permitted moves of different partitions, the best first. Those before each one count as
        made: what is outside a band does not come inside, and what is inside stays there.
        """
        problem, part, source = self.problem, self.part[units], self.place[units]
        fits = np.ones(len(units), dtype=bool)
        low, high = problem.low, problem.high
        leaves = np.where(self.load > high, self.load - high, self.load - low)
        enters = np.where(self.load < low, low - self.load, high - self.load)
        for amounts, least, most in zip(problem.loads[:, part], leaves, enters, strict=True):
            fits &= _add_before(source, amounts) <= least[source]
            fits &= _add_before(brokers, amounts) <= most[brokers]
        if problem.room is not None:
            fits &= _add_before(brokers, problem.cost[part]) <= self.room[brokers]
        if problem.spread is not None and problem.within is None:
            topics, one = problem.topics[part], np.ones(len(units), dtype=np.int64)
            counts, count = self._counts, problem.brokers
            surplus = counts[topics, source] - self._least[topics]
            room = self._most[topics] - counts[topics, brokers]
            fits &= _add_before(topics * count + source, one) <= surplus
            fits &= _add_before(topics * count + brokers, one) <= room
        return np.asarray(fits & (np.cumsum(problem.cost[part]) <= self.left))

    def move_all(self, units: Ints, brokers: Ints) -> None:
        """Put units of different partitions on other brokers."""
        problem, part, source = self.problem, self.part[units], self.place[units]
        cost = problem.cost[part]
        new, old = cost * ~self._is_home(part, brokers), cost * ~self._is_home(part, source)
        self.left -= float((new - old).sum())
        if problem.room is not None:
            np.add.at(self.room, source, old)
            np.subtract.at(self.room, brokers, new)
        self.now[part, self.slot[units]] = self.place[units] = brokers
        for load, amounts in zip(self.load, problem.loads[:, part], strict=True):
            np.subtract.at(load, source, amounts)
            np.add.at(load, brokers, amounts)
        if problem.spread is not None and problem.within is None:
            np.subtract.at(self._counts, (problem.topics[part], source), 1)
            np.add.at(self._counts, (problem.topics[part], brokers), 1)

    def list_copied(self) -> Ints:
        """Return the units on brokers that did not have one of their partition."""
        changed = np.flatnonzero(self.place != self.problem.rows[self.part, self.slot])
        return changed[~self._is_home(self.part[changed], self.place[changed])]

    def list_homes(self, unit: int) -> Ints:
        """Return the brokers that had a unit of the same partition and have none now."""
        part = self.part[unit]
        now = self.now[part].tolist()
        had = [b for b in self.problem.rows[part].tolist() if b != NOBODY and b not in now]
        return np.array(had, dtype=np.int64)

    @property
    def cost(self) -> float:
        """What all copies cost, with the surcharge of each."""
        new = self.problem.count_new(self.now)
        return float((new * self.price).sum())

    def _is_home(self, part: Ints, broker: Ints) -> Flags:
        return np.asarray((self.problem.rows[part] == broker[:, None]).any(axis=1))

    def _weigh(self, k: int, brokers: Ints, load: Ints) -> Floats:
        low, high = self.problem.low[k, brokers], self.problem.high[k, brokers]
        outside = np.maximum(np.maximum(load - high, low - load), 0)
        return np.asarray(outside * self.weights[k, brokers])

    def _count_racks(self, rows: Ints) -> Ints:
        racks = self.problem.racks
        names = np.arange(racks.max() + 1)
        of_row = np.where(rows == NOBODY, NOBODY, racks[rows])
        return np.asarray((of_row[:, :, None] == names).sum(axis=1))

    def _keeps_racks(self, units: Ints, rows: Ints, brokers: Ints) -> Flags:
        """Return (n, m) whether a row stays as spread over the racks as it was."""
        racks, part = self.problem.racks, self.part[units]
        held = self._count_racks(rows)
        leaves = racks[self.place[units]]
        held[np.arange(len(units)), leaves] -= 1
        reach = (held > 0).sum(axis=1)
        fits = held < self._fullest[part][:, None]
        fits &= (reach[:, None] + (held == 0)) >= self._reach[part][:, None]
        fits[np.arange(len(units)), leaves] = True
        return np.asarray(fits[:, racks[brokers]])

    def _keeps_rack(self, units: Ints, brokers: Ints) -> Flags:
        """Return (n) the same for one broker of each unit."""
        racks, part = self.problem.racks, self.part[units]
        held = self._count_racks(self.now[part])
        each, leaves, to = np.arange(len(units)), racks[self.place[units]], racks[brokers]
        held[each, leaves] -= 1
        fits = held[each, to] < self._fullest[part]
        fits &= (held > 0).sum(axis=1) + (held[each, to] == 0) >= self._reach[part]
        return np.asarray(fits | (leaves == to))


def _add_before(groups: Ints, amounts: Ints) -> Ints:
    """Return (n) the sum of the amounts of each group, up to and with each item."""
    order = np.argsort(groups, kind="stable")
    sums = np.cumsum(amounts[order])
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    before = np.repeat(sums[starts] - amounts[order][starts], np.diff(starts, append=len(order)))
    added = np.empty_like(sums)
    added[order] = sums - before
    return added


def count_topics(problem: LoadProblem) -> tuple[Ints, Ints, Ints]:
    """Return the replicas of each topic on each broker, and how few and many it may have there."""
    if problem.spread is None or problem.within is not None:
        empty = np.zeros((0, 0), dtype=np.int64)
        return empty, empty, empty
    held = problem.rows != NOBODY
    counts = np.zeros((problem.topics.max(initial=-1) + 1, problem.brokers), dtype=np.int64)
    of_unit = np.broadcast_to(problem.topics[:, None], problem.rows.shape)[held]
    np.add.at(counts, (of_unit, problem.rows[held]), 1)
    total = counts.sum(axis=1)
    least = np.minimum(total // problem.brokers, counts.min(axis=1)) - problem.spread
    most = np.maximum(-(-total // problem.brokers), counts.max(axis=1)) + problem.spread
    return counts, np.maximum(least, 0), most
