"""Balance: preferred leaders and replicas over the brokers that count."""

from __future__ import annotations

from collections import Counter

from shorthand import rows

from reconciler.model import Balance, Spread
from reconciler.placement import count_load, measure_balance


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
