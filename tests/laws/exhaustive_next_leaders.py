"""All placements of a tiny problem, next leaders included. It shares nothing with the solver.

A placement counts as one vector: leaders and replicas on each broker, then n(a, b), how often b is
next after leader a, then m(j, b), how often b leads next if all of rack j is lost. The vectors of a
topic are all sums of as many possible rows as it has new partitions, in any order of followers.
Only equal vectors are merged, and only those that miss levels one to four are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import combinations_with_replacement, permutations
from math import comb, lcm
from typing import TYPE_CHECKING, NamedTuple

import exhaustive
import numpy as np

from reconciler.model.cluster import Assignment, Replicas
from reconciler.placement.problem import Problem, Wish

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


class Best(NamedTuple):
    """The six levels of the best placement; what levels five and six could have each alone."""

    levels: tuple[int, ...]
    least: tuple[int, int]
    least_most: tuple[int, int]


class TooMany(Exception):  # noqa: N818 (not an error: the caller draws another problem)
    """A problem has more placements than are worth trying."""


class Space:
    """The vectors of a problem's placements. Weights have to be equal."""

    def __init__(self, problem: Problem, most: int = 30_000) -> None:
        self.problem, self.most = problem, most
        self.ids = sorted(broker.id for broker in problem.brokers)
        self.rack = {b.id: b.rack for b in problem.brokers}
        self.alive = self.rack | {b.id: b.rack for b in problem.also_alive}
        self.racks = sorted({rack for rack in self.rack.values() if rack is not None})
        if len(set(self.rack.values())) == 1:
            self.racks = []  # nobody is left to lead
        n = len(self.ids)
        self.ends = (n, 2 * n, 2 * n + n * n, 2 * n + n * n + n * len(self.racks))

    def search(self) -> Best:
        """Try everything. Errors: TooMany."""
        totals = self.before[None]
        for wish in self.problem.wishes:
            found = self._best_of_topic(wish)
            self._limit(len(totals) * len(found))
            totals = np.unique((totals[:, None] + found).reshape(-1, self.ends[-1]), axis=0)
        topics = self._topic_levels
        for level in (2, 3):
            price = self.cluster_levels(totals)[level - 2]
            totals = totals[price == price.min()]
        prices = self.cluster_levels(totals)
        after, beyond = prices[2:]
        best = min(zip(after.tolist(), beyond.tolist(), strict=True))
        levels = (*topics, int(prices[0][0]), int(prices[1][0]), *best)
        mosts = [int(part.max(axis=1, initial=0).min()) for part in self._tables(totals)]
        return Best(levels, (int(after.min()), int(beyond.min())), (mosts[0], mosts[1]))

    def measure(self, rows: Mapping[str, Assignment]) -> tuple[tuple[int, ...], tuple[int, int]]:
        """Return all six levels of an answer, and the most that one broker takes over."""
        total, topics = self.before.copy(), [0, 0]
        for wish in self.problem.wishes:
            new = self._sum(rows[wish.topic])
            total += new
            for level, price in enumerate(self._price_topic(wish, new[None])):
                topics[level] += int(price[0])
        cluster = [int(price[0]) for price in self.cluster_levels(total[None])]
        mosts = [int(part.max(initial=0)) for part in self._tables(total[None])]
        return (*topics, *cluster), (mosts[0], mosts[1])

    @cached_property
    def before(self) -> Ints:
        """What the cluster holds: loads as the problem says, next leaders of all its rows."""
        vector = np.zeros(self.ends[-1], dtype=np.int64)
        for rows in (*self.problem.others, *(wish.existing for wish in self.problem.wishes)):
            vector += self._sum(rows)
        n = len(self.ids)
        vector[:n] = [self.problem.leaders.get(b, 0) for b in self.ids]
        vector[n : 2 * n] = [self.problem.replicas.get(b, 0) for b in self.ids]
        return vector

    def cluster_levels(self, totals: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Return levels three to six of some vectors. Capacities make the first two larger."""
        capacity = [self.problem.capacity.get(b, 1) for b in self.ids]
        prices = np.array([lcm(*capacity) // c for c in capacity])
        leaders, replicas, after, beyond = np.split(totals, self.ends[:3], axis=1)
        loads = [(part**2 * prices).sum(axis=1) for part in (leaders, replicas)]
        return loads[0], loads[1], (after**2).sum(axis=1), (beyond**2).sum(axis=1)

    def _tables(self, totals: Ints) -> list[Ints]:
        return np.split(totals, self.ends[:3], axis=1)[2:]

    def _best_of_topic(self, wish: Wish) -> Ints:
        """Return the different vectors that are best on the two levels of a topic."""
        rows = np.unique([self._count(row) for row in self._possible_rows(wish)], axis=0)
        self._limit(comb(len(rows) + wish.count - 1, wish.count))
        chosen = list(combinations_with_replacement(range(len(rows)), wish.count))
        found = rows[np.array(chosen)].sum(axis=1)
        for level in (0, 1):
            price = self._price_topic(wish, found)[level]
            found = found[price == price.min()]
        return np.unique(found, axis=0)

    @property
    def _topic_levels(self) -> tuple[int, int]:
        each = [exhaustive.best_counts(self.problem, w, self.ids)[0] for w in self.problem.wishes]
        return sum(leaders for leaders, _ in each), sum(replicas for _, replicas in each)

    def _possible_rows(self, wish: Wish) -> Iterable[Replicas]:
        for counts in exhaustive.row_vectors(self.problem, wish, self.ids):
            n = len(self.ids)
            leader = self.ids[counts[:n].index(1)]
            followers = [b for b, held in zip(self.ids, counts[n:], strict=True) if held]
            followers.remove(leader)
            for order in permutations(followers):
                yield leader, *order

    def _price_topic(self, wish: Wish, new: Ints) -> list[Ints]:
        n = len(self.ids)
        return [
            (part**2).sum(axis=1)
            for part in np.split((self._sum(wish.existing) + new)[:, : 2 * n], 2, axis=1)
        ]

    def _sum(self, rows: Iterable[Replicas]) -> Ints:
        vectors = [self._count(row) for row in rows]
        total: Ints = np.array(vectors, dtype=np.int64).reshape(-1, self.ends[-1]).sum(axis=0)
        return total

    def _count(self, row: Replicas) -> list[int]:
        """Return the vector of one row; brokers that take nothing new are in no count.

        Who leads, and who leads next, is found among those that are alive.
        """
        vector, n = [0] * self.ends[-1], len(self.ids)
        place = {b: at for at, b in enumerate(self.ids)}
        for at, b in enumerate(row):
            if b in place:
                vector[place[b]] += at == 0
                vector[n + place[b]] += 1
        row = tuple(b for b in row if b in self.alive)
        if not row or row[0] not in place:
            return vector
        if row[1:2] and row[1] in place:
            vector[2 * n + n * place[row[0]] + place[row[1]]] = 1
        if (home := self.alive[row[0]]) in self.racks:
            outside = [b for b in row[1:] if self.alive[b] != home]
            if outside and outside[0] in place:
                at = self.racks.index(home) * n + place[outside[0]]
                vector[self.ends[2] + at] = 1
        return vector

    def _limit(self, placements: int) -> None:
        if placements > self.most:
            raise TooMany
