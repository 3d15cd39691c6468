"""Counts become rows: whatever rows the counts came from, rows with the same counts are found."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest
from shorthand import brokers

from reconciler.placement import Problem, Wish, check_placement
from reconciler.placement.counts import Counts, pose
from reconciler.placement.realise import realise
from reconciler.placement.scatter import Heirs

if TYPE_CHECKING:
    from reconciler.model import Replicas
    from reconciler.placement.counts import Ask


def draw_row(rng: Random, ask: Ask) -> Replicas:
    """Draw a row of broker indices that obeys the racks, some brokers likelier than others."""
    while True:
        row = rng.sample(range(len(ask.ids)), ask.wish.replication)
        row.sort(key=lambda b: b * rng.random())
        held = Counter(ask.rule.rack_of[b] for b in row)
        bounds = zip(ask.rule.fewest, ask.rule.most, strict=True)
        if all(low <= held[j] <= high for j, (low, high) in enumerate(bounds)):
            return tuple(row)


def count(rows: list[Replicas], n: int) -> Counts:
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
        ((ask,), _) = pose(problem)
        pool = [draw_row(rng, ask) for _ in range(rng.randint(1, 4))]
        wanted = count([rng.choice(pool) for _ in range(wish.count)], len(racks))
        rows = realise(ask, wanted, Heirs(len(racks)))
        assert check_placement(problem, {"t": rows}) == ()
        assert count([tuple(b - 1 for b in row) for row in rows], len(racks)) == wanted


def test_a_broker_owing_a_replica_to_every_partition_left_is_taken() -> None:
    """Broker 4 has to be in all rows, though the scatter would rather have others."""
    ((ask,), _) = pose(Problem(brokers(*[None] * 4), {}, {}, (Wish("t", (), 3, 2),)))
    rows = realise(ask, Counts([1, 1, 1, 0], [1, 1, 1, 3]), Heirs(4))
    assert sorted(rows) == [(1, 4), (2, 4), (3, 4)]
