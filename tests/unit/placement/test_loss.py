"""Losses: who leads next, what can no longer be written, and what is gone."""

from __future__ import annotations

from shorthand import brokers, rows, topic

from reconciler.model.cluster import Broker
from reconciler.placement.loss import (
    Exposed,
    count_unwritable,
    expose,
    lose_each_broker,
    lose_each_rack,
    measure_losses,
)

ABC = brokers("a", "b", "c", "a", "b", "c")


def test_the_next_replica_of_the_list_takes_over() -> None:
    losses = lose_each_broker([Exposed(rows("1,2,3 1,3,2 2,1,3 1,2,3"))], ABC)
    assert losses[1].leaders_moved == 3
    assert losses[1].heirs == {2: 2, 3: 1}
    assert losses[1].worst_heir == 2
    assert losses[3].heirs == {}


def test_a_replica_that_is_dead_or_out_of_sync_is_passed_over() -> None:
    nodes = (*brokers(None, None, None), Broker(4, alive=False))
    partitions = Exposed(rows("4,1,2,3 1,4,2,3"), in_sync=rows("1,3 1,2,3"))
    (loss,) = measure_losses([partitions], nodes, [[1]])
    assert loss.heirs == {3: 1, 2: 1}
    assert 4 not in lose_each_broker([partitions], nodes)


def test_where_nobody_knows_what_is_in_sync_all_is() -> None:
    known = Exposed(rows("1,2 1,2"), in_sync=rows("1"))
    (loss,) = measure_losses([known], brokers(None, None), [[1]])
    assert (loss.offline, loss.heirs) == (1, {2: 1})


def test_partitions_go_under_their_own_minimum_once() -> None:
    topics = [Exposed(rows("1,2,3 4,5,6"), 2), Exposed(rows("1,2"), 2), Exposed(rows("1"), 1)]
    (loss,) = measure_losses(topics, ABC, [[1]])
    assert (loss.under_min_in_sync, loss.offline) == (2, 1)
    assert count_unwritable(topics, ABC) == (0, 0)
    assert count_unwritable(topics, [node for node in ABC if node.id > 1]) == (2, 1)


def test_kafka_asks_for_no_more_replicas_in_sync_than_there_are() -> None:
    topics = [Exposed(rows("1"), 2), Exposed(rows("1,2"), 3, in_sync=rows("1"))]
    assert count_unwritable(topics, ABC) == (1, 0)
    (loss,) = measure_losses(topics[:1], ABC, [[1]])
    assert (loss.under_min_in_sync, loss.offline) == (1, 1)


def test_a_rack_is_lost_at_once() -> None:
    losses = lose_each_rack([Exposed(rows("1,4,2 4,1,3 1,4 2,3"), 2)], ABC)
    assert list(losses) == ["a", "b", "c"]
    assert losses["a"].brokers == {1, 4}
    assert losses["a"].heirs == {2: 1, 3: 1}
    assert (losses["a"].leaders_moved, losses["a"].under_min_in_sync) == (3, 3)
    assert losses["a"].offline == 1
    assert losses["b"].under_min_in_sync == 1


def test_brokers_without_a_rack_are_in_none() -> None:
    assert lose_each_rack([Exposed(rows("1,2"))], brokers(None, "a", None)).keys() == {"a"}


def test_what_a_topic_needs_is_its_override_or_the_default_in_force() -> None:
    key = "min.insync.replicas"
    topics = [
        topic("1", config={key: "3"}, in_sync=rows("1")),
        topic("2"),
        topic(config={key: None}),
    ]
    assert [each.min_in_sync for each in expose(topics, {key: "2"})] == [3, 2, 2]
    assert [each.min_in_sync for each in expose(topics, {}, 4)] == [3, 4, 4]
    assert [each.in_sync for each in expose(topics, {})] == [((1,),), (), ()]
