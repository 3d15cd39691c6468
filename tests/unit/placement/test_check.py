"""The checker: it takes a good answer, and names every way of spoiling one."""

from __future__ import annotations

import pytest
from shorthand import brokers, rows

from reconciler.placement.check import check_placement
from reconciler.placement.problem import Placed, Problem, Wish
from reconciler.placement.strategies import STRATEGIES, place_replicas

NODES = brokers("a", "a", "b", "b", "c")
WISH = Wish("t", rows("1,3,5"), 2, 3)
PROBLEM = Problem(NODES, {}, {}, (WISH,))
GOOD = rows("2,3,5 4,5,1")


def found(text: str, problem: Problem = PROBLEM) -> tuple[str, ...]:
    """Return the violations of placing these rows."""
    return check_placement(problem, {"t": rows(text)})


def with_wish(wish: Wish) -> Problem:
    return Problem(NODES, {}, {}, (wish,))


def test_a_sound_answer_has_no_violations() -> None:
    assert check_placement(PROBLEM, {"t": GOOD}) == ()


def test_a_topic_that_nobody_wished_for() -> None:
    placed = {"t": GOOD, "z": rows("1"), "b": ()}
    assert check_placement(PROBLEM, placed) == (
        "b: placed without a wish",
        "z: placed without a wish",
    )


def test_a_wish_that_is_not_answered() -> None:
    assert check_placement(PROBLEM, {}) == ("t: 0 rows for 2 new partitions",)


def test_a_row_too_few() -> None:
    assert found("2,3,5") == ("t: 1 rows for 2 new partitions",)


def test_a_row_too_many() -> None:
    assert found("2,3,5 4,5,1 2,3,5") == ("t: 3 rows for 2 new partitions",)


def test_a_replica_too_few() -> None:
    assert found("2,3,5 4,5") == ("t partition 2: 2 replicas instead of 3",)


def test_a_replica_too_many() -> None:
    assert found("2,3,5,1 4,5,1") == ("t partition 1: 4 replicas instead of 3",)


def test_an_empty_row() -> None:
    placed = {"t": ((), (4, 5, 1))}
    assert check_placement(PROBLEM, placed) == ("t partition 1: 0 replicas instead of 3",)


def test_a_broker_twice() -> None:
    wish = Wish("t", (), 1, 3, rack_aware=False)
    assert found("2,3,2", with_wish(wish)) == ("t partition 0: a broker twice in [2, 3, 2]",)


def test_a_broker_that_takes_nothing_new() -> None:
    assert found("2,3,5 9,7,1") == ("t partition 2: brokers [7, 9] may take nothing new",)


def test_two_replicas_in_a_rack_while_another_has_none() -> None:
    assert found("1,2,3 4,5,1") == (
        "t partition 1: [1, 2, 3] is not spread over the racks as evenly as they allow",
    )


def test_racks_are_free_where_the_wish_says_so() -> None:
    assert found("1,2,3", with_wish(Wish("t", (), 1, 3, rack_aware=False))) == ()


def test_a_full_rack_cannot_take_its_share() -> None:
    """Four replicas over racks of 2, 2 and 1: two racks hold two, whichever."""
    nodes = with_wish(Wish("t", (), 1, 5))
    assert found("1,2,3,4,5", nodes) == ()


@pytest.mark.parametrize("row", ["1,2,3,4", "3,4,1,2"])
def test_a_rack_with_a_free_broker_is_not_left_out(row: str) -> None:
    assert len(found(row, with_wish(Wish("t", (), 1, 4)))) == 1


@pytest.mark.parametrize("row", ["1,2,3,5", "3,5,1,4"])
def test_one_more_than_the_other_racks_is_even(row: str) -> None:
    assert found(row, with_wish(Wish("t", (), 1, 4))) == ()


def test_brokers_without_a_rack_are_a_rack_of_their_own() -> None:
    nodes = brokers("a", None, None)
    problem = Problem(nodes, {}, {}, (Wish("t", (), 1, 2),))
    assert found("1,2", problem) == ()
    assert len(found("2,3", problem)) == 1


def test_every_violation_is_told_at_once() -> None:
    assert found("1,2,3,3") == (
        "t: 1 rows for 2 new partitions",
        "t partition 1: 4 replicas instead of 3",
        "t partition 1: a broker twice in [1, 2, 3, 3]",
        "t partition 1: [1, 2, 3, 3] is not spread over the racks as evenly as they allow",
    )


def test_an_unsound_strategy_never_gets_through(monkeypatch: pytest.MonkeyPatch) -> None:
    spoilt = {"spoilt": lambda _: Placed({"t": rows("1,2,3 4,5,1")})}
    monkeypatch.setattr("reconciler.placement.strategies.STRATEGIES", {**STRATEGIES, **spoilt})
    with pytest.raises(AssertionError, match=r"t partition 1: \[1, 2, 3\] is not spread"):
        place_replicas(PROBLEM, "spoilt")
