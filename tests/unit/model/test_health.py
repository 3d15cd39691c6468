"""The health of one cluster: which partitions, brokers and directories count, and as what."""

from __future__ import annotations

from dataclasses import replace

import pytest
from readings import default, move, rate
from shorthand import brokers, cluster, topic

from reconciler.model.cluster import LogDirectory, TopicState
from reconciler.model.health import (
    DeadBroker,
    Fault,
    HealthCounts,
    MovingPartition,
    OffPreferred,
    count_problems,
    judge_cluster,
)


def live(**found: object) -> TopicState:
    """Return a topic of two partitions, led and in sync unless `found` says otherwise."""
    healthy = {"leaders": (1, 2), "in_sync": ((1, 2), (2, 3))}
    return topic("1,2 2,3", **{**healthy, **found})


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        (live(), {}),
        (live(leaders=(-1, 2)), {"offline": 1}),
        (live(leaders=(), in_sync=()), {}),
        (live(in_sync=((1,), (2, 3))), {"under_replicated": 1}),
        (live(in_sync=((1,), (2, 3)), reassigning=frozenset({0})), {}),
        # While it moves, its new replicas are required too: acks=all writes fail all the same.
        (
            live(
                in_sync=((1,), (2, 3)),
                reassigning=frozenset({0}),
                config={"min.insync.replicas": "2"},
            ),
            {"unwritable": 1},
        ),
        # Kafka requires no more replicas in sync than there are (KAFKA-21110).
        (live(config={"min.insync.replicas": "3"}), {}),
        (
            live(in_sync=((1,), (2, 3)), config={"min.insync.replicas": "2"}),
            {"under_replicated": 1, "unwritable": 1},
        ),
        (
            live(leaders=(-1, 2), in_sync=((), (2, 3)), config={"min.insync.replicas": "2"}),
            {"offline": 1, "under_replicated": 1},
        ),
        (live(in_sync=((1,), (2, 3)), internal=True), {"under_replicated": 1}),
    ],
)
def test_what_counts_of_a_topic(seen: TopicState, wrong: dict[str, int]) -> None:
    assert count_problems(cluster(seen)) == HealthCounts(**wrong)


def test_the_default_of_the_cluster_holds_for_topics_without_an_override() -> None:
    short = live(in_sync=((1,), (2, 3)))
    assert count_problems(cluster(short, defaults={"min.insync.replicas": "2"})).unwritable == 1


def test_log_directories_that_are_offline_on_living_brokers_count() -> None:
    one, *others = brokers("a", "b", "c")
    held = (LogDirectory("/a", 9, 9, 0), LogDirectory("/b", None, None, online=False))
    state = replace(cluster(live(), nodes=(one, *others)), directories={1: held, 2: held[:1]})
    assert count_problems(state).directories_offline == 1
    dead = replace(state, brokers=(replace(one, alive=False), *others))
    assert count_problems(dead).directories_offline == 0


def test_brokers_that_are_down_count() -> None:
    one, *others = brokers("a", "b", "c")
    state = cluster(live(), nodes=(replace(one, alive=False), *others))
    assert count_problems(state).brokers_down == 1


def test_a_broker_that_is_down_and_holds_nothing_is_fenced() -> None:
    one, two, three, four = brokers("a", "b", "c", "d")
    state = cluster(
        live(), nodes=(one, two, replace(three, alive=False), replace(four, alive=False))
    )
    found = judge_cluster(state)
    assert found.dead == (DeadBroker(3, "c", 1),)
    assert found.fenced == (DeadBroker(4, "d", 0),)
    assert found.counts == HealthCounts(brokers_down=1)


@pytest.mark.parametrize(
    ("in_sync", "dead", "offline"),
    [(((3,),), {3}, 1), (((3,),), {2}, 0), ((), {3}, 0), ((), {2, 3}, 1), (((),), set(), 1)],
)
def test_without_a_known_leader_a_partition_needs_a_living_replica_in_sync(
    in_sync: tuple[tuple[int, ...], ...], dead: set[int], offline: int
) -> None:
    nodes = tuple(replace(b, alive=b.id not in dead) for b in brokers("a", "b", "c"))
    state = cluster(topic("2,3", in_sync=in_sync), nodes=nodes)
    assert count_problems(state).offline == offline


def test_faulty_partitions_are_named_with_what_they_lack() -> None:
    state = cluster(
        live(name="b", in_sync=((1,), (2, 3))),
        live(name="a", leaders=(1, -1), in_sync=((1, 2), ())),
    )
    first, second = judge_cluster(state).partitions
    assert (first.topic, first.partition, first.faults) == (
        "a",
        1,
        (Fault.OFFLINE, Fault.UNDER_REPLICATED),
    )
    assert (second.topic, second.partition, second.lacking) == ("b", 0, (2,))
    assert judge_cluster(state).list_with(Fault.OFFLINE) == (first,)


def test_preferred_leaders_that_do_not_lead_and_whether_they_can() -> None:
    state = cluster(
        live(leaders=(2, 3)),
        live(name="moves", leaders=(2, 2), reassigning=frozenset({0})),
        live(name="lags", leaders=(2, 2), in_sync=((2,), (2, 3))),
    )
    assert judge_cluster(state).off_preferred == (
        OffPreferred("lags", 0, 1, 2, electable=False),
        OffPreferred("shop.orders", 0, 1, 2, electable=True),
        OffPreferred("shop.orders", 1, 2, 3, electable=True),
    )
    assert not judge_cluster(state).counts.brokers_down


@pytest.mark.parametrize(
    ("free", "fills", "at_risk"), [(150, False, False), (149, True, False), (49, True, True)]
)
def test_log_directories_that_fill(free: int, fills: bool, at_risk: bool) -> None:
    held = (
        LogDirectory("/a", 1000, free),
        LogDirectory("/b", None, None),
        LogDirectory("/c", 0, 0),
    )
    found = judge_cluster(replace(cluster(live()), directories={1: held}))
    assert [each.path for each in found.filling] == ["/a"] * fills
    assert found.at_risk == at_risk
    assert found.counts.healthy


def test_moves_and_throttles_in_force_and_left_over() -> None:
    shown = [replace(each, broker=b) for b in (1, 2, 3) for each in default(9)]
    state = replace(
        cluster(
            live(config={"leader.replication.throttled.replicas": "0:1"}),
            live(name="still", reassigning=frozenset({1})),
        ),
        throttle_rates=(*shown, rate(3, 5)),
    )
    found = judge_cluster(state)
    assert found.moving == (MovingPartition("still", 1),)
    assert found.rates == (*default(9), rate(3, 5))  # what every broker shows is there once
    assert [(each.topic, each.broker) for each in found.leftovers] == [
        (None, None),
        (None, 3),
        ("shop.orders", None),
    ]
    assert not found.at_risk
    used = judge_cluster(replace(state, reassignments=(move("shop.orders"),)))
    assert [(each.topic, each.broker) for each in used.leftovers] == []
