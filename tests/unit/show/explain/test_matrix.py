"""The matrix: racks, columns and totals, and how partitions are folded."""

from __future__ import annotations

import pytest
from shorthand import ONE, brokers, cluster, matrix, plan, rows, spec, topic, unused_cluster

from reconciler.model.cluster import Broker
from reconciler.model.plan import Balance, Spread
from reconciler.show.explain.matrix import (
    Block,
    Column,
    Load,
    Rack,
    Shift,
    build_layout,
    build_matrix,
)


def test_racks_by_name_and_brokers_by_id() -> None:
    made = matrix("", "1,2", brokers("b", "a", "b", None))
    assert [(rack.name, [c.broker for c in rack.columns]) for rack in made.racks] == [
        (None, [4]),
        ("a", [2]),
        ("b", [1, 3]),
    ]


def test_a_column_has_the_topic_and_the_cluster_before_and_after() -> None:
    made = matrix("1,2", "2,1", brokers(None, None), topic("1 1 1", "other"))
    assert made.racks == (
        Rack(
            None,
            (
                Column(1, Shift(Load(1, 1), Load(1, 2)), Shift(Load(4, 4), Load(4, 5)), "", 1),
                Column(2, Shift(Load(0, 1), Load(1, 2)), Shift(Load(0, 1), Load(1, 2)), "", 1),
            ),
        ),
    )


def test_other_topics_of_the_plan_count_for_the_cluster() -> None:
    wished = [spec("a", assignment=rows("1")), spec("b", assignment=rows("1 2"))]
    state = cluster()
    made = build_matrix("a", plan(wished, state), state)
    assert [column.cluster.after for column in made.columns] == [Load(2, 2), Load(1, 1), Load()]
    assert [column.topic.after for column in made.columns] == [Load(1, 1), Load(), Load()]


def test_a_rack_is_the_sum_of_its_brokers() -> None:
    (rack,) = matrix("1,2", "2,1", brokers("a", "a")).racks
    assert rack.topic == Shift(Load(1, 2), Load(2, 4))
    assert rack.cluster == rack.topic


def test_balance_leaves_idle_brokers_out() -> None:
    nodes = (*brokers(None, None), Broker(3, None, cordoned=True))
    made = matrix("3 3 3", "1 2", nodes)
    assert made.before == Balance(Spread(0, 0), Spread(0, 0))
    assert made.after == Balance(Spread(1, 1), Spread(1, 1))
    assert [column.idle for column in made.columns] == ["", "", "cordoned"]


@pytest.mark.parametrize(
    ("old", "new", "blocks"),
    [
        (2, 1, [(0, 0), (1, 1), (2, 2)]),
        (5, 0, [(0, 4)]),
        (0, 13, [(0, 9), (10, 12)]),
        (7, 2, [(0, 4), (5, 6), (7, 7), (8, 8)]),
        (11, 9, [(0, 9), (10, 10), (11, 14), (15, 19)]),
    ],
)
def test_too_many_partitions_are_cut_at_round_numbers(
    old: int, new: int, blocks: list[tuple[int, int]]
) -> None:
    made = matrix("1 " * old, "1 " * new, brokers(None)) if new else None
    if made is None:
        state = cluster(topic("1 " * old))
        made = build_matrix("shop.orders", plan([], state), state)
    assert [(block.first, block.last) for block in made.blocks(4)] == blocks
    assert [block.new for block in made.blocks(4)] == [first >= old for first, _ in blocks]


def test_a_tally_counts_a_block() -> None:
    made = matrix("1,2 2,3 3,1", "1,3", brokers(None, None, None))
    assert made.tally(Block(1, 3, new=False)) == {1: Load(1, 2), 2: Load(1, 1), 3: Load(1, 3)}


def test_a_topic_that_goes_is_shown_as_it_lies_and_taken_off_the_brokers() -> None:
    state = unused_cluster(topic("1 1 2"))
    found = build_matrix("shop.orders", plan([spec(absent=True)], state, guards=ONE), state)
    assert found.rows == rows("1 1 2")
    loads = [column.cluster for column in found.columns]
    shifts = [(load.before.leaders, load.after.leaders) for load in loads]
    assert shifts == [(2, 0), (1, 0), (0, 0)]
    assert found.reasons == ("Will be deleted. This is its placement until then.",)


def test_a_plan_alone_tells_which_brokers_are_excluded() -> None:
    state = cluster(nodes=brokers("a", "b", "c"))
    made = plan([spec(partitions=2, replication_factor=2)], state, excluded=[2])
    laid = build_layout(made.topics[0], made)
    assert [column.idle for rack in laid.racks for column in rack.columns] == ["", "excluded", ""]
    assert laid.after == made.topics[0].balance_after
