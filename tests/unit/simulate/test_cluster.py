"""Worlds: what each step makes of one, and what cannot be done."""

from __future__ import annotations

from collections import Counter

import pytest
from shorthand import brokers, cluster, rows, topic

from reconciler.errors import UsageError
from reconciler.model.cluster import Broker
from reconciler.model.moves import LoadAim, LoadKind
from reconciler.placement.strategies import place_replicas
from reconciler.simulate.cluster import (
    AddBrokers,
    LoseBroker,
    LoseRack,
    Place,
    Rebalance,
    SimulatedCluster,
    SimulationStep,
    WantedTopic,
)
from reconciler.simulate.compare import choose_placer

SIX = SimulatedCluster(brokers("a", "b", "c", "a", "b", "c"))
PLACE = choose_placer("striped")


def take(*steps: SimulationStep, simulated: SimulatedCluster = SIX) -> SimulatedCluster:
    for step in steps:
        simulated = simulated.take(step, PLACE)
    return simulated


def create(name: str, partitions: int, replication: int, min_in_sync: int = 1) -> Place:
    return Place((WantedTopic(name, partitions, replication, min_in_sync),))


def test_a_state_becomes_a_world() -> None:
    state = cluster(topic("1,2 2,1", "b", in_sync=rows("1 2")), topic("1", "a"), nodes=SIX.brokers)
    simulated = SimulatedCluster.of(state, 2)
    assert list(simulated.topics) == ["a", "b"]
    assert simulated.topics["b"].in_sync == rows("1 2")
    assert simulated.topics["b"].min_in_sync == 2


def test_internal_topics_are_in_no_world() -> None:
    offsets = topic("1,2 1,3", "__consumer_offsets", internal=True)
    assert SimulatedCluster.of(cluster(offsets, topic("1", "a"))) == SimulatedCluster.of(
        cluster(topic("1", "a"))
    )


def test_topics_are_created_and_grow_on_what_is_there() -> None:
    simulated = take(create("t", 6, 3, 2), Place((WantedTopic("t", 12),)))
    topic = simulated.topics["t"]
    assert (len(topic.assignment), topic.min_in_sync) == (12, 2)
    assert topic.assignment[:6] == take(create("t", 6, 3)).topics["t"].assignment
    assert {len(row) for row in topic.assignment} == {3}


def test_growth_to_what_is_there_already_is_nothing() -> None:
    simulated = take(create("t", 6, 3))
    assert take(Place((WantedTopic("t", 6),)), simulated=simulated) == simulated


def test_topics_of_one_step_are_placed_together_beside_rows_by_hand() -> None:
    by_hand = WantedTopic("m", 2, 1, rows=rows("1 1"))
    simulated = take(Place((by_hand, WantedTopic("t", 5, 1))))
    assert simulated.topics["m"].assignment == rows("1 1")
    assert 1 not in {row[0] for row in simulated.topics["t"].assignment}


def test_a_rebalance_uses_brokers_that_joined_and_says_what_it_copies() -> None:
    found = topic("1,2 2,3 3,1 1,2 2,3 3,1", "t", size_bytes=(10, 10, 10, 10, 10, 10))
    simulated = SimulatedCluster.of(cluster(found))
    levelled = take(AddBrokers(3), Rebalance(), simulated=simulated)
    held = Counter(broker for row in levelled.topics["t"].assignment for broker in row)
    assert held == dict.fromkeys(range(1, 7), 2)
    assert levelled.copied == ((6, 60),)
    assert take(Rebalance(), simulated=levelled).copied[1:] == ((0, 0),)


def test_a_rebalance_copies_nothing_of_new_partitions_and_unknown_sizes_are_unknown() -> None:
    grown = (create("t", 6, 2), AddBrokers(3))
    assert take(*grown, Rebalance()).copied[0][1] is None
    simulated = SimulatedCluster.of(cluster(topic("1,2", "t", size_bytes=(10,))))
    added = take(Place((WantedTopic("t", 3),)), AddBrokers(3), simulated=simulated)
    levelled = take(Rebalance(), simulated=added)
    ((replicas, size),) = levelled.copied
    assert replicas > 0
    assert size == 10 * len(set(levelled.topics["t"].assignment[0]) - {1, 2})


