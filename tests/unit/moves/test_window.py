"""Which rows of a plan of moves start first, and how many at one time."""

from __future__ import annotations

import pytest

from reconciler.model.moves import MovePolicy
from reconciler.moves.window import RowMove, Seats, order_moves

POLICY = MovePolicy(frozenset(), 1, at_once_cluster=3, at_once_broker=2)


def row(
    number: int, old: str, new: str, *, size: int = 0, leader: int | None = None, topic: str = "a"
) -> RowMove:
    """Return partition `number` on its way from one row to another."""
    before, after = (tuple(map(int, text.split(","))) for text in (old, new))
    lead = before[0] if leader is None else leader
    return RowMove((topic, number), before, after, lead, size, internal=topic.startswith("__"))


def numbers(moves: list[RowMove]) -> list[int]:
    return [move.place[1] for move in moves]


def test_what_a_row_adds_and_removes() -> None:
    move = row(0, "1,2,3", "4,2,1")
    assert (move.adding, move.removing) == ((4,), (3,))


def test_the_largest_comes_first() -> None:
    moves = [row(0, "1", "2", size=5), row(1, "1", "2", size=9), row(2, "1", "2")]
    assert numbers(order_moves(moves, {})) == [1, 0, 2]


def test_the_fullest_broker_is_left_first() -> None:
    moves = [row(0, "1", "3", size=9), row(1, "2", "3", size=5)]
    assert numbers(order_moves(moves, {1: 0.5, 2: 0.7})) == [1, 0]


def test_a_row_that_leaves_nobody_counts_by_its_leader() -> None:
    moves = [row(0, "1", "3", size=9), row(1, "2", "2,3", size=5)]
    assert numbers(order_moves(moves, {1: 0.5, 2: 0.7})) == [1, 0]


def test_a_row_that_lacks_a_copy_comes_before_all_others() -> None:
    moves = [row(0, "1", "3", size=9), row(1, "2", "3", size=5)]
    assert numbers(order_moves(moves, {1: 0.9}, urgent={("a", 1)})) == [1, 0]


def test_internal_topics_come_last_even_where_they_lack_a_copy() -> None:
    moves = [
        row(0, "1", "2", topic="__consumer_offsets"),
        row(1, "1", "2", topic="__consumer_offsets", size=9),
        row(2, "1", "2"),
    ]
    urgent = {("__consumer_offsets", 0)}
    assert numbers(order_moves(moves, {}, urgent)) == [2, 0, 1]


def test_equal_rows_start_by_topic_and_partition() -> None:
    moves = [row(1, "1", "2"), row(0, "1", "2")]
    assert numbers(order_moves(moves, {})) == [0, 1]


@pytest.mark.parametrize(
    ("flying", "next_row", "fits"),
    [
        ([], row(9, "1", "2"), True),
        ([row(0, "1", "4"), row(1, "1", "5")], row(9, "1", "6"), False),  # broker 1 sends 2
        ([row(0, "1", "4"), row(1, "2", "4")], row(9, "3", "4"), False),  # broker 4 receives 2
        ([row(0, "1", "4"), row(1, "2", "5"), row(2, "3", "6")], row(9, "7", "8"), False),
        ([row(0, "1", "4"), row(1, "2", "5"), row(2, "3", "6")], row(9, "7,8", "7"), True),
        ([row(0, "1", "4")], row(9, "2", "2,5,6"), True),
        ([row(0, "1", "4"), row(1, "2", "5")], row(9, "3", "3,6,7"), False),  # 4 in the cluster
        ([row(0, "1", "4")], row(9, "1", "1,5,6"), False),  # broker 1 would send 3
        ([], row(9, "1", "1,2,3,4,5"), True),  # more than any limit, but alone
    ],
)
def test_a_row_starts_where_there_is_room(
    flying: list[RowMove], next_row: RowMove, fits: bool
) -> None:
    seats = Seats(POLICY)
    for move in flying:
        seats.take(move)
    assert seats.fits(next_row) is fits
    for move in flying:
        seats.free(move)
    assert seats.fits(next_row)
