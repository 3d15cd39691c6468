"""Kafka's own placement: rows of the real class for the same seed, and what it does not look at."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shorthand import brokers, rows

from reconciler.model.cluster import Broker
from reconciler.placement.kafka_placement import place_like_kafka
from reconciler.placement.problem import Problem, Wish

# From org.apache.kafka.metadata.placement.StripedReplicaPlacer of Kafka 4.4.0,
# new StripedReplicaPlacer(new Random(seed)).place(new PlacementSpec(0, count, replication), …).
RECORDED = [
    (brokers(None, None, None), 1, 1, 3, "1 2 3"),
    (
        brokers("a", "b", "c", "a", "b", "c"),
        3,
        7,
        9,
        "5,6,4 3,1,2 4,5,6 2,3,1 6,4,5 1,2,3 4,5,6 2,3,1 6,4,5",
    ),
    (brokers("a", "a", "b", "b", "c"), 3, 42, 8, "5,2,3 1,4,5 3,5,2 5,1,4 2,3,5 4,2,5 1,5,3 5,4,2"),
    (
        brokers("a", "a", "b", "c", None),
        2,
        2**62 + 1,
        12,
        "5,1 2,3 3,4 4,5 5,1 2,3 3,5 5,4 4,1 2,3 1,3 3,5",
    ),
    (brokers("a", "b"), 2, -5, 5, "1,2 2,1 2,1 1,2 1,2"),
    (brokers(None), 1, 0, 3, "1 1 1"),
]


@pytest.mark.parametrize(("nodes", "replication", "seed", "count", "expected"), RECORDED)
def test_the_same_seed_gives_the_rows_of_the_real_class(
    nodes: tuple[Broker, ...], replication: int, seed: int, count: int, expected: str
) -> None:
    problem = Problem(nodes, {}, {}, (Wish("t", (), count, replication),))
    assert place_like_kafka(problem, seed) == {"t": rows(expected)}


def test_fenced_brokers_follow_where_their_rack_has_no_other_left() -> None:
    """Recorded from the real class too: a rack that is fenced as a whole takes its replica."""
    active = tuple(Broker(n, rack) for n, rack in enumerate("abab", 1))
    fenced = (Broker(7, "c"), Broker(8, "c"), Broker(9, "a"))
    problem = Problem(active, {}, {}, (Wish("t", (), 8, 4),))
    assert place_like_kafka(problem, 11, fenced) == {
        "t": rows("3,2,7,1 4,8,1,2 3,7,2,8 1,4,8,3 3,8,4,7 1,2,7,3 4,8,3,2 1,7,2,8")
    }


def test_neither_existing_replicas_nor_other_load_change_a_throw() -> None:
    nodes = brokers("a", "b", "c")
    new = Wish("t", (), 4, 2)
    expansion = replace(new, existing=rows("1,2 1,2 1,2"))
    loaded = Problem(nodes, {1: 90}, {1: 90, 2: 90}, (expansion,))
    assert place_like_kafka(loaded, 3) == place_like_kafka(Problem(nodes, {}, {}, (new,)), 3)


def test_two_partitions_grown_to_three_leave_a_broker_empty_two_times_in_three() -> None:
    wish = Wish("t", rows("1 2"), 1, 1)
    problem = Problem(brokers(None, None, None), {}, {}, (wish,))
    grown = [place_like_kafka(problem, seed * 0x9E3779B97F4A7C15)["t"] for seed in range(3000)]
    assert sum(row != ((3,),) for row in grown) / 3000 == pytest.approx(2 / 3, abs=0.03)


def test_topics_are_placed_by_name_with_one_generator() -> None:
    nodes = brokers("a", "b", "c")
    wishes = (Wish("b", (), 3, 2), Wish("a", (), 3, 2))
    problem = Problem(nodes, {}, {}, wishes)
    assert place_like_kafka(problem, 5) == place_like_kafka(
        replace(problem, wishes=wishes[::-1]), 5
    )
    alone = place_like_kafka(replace(problem, wishes=wishes[1:]), 5)
    assert place_like_kafka(problem, 5)["a"] == alone["a"]
