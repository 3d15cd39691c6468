"""The optimal strategy on cases that a pencil can follow, and what each of them teaches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from shorthand import brokers, rows

from reconciler.model.cluster import Broker
from reconciler.model.plan import Level
from reconciler.placement.counts import RackRule
from reconciler.placement.problem import Placed, Problem, Wish, count_load
from reconciler.placement.strategies import place_replicas


def place(nodes: Sequence[Broker], *wishes: Wish, others: str = "") -> Placed:
    """Place wishes on a cluster that holds their existing rows, and some others."""
    leaders, replicas = count_load([rows(others), *(wish.existing for wish in wishes)])
    return place_replicas(Problem(tuple(nodes), leaders, replicas, wishes))


def spread(placed: Placed, wish: Wish, ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return leaders and replicas of a topic by broker, after it was placed."""
    leaders, replicas = count_load([wish.existing, placed.rows[wish.topic]])
    return [leaders[b] for b in ids], [replicas[b] for b in ids]


@pytest.mark.parametrize(
    ("sizes", "replication", "fewest", "most"),
    [
        ((2, 2, 2), 3, (1, 1, 1), (1, 1, 1)),
        ((2, 2, 2), 2, (0, 0, 0), (1, 1, 1)),
        ((2, 2, 1), 3, (1, 1, 1), (1, 1, 1)),
        ((2, 2, 1), 4, (1, 1, 1), (2, 2, 1)),
        ((4, 1), 3, (2, 1), (2, 1)),
        ((5,), 3, (3,), (3,)),
        ((3, 1, 1), 5, (3, 1, 1), (3, 1, 1)),
    ],
)
def test_racks_are_dealt_one_replica_each_for_as_long_as_all_can_get_one(
    sizes: tuple[int, ...], replication: int, fewest: tuple[int, ...], most: tuple[int, ...]
) -> None:
    starts = [sum(sizes[:j]) for j in range(len(sizes))]
    racks = tuple(tuple(range(at, at + n)) for at, n in zip(starts, sizes, strict=True))
    rule = RackRule.deal(racks, replication)
    assert (rule.fewest, rule.most) == (fewest, most)


def test_thirty_partitions_on_nine_brokers_are_even_in_every_way() -> None:
    wish = Wish("orders", (), 30, 3)
    leaders, replicas = spread(place(brokers(*"aaabbbccc"), wish), wish, range(1, 10))
    assert sorted(leaders) == [3] * 6 + [4] * 3
    assert replicas == [10] * 9


def test_racks_win_over_brokers_and_the_number_says_so() -> None:
    """The only broker of rack c has to be in every row."""
    wish = Wish("orders", (), 60, 3)
    placed = place(brokers(*"aabbc"), wish)
    assert spread(placed, wish, range(1, 6)) == ([12] * 5, [30, 30, 30, 30, 60])
    assert [level.skew for level in placed.levels[:4]] == [0, 30, 0, 30]


def test_leaders_come_before_replicas() -> None:
    """The one expansion that cannot have both: leaders 1/1/1, or replicas 2/2/2."""
    wish = Wish("orders", rows("1,2 3,2"), 1, 2)
    placed = place(brokers(None, None, None), wish)
    assert placed.rows["orders"][0][0] == 2
    assert spread(placed, wish, (1, 2, 3))[0] == [1, 1, 1]


def test_squares_see_what_max_minus_min_does_not() -> None:
    """Nobody reaches the broker of ten, so max − min is 9 or 10 whatever becomes of the rest."""
    wish = Wish("orders", rows("1 1 1 1 1 1 1 1 1 1"), 2, 1)
    leaders, _ = spread(place(brokers(*[None] * 4), wish), wish, (1, 2, 3, 4))
    assert sorted(leaders) == [0, 1, 1, 10]


def test_the_least_squares_may_have_a_larger_max_minus_min() -> None:
    """Leaders first, over unequal racks: 176 with a skew of 8, where 178 would have one of 7."""
    old = "2,4 4,5 4,5 4,1 4,1" + 7 * " 5,3"
    wish = Wish("orders", rows(old), 1, 2)
    placed = place(brokers(*"aabbb"), wish)
    topic_replicas = placed.levels[1]
    assert (topic_replicas.level, topic_replicas.reached) == (Level.TOPIC_REPLICAS, 176)
    assert topic_replicas.skew == 8


def test_topics_are_placed_together_and_not_one_after_the_other() -> None:
    """Placed first, a may take broker 1 or 2; only 1 leaves b its broker without a collision."""
    a, b = Wish("a", rows("3"), 1, 1), Wish("b", rows("2 3"), 1, 1)
    placed = place(brokers(None, None, None), a, b, others="1")
    leaders, _ = count_load([rows("1"), a.existing, b.existing, *placed.rows.values()])
    assert [leaders[n] for n in (1, 2, 3)] == [2, 2, 2]


def test_brokers_that_take_nothing_new_keep_what_they_have_and_are_in_no_sum() -> None:
    """Broker 9 is not eligible: its eight leaders freeze nothing."""
    wish = Wish("orders", rows("9 9 9 9 9 9 9 9 1"), 3, 1)
    placed = place(brokers(None, None), wish)
    assert spread(placed, wish, (1, 2)) == ([2, 2], [2, 2])
    assert placed.levels[0].skew == 0


def test_brokers_without_a_rack_are_one_rack() -> None:
    wish = Wish("orders", (), 6, 2)
    placed = place(brokers("a", "a", None, None), wish)
    assert all({b <= 2 for b in row} == {True, False} for row in placed.rows["orders"])


def test_racks_do_not_matter_where_the_wish_says_so() -> None:
    """All pairs of four brokers are used, also those within a rack."""
    wish = Wish("orders", (), 12, 2, rack_aware=False)
    placed = place(brokers("a", "a", "b", "b"), wish)
    assert {frozenset(row) for row in placed.rows["orders"]} >= {frozenset((1, 2))}


def test_a_wish_for_nothing_gets_nothing() -> None:
    placed = place(brokers(None), Wish("orders", rows("1"), 0, 1))
    assert placed.rows == {"orders": ()}
    assert [level.reached for level in placed.levels[:4]] == [0, 0, 1, 1]


def test_neighbouring_partitions_have_different_leaders() -> None:
    led = [row[0] for row in place(brokers(*"abc"), Wish("orders", (), 9, 3)).rows["orders"]]
    assert all(one != other for one, other in pairwise(led))


def test_the_second_replica_differs_from_row_to_row() -> None:
    wish = Wish("orders", (), 36, 3)
    found = place(brokers(*"aabbcc"), wish).rows["orders"]
    heirs = {b: sorted(row[1] for row in found if row[0] == b) for b in range(1, 7)}
    assert all(len(set(after)) == 4 for after in heirs.values())