def test_a_rebalance_leaves_partitions_on_lost_brokers() -> None:
    lost = take(create("t", 12, 3), LoseBroker(1))
    levelled = take(AddBrokers(1), Rebalance(), simulated=lost)
    for old, new in zip(lost.topics["t"].assignment, levelled.topics["t"].assignment, strict=True):
        assert 1 not in old or old == new


def test_brokers_are_added_where_fewest_are() -> None:
    lopsided = SimulatedCluster((Broker(7, "a"), Broker(2, "b"), Broker(3, "a")))
    added = take(AddBrokers(3), simulated=lopsided).brokers[3:]
    assert added == (Broker(8, "b"), Broker(9, "a"), Broker(10, "b"))


def test_brokers_are_added_to_a_rack_or_to_none() -> None:
    assert take(AddBrokers(1, "d")).brokers[6:] == (Broker(7, "d"),)
    assert take(AddBrokers(1), simulated=SimulatedCluster((Broker(1),))).brokers[1:] == (Broker(2),)


def test_what_is_lost_keeps_its_replicas_and_takes_no_more() -> None:
    simulated = take(create("t", 6, 3), LoseBroker(2), LoseRack("c"), create("u", 6, 2))
    assert [broker.id for broker in simulated.living] == [1, 4, 5]
    assert {b for row in simulated.topics["t"].assignment for b in row} == {1, 2, 3, 4, 5, 6}
    assert {b for row in simulated.topics["u"].assignment for b in row} == {1, 4, 5}
    assert [loss.brokers for loss in simulated.losses] == [{2}, {3, 6}]
    assert simulated.losses[0].leaders_moved == 1


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
        ([Place((WantedTopic("t", 3),))], "there is no topic t to grow"),
        ([create("t", 3, 1)] * 2, "there is a topic t already; grow it with --grow t=…"),
        (
            [create("t", 3, 1), Place((WantedTopic("t", 2),))],
            "t has 3 partitions; Kafka cannot remove any",
        ),
        ([create("t", 3, 7)], "t: 7 replicas need as many brokers, and 6 can take replicas"),
        (
            [LoseRack("b"), LoseRack("c"), LoseBroker(2)],
            "there is no broker 2 to lose; living brokers: 1 in a, 4 in a",
        ),
        ([LoseRack("z")], "there is no rack z to lose; living brokers: 1 in a, 2 in b, 3 in c,"),
        (
            [LoseRack("b"), LoseRack("c"), LoseRack("a")],
            "without rack a no broker is left to measure",
        ),
    ],
)
def test_what_cannot_be_done_is_said(steps: list[SimulationStep], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        take(*steps)
    assert str(refusal.value).startswith(message)


def test_a_rebalance_by_disk_brings_brokers_near_their_share_of_bytes() -> None:
    sized = cluster(
        topic("1 1 2 3", "big", size_bytes=(100, 100, 10, 10)), nodes=brokers(None, None, None)
    )
    simulated = SimulatedCluster.of(sized)
    by_count = take(Rebalance(LoadAim(within_percent=50)), simulated=simulated)
    assert by_count.copied == ((0, 0),)
    by_disk = take(Rebalance(LoadAim((LoadKind.DISK,), 50)), simulated=simulated)
    assert by_disk.copied[0][1] == 110
    held = Counter[int]()
    for (broker, *_), size in zip(
        by_disk.topics["big"].assignment, sized.topics["big"].size_bytes, strict=True
    ):
        held[broker] += size
    assert sorted(held.values()) == [20, 100, 100]


def test_a_rebalance_of_leaders_copies_nothing_and_leaves_what_was_lost() -> None:
    simulated = SimulatedCluster.of(
        cluster(topic("1,2 1,2 1,2 1,2 1,3", "t"), nodes=brokers(None, None, None))
    )
    after = take(LoseBroker(3), Rebalance(LoadAim(leaders_only=True)), simulated=simulated)
    assert after.copied == ((0, 0),)
    leaders = Counter(row[0] for row in after.topics["t"].assignment)
    assert leaders == {1: 3, 2: 2}
    assert after.topics["t"].assignment[4] == (1, 3)


def test_a_rebalance_by_what_is_unknown_says_so() -> None:
    with pytest.raises(UsageError, match="no write_bytes_per_s is known of any partition"):
        take(create("t", 6, 2), Rebalance(LoadAim((LoadKind.WRITE,))))
