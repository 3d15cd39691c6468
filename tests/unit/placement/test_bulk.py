"""Thousands of topics at once: as even as one by one, and heirs scattered."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import pytest

from reconciler.model.cluster import Broker
from reconciler.placement.measure import measure_balance
from reconciler.placement.problem import Placed, Problem, Wish
from reconciler.placement.strategies import place_replicas


def place(
    brokers: int, racks: int, topics: int, partitions: int, load: Mapping[int, int] | None = None
) -> Placed:
    nodes = tuple(Broker(b, f"r{b % racks}") for b in range(brokers))
    wishes = tuple(Wish(f"t{t}", (), partitions, 3) for t in range(topics))
    return place_replicas(Problem(nodes, load or {}, load or {}, wishes))


@pytest.mark.parametrize(
    ("brokers", "racks", "topics", "partitions"),
    [
        (100, 5, 400, 20),
        pytest.param(12, 3, 500, 12, marks=pytest.mark.slow),
        (30, 3, 100, 47),
        pytest.param(100, 1, 300, 25, marks=pytest.mark.slow),
        (9, 3, 2, 3000),
    ],
)
def test_topics_and_cluster_are_even(
    brokers: int, racks: int, topics: int, partitions: int
) -> None:
    placed = place(brokers, racks, topics, partitions)
    for rows in placed.rows.values():
        balance = measure_balance([rows], range(brokers))
        assert balance.leaders.skew <= 1
        assert balance.replicas.skew <= 1
    cluster = measure_balance(placed.rows.values(), range(brokers))
    assert cluster.leaders.skew <= 1
    assert cluster.replicas.skew <= 1
    assert all(level.proven for level in placed.levels[:4])


def test_new_topics_level_a_cluster_that_is_not() -> None:
    load = {b: b % 7 * 10 for b in range(100)}
    placed = place(100, 5, 1000, 20, load)
    assert [level.skew for level in placed.levels[:4]] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("topics", "partitions"), [(1000, 20), pytest.param(12, 5000, marks=pytest.mark.slow)]
)
def test_no_next_leader_takes_over_much_more_than_its_share(topics: int, partitions: int) -> None:
    heirs: dict[int, Counter[int]] = defaultdict(Counter)
    for rows in place(100, 5, topics, partitions).rows.values():
        for row in rows:
            heirs[row[0]][row[1]] += 1
    for after in heirs.values():
        assert max(after.values()) <= 3 * after.total() / 80
