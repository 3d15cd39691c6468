"""Counts become rows: whatever rows the counts came from, rows with the same counts are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from shorthand import brokers

from reconciler.model.cluster import Replicas
from reconciler.placement.check import check_placement
from reconciler.placement.counts import Counts, Demand, list_demands
from reconciler.placement.next_leaders import NextLeaders
from reconciler.placement.problem import Problem, Wish
from reconciler.placement.realise import realise


def draw_row(rng: Random, demand: Demand) -> Replicas:
    """Draw a row of broker indices that obeys the racks, some brokers likelier than others."""
    while True:
        row = rng.sample(range(len(demand.ids)), demand.wish.replication)
        row.sort(key=lambda b: b * rng.random())
        held = Counter(demand.rule.rack_of[b] for b in row)
        bounds = zip(demand.rule.fewest, demand.rule.most, strict=True)
        if all(low <= held[j] <= high for j, (low, high) in enumerate(bounds)):
            return tuple(row)


def count(rows: Sequence[Sequence[int]], n: int) -> Counts:
    leaders, replicas = [0] * n, [0] * n
    for row in rows:
        leaders[row[0]] += 1
        for b in row:
            replicas[b] += 1
    return Counts(leaders, replicas)


@pytest.mark.parametrize("racks", ["aabb", "aabbc", "aaaab", "aaaaaa", "abcdef", "aaabbcd"])
@pytest.mark.parametrize("replication", [1, 2, 3, 4])
def test_counts_of_any_rows_are_realised(racks: str, replication: int) -> None:
    rng = Random(f"{racks} {replication}")
    for _ in range(60):
        wish = Wish("t", (), rng.randint(1, 12), replication)
        problem = Problem(brokers(*racks), {}, {}, (wish,))
        ((demand,), _) = list_demands(problem)
        pool = [draw_row(rng, demand) for _ in range(rng.randint(1, 4))]
        wanted = count([rng.choice(pool) for _ in range(wish.count)], len(racks))
        rows = realise(demand, wanted, NextLeaders([-1] * len(racks)))
        named = tuple(tuple(b + 1 for b in row) for row in rows)
        assert check_placement(problem, {"t": named}) == ()
        assert count(rows, len(racks)) == wanted


def test_a_broker_owing_a_replica_to_every_partition_left_is_taken() -> None:
    """Broker 4 has to be in all rows, though next leaders would rather be others."""
    ((demand,), _) = list_demands(Problem(brokers(*[None] * 4), {}, {}, (Wish("t", (), 3, 2),)))
    rows = realise(demand, Counts([1, 1, 1, 0], [1, 1, 1, 3]), NextLeaders([-1] * 4))
    assert sorted(rows) == [[0, 3], [1, 3], [2, 3]]
