"""What Kafka's dice would have risked."""

from __future__ import annotations

import pytest
from shorthand import brokers, rows

from reconciler.show.explain.odds import weigh_odds
from reconciler.show.explain.reasons import Growth


def test_nothing_new_is_nothing_risked() -> None:
    assert weigh_odds(Growth(brokers(None), rows("1"), ())) is None


def test_two_partitions_grown_to_three_end_uneven_two_times_in_three() -> None:
    odds = weigh_odds(Growth(brokers(None, None, None), rows("1 2"), rows("3")))
    assert odds is not None
    assert odds.throws == 200
    # One of three brokers makes 1/1/1, the others 2/1/0.
    assert odds.leaders.expected == pytest.approx(2 * 2 / 3, abs=0.2)
    assert odds.leaders.worst == 2
    assert odds.replicas == odds.leaders


def test_thirty_partitions_on_nine_brokers_lock_their_strides() -> None:
    """The published measurement of the real class: 7.2 on average, 10 at worst."""
    nodes = brokers(*"abcabcabc")
    odds = weigh_odds(Growth(nodes, (), rows("1,2,3 " * 30)))
    assert odds is not None
    assert odds.leaders.expected == pytest.approx(7.2, abs=0.3)
    assert odds.leaders.worst == 10


def test_the_same_question_gets_the_same_answer() -> None:
    growth = Growth(brokers("a", "b"), (), rows("1,2 1,2"))
    assert weigh_odds(growth) == weigh_odds(growth)


def test_wide_topics_are_thrown_less_often() -> None:
    odds = weigh_odds(Growth(brokers(None, None), (), rows("1,2 " * 2500)))
    assert odds is not None
    assert odds.throws == 40
