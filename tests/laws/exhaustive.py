"""An exhaustive search for the best placement. It shares nothing with the solver but `Problem`.

Every partition's possible rows are listed (any leader, any set whose racks are most even, found by
trying all sets); the counts of a topic are all sums of as many rows as it has new partitions; the
counts of the cluster are all sums over topics of those that are best for their topic. Sets of
sums are merged where they are equal, which leaves nothing out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from typing import NamedTuple

from reconciler.placement.problem import Problem, Wish

Vector = tuple[int, ...]


class Optimum(NamedTuple):
    """The four levels of the best placement, as sums of squares."""

    topic_leaders: int
    topic_replicas: int
    cluster_leaders: int | Fraction
    cluster_replicas: int | Fraction


def search(problem: Problem) -> Optimum:
    """Return the lexicographically least levels, by trying everything."""
    ids = [broker.id for broker in problem.brokers]
    leaders = replicas = 0
    totals = {
        tuple(problem.leaders.get(b, 0) for b in ids)
        + tuple(problem.replicas.get(b, 0) for b in ids)
    }
    for wish in problem.wishes:
        best, counts = best_counts(problem, wish, ids)
        leaders, replicas = leaders + best[0], replicas + best[1]
        weights = (wish.leader_weight,) * len(ids) + (wish.weight,) * len(ids)
        added = {tuple(w * n for w, n in zip(weights, each, strict=True)) for each in counts}
        totals = {add(total, each) for total in totals for each in added}
    n = len(ids)
    prices = price_of_loads(problem)
    cluster = min((scaled(total[:n], prices), scaled(total[n:], prices)) for total in totals)
    return Optimum(leaders, replicas, *cluster)


def best_counts(
    problem: Problem, wish: Wish, ids: list[int]
) -> tuple[tuple[int, int], set[Vector]]:
    """Return a topic's best two levels and all counts (leaders, then replicas) that reach them."""
    n = len(ids)
    existing = [0] * (2 * n)
    for row in wish.existing:
        for place, broker in enumerate(row):
            if broker in ids:
                existing[ids.index(broker)] += place == 0
                existing[n + ids.index(broker)] += 1
    rows = list(row_vectors(problem, wish, ids))
    sums = {(0,) * (2 * n)}
    for _ in range(wish.count):
        sums = {add(total, row) for total in sums for row in rows}
    by_price: dict[tuple[int, int], set[Vector]] = {}
    for counts in sums:
        after = add(tuple(existing), counts)
        by_price.setdefault((squares(after[:n]), squares(after[n:])), set()).add(counts)
    best = min(by_price)
    return best, by_price[best]


def row_vectors(problem: Problem, wish: Wish, ids: list[int]) -> Iterable[Vector]:
    """Yield the counts of every possible row."""
    rack = {b.id: (b.rack or "") if wish.rack_aware else "" for b in problem.brokers}
    sets = list(combinations(ids, wish.replication))
    evenness = {s: squares(Counter(rack[b] for b in s).values()) for s in sets}
    for chosen in sets:
        if evenness[chosen] == min(evenness.values()):
            for leader in chosen:
                yield tuple(int(b == leader) for b in ids) + tuple(int(b in chosen) for b in ids)


def search_partitions(problem: Problem) -> Optimum:
    """Return the same as `search`, without merging: every multiset of rows of every topic."""
    ids = [broker.id for broker in problem.brokers]
    n = len(ids)
    options = []
    for wish in problem.wishes:
        rows = list(row_vectors(problem, wish, ids))
        options.append(list(combinations_with_replacement(rows, wish.count)))
    start = tuple(problem.leaders.get(b, 0) for b in ids) + tuple(
        problem.replicas.get(b, 0) for b in ids
    )
    best = None
    for choice in product(*options):
        total, leaders, replicas = start, 0, 0
        for wish, rows in zip(problem.wishes, choice, strict=True):
            own = tuple(sum(row[0] == b for row in wish.existing) for b in ids)
            own += tuple(sum(b in row for row in wish.existing) for b in ids)
            for row in rows:
                own, total = add(own, row), add(total, row)
            leaders, replicas = leaders + squares(own[:n]), replicas + squares(own[n:])
        found = Optimum(leaders, replicas, squares(total[:n]), squares(total[n:]))
        best = min(best or found, found)
    assert best is not None
    return best


def add(first: Vector, second: Vector) -> Vector:
    return tuple(map(sum, zip(first, second, strict=True)))


def price_of_loads(problem: Problem) -> list[Fraction]:
    """Return what a squared load costs on each broker: less where there is more capacity."""
    return [Fraction(1, problem.capacity.get(broker.id, 1)) for broker in problem.brokers]


def scaled(loads: Iterable[int], prices: Iterable[Fraction]) -> Fraction:
    return sum((p * y * y for y, p in zip(loads, prices, strict=True)), Fraction(0))


def squares(values: Iterable[int]) -> int:
    return sum(v * v for v in values)
