"""Balance: preferred leaders and replicas over the brokers that count."""

from __future__ import annotations

from collections import Counter
from statistics import pstdev

import pytest
from shorthand import brokers, rows

from reconciler.model.cluster import Broker
from reconciler.model.plan import Balance, Spread
from reconciler.placement.measure import Quality, count_misplaced, measure_balance, measure_quality
from reconciler.placement.problem import count_load


def test_leaders_are_the_first_of_each_row_and_replicas_are_all() -> None:
    assert measure_balance([rows("1,2 1,3 2,1")], (1, 2, 3)) == Balance(Spread(0, 2), Spread(1, 3))


def test_topics_add_up() -> None:
    balance = measure_balance([rows("1 1"), rows("2"), rows("2 3")], (1, 2, 3))
    assert balance.leaders == Spread(1, 2)


def test_a_broker_that_holds_nothing_counts() -> None:
    assert measure_balance([rows("1 2")], (1, 2, 3)).leaders == Spread(0, 1)


def test_a_broker_that_takes_nothing_new_does_not_count() -> None:
    assert measure_balance([rows("9 9 9 1 2")], (1, 2)).leaders == Spread(1, 1)


def test_without_brokers_everything_is_even() -> None:
    assert measure_balance([rows("1 2")], ()) == Balance(Spread(0, 0), Spread(0, 0))


def test_skew_is_most_minus_least() -> None:
    assert Spread(2, 7).skew == 5


def test_load_counts_leaders_and_replicas_by_broker() -> None:
    assert count_load([rows("1,2 2,1"), rows("1")]) == (
        Counter({1: 2, 2: 1}),
        Counter({1: 3, 2: 2}),
    )


def test_load_of_a_partition_without_replicas_is_nothing() -> None:
    assert count_load([((),)]) == (Counter(), Counter())


def quality(text: str, *racks: str | None) -> Quality:
    return measure_quality([rows(text)], brokers(*racks))


def test_a_topic_in_figures() -> None:
    found = quality("1,2 1,3 1,2 2,3", None, None, None)
    assert found.balance == Balance(Spread(0, 3), Spread(2, 3))
    assert found.leader_deviation == pytest.approx(pstdev([3, 1, 0]))
    assert found.replica_deviation == pytest.approx(pstdev([3, 3, 2]))
    assert (found.partitions, found.misplaced, found.misplaced_share) == (4, 1, 0.25)
    assert found.replica_sets == 3


def test_replica_sets_have_no_order() -> None:
    assert quality("1,2 2,1 2,3", None, None, None).replica_sets == 2


def test_nothing_is_even() -> None:
    found = measure_quality([], brokers("a", "b"))
    assert (found.partitions, found.misplaced_share, found.leader_deviation) == (0, 0.0, 0.0)


def test_what_takes_nothing_new_is_in_no_spread() -> None:
    nodes = (Broker(1), Broker(2), Broker(3, alive=False), Broker(4, cordoned=True))
    found = measure_quality([rows("3 3 3 4 4 1 2")], nodes)
    assert found.balance.leaders == Spread(1, 1)
    assert (found.misplaced, found.leader_deviation) == (0, 0.0)


@pytest.mark.parametrize(
    ("leaders", "misplaced"),
    [
        ((), 0),
        ((2, 2, 2), 0),
        ((3, 2, 2), 0),
        ((2, 1, 0), 1),
        ((2, 0, 2), 1),  # two partitions grown to four on three brokers, out of order
        ((0, 0, 9), 6),
        ((2, 2, 0, 0), 2),
        ((5, 0), 2),
    ],
)
def test_misplaced_is_what_would_have_to_lead_elsewhere(
    leaders: tuple[int, ...], misplaced: int
) -> None:
    assert count_misplaced(leaders) == misplaced


@pytest.mark.parametrize(
    ("text", "racks", "violations"),
    [
        ("1,2,3 4,5,6 1,4,2", "abcabc", 1),
        ("1,4 1,2", "abcabc", 1),
        ("1,2 2,1", "aaa", 0),
        ("2,1,9", "aab", 0),  # 9 is gone, and may have been in b
        ("2,1,9", "aabc", 1),  # it may not have been in two racks
        ("1,2,3,4", "aabc", 0),
        ("1,2,3,5", "aaabb", 1),
    ],
)
def test_rows_that_racks_would_allow_to_be_more_even(
    text: str, racks: str, violations: int
) -> None:
    assert quality(text, *racks).rack_violations == violations


def test_brokers_without_racks_break_no_rule() -> None:
    assert quality("1,2 2,3", None, None, None).rack_violations == 0


def test_a_rack_that_is_down_leaves_no_room() -> None:
    up = brokers("a", "b", "a", "b")
    assert measure_quality([rows("1,2,3")], (*up, Broker(5, "c", alive=False))).rack_violations == 0
    assert measure_quality([rows("1,2,3")], (*up, Broker(5, "c"))).rack_violations == 1
    down = Broker(5, "c", alive=False)
    assert measure_quality([rows("1,5,3")], (*up, down)).rack_violations == 1
    assert measure_quality([rows("1,5,2")], (*up, down)).rack_violations == 0
