"""Worlds: what each step makes of one, and what cannot be done."""

from __future__ import annotations

import pytest
from shorthand import brokers, cluster, rows, topic

from reconciler.errors import UsageError
from reconciler.model import Broker
from reconciler.placement import place_replicas
from reconciler.simulate import (
    AddBrokers,
    LoseBroker,
    LoseRack,
    Place,
    Step,
    Wanted,
    World,
    choose_placer,
)

SIX = World(brokers("a", "b", "c", "a", "b", "c"))
PLACE = choose_placer("striped")


def take(*steps: Step, world: World = SIX) -> World:
    for step in steps:
        world = world.take(step, PLACE)
    return world


def create(name: str, partitions: int, replication: int, min_in_sync: int = 1) -> Place:
    return Place((Wanted(name, partitions, replication, min_in_sync),))


def test_a_state_becomes_a_world() -> None:
    state = cluster(topic("1,2 2,1", "b", in_sync=rows("1 2")), topic("1", "a"), nodes=SIX.brokers)
    world = World.of(state, 2)
    assert list(world.topics) == ["a", "b"]
    assert world.topics["b"].in_sync == rows("1 2")
    assert world.topics["b"].min_in_sync == 2


def test_internal_topics_are_in_no_world() -> None:
    offsets = topic("1,2 1,3", "__consumer_offsets", internal=True)
    assert World.of(cluster(offsets, topic("1", "a"))) == World.of(cluster(topic("1", "a")))


def test_topics_are_created_and_grow_on_what_is_there() -> None:
    world = take(create("t", 6, 3, 2), Place((Wanted("t", 12),)))
    topic = world.topics["t"]
    assert (len(topic.assignment), topic.min_in_sync) == (12, 2)
    assert topic.assignment[:6] == take(create("t", 6, 3)).topics["t"].assignment
    assert {len(row) for row in topic.assignment} == {3}


def test_growth_to_what_is_there_already_is_nothing() -> None:
    world = take(create("t", 6, 3))
    assert take(Place((Wanted("t", 6),)), world=world) == world


def test_topics_of_one_step_are_placed_together_beside_rows_by_hand() -> None:
    by_hand = Wanted("m", 2, 1, rows=rows("1 1"))
    world = take(Place((by_hand, Wanted("t", 5, 1))))
    assert world.topics["m"].assignment == rows("1 1")
    assert 1 not in {row[0] for row in world.topics["t"].assignment}


def test_brokers_are_added_where_fewest_are() -> None:
    lopsided = World((Broker(7, "a"), Broker(2, "b"), Broker(3, "a")))
    added = take(AddBrokers(3), world=lopsided).brokers[3:]
    assert added == (Broker(8, "b"), Broker(9, "a"), Broker(10, "b"))


def test_brokers_are_added_to_a_rack_or_to_none() -> None:
    assert take(AddBrokers(1, "d")).brokers[6:] == (Broker(7, "d"),)
    assert take(AddBrokers(1), world=World((Broker(1),))).brokers[1:] == (Broker(2),)


def test_what_is_lost_keeps_its_replicas_and_takes_no_more() -> None:
    world = take(create("t", 6, 3), LoseBroker(2), LoseRack("c"), create("u", 6, 2))
    assert [broker.id for broker in world.living] == [1, 4, 5]
    assert {b for row in world.topics["t"].assignment for b in row} == {1, 2, 3, 4, 5, 6}
    assert {b for row in world.topics["u"].assignment for b in row} == {1, 4, 5}
    assert [loss.brokers for loss in world.losses] == [{2}, {3, 6}]
    assert world.losses[0].leaders_moved == 1


def test_a_placer_hears_who_is_down() -> None:
    down: list[tuple[int, ...]] = []

    def place(problem, fenced):  # type: ignore[no-untyped-def]
        down.append(tuple(broker.id for broker in fenced))
        return place_replicas(problem).rows

    take(LoseBroker(2)).take(create("t", 1, 1), place)
    assert down == [(2,)]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([Place((Wanted("t", 3),))], "there is no topic t to grow"),
        ([create("t", 3, 1)] * 2, "there is a topic t already; grow it with --grow t=…"),
        (
            [create("t", 3, 1), Place((Wanted("t", 2),))],
            "t has 3 partitions; Kafka cannot remove any",
        ),
        ([create("t", 3, 7)], "t: 7 replicas need as many brokers, and 6 can take one"),
        (
            [LoseRack("b"), LoseRack("c"), LoseBroker(2)],
            "there is no broker 2 to lose; living brokers: 1 in a, 4 in a",
        ),
        ([LoseRack("z")], "there is no rack z to lose; living brokers: 1 in a, 2 in b, 3 in c,"),
        (
            [LoseRack("b"), LoseRack("c"), LoseRack("a")],
            "rack a is all there is; without it there is nothing to look at",
        ),
    ],
)
def test_what_cannot_be_done_is_said(steps: list[Step], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        take(*steps)
    assert str(refusal.value).startswith(message)
