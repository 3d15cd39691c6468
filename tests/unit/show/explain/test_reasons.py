"""What stands between a topic and an even spread, in sentences."""

from __future__ import annotations

import pytest
from shorthand import brokers, rows

from reconciler.model.cluster import Broker
from reconciler.show.explain.reasons import Growth, give_reasons

ABC = brokers("a", "b", "c")
THREE = brokers(None, None, None)
ONE_SMALL_RACK = brokers("a", "a", "b", "b", "c")


def reasons(nodes: tuple[Broker, ...], existing: str, new: str, **more: bool) -> list[str]:
    return list(give_reasons(Growth(nodes, rows(existing), rows(new), **more)))


def test_what_is_even_is_as_even_as_can_be() -> None:
    assert reasons(ABC, "", "1,2 2,3 3,1") == [
        "As even as 3 leaders and 6 replicas on 3 brokers can be."
    ]


def test_one_more_on_some_is_even_too() -> None:
    assert reasons(THREE, "1", "2 3 1") == [
        "As even as 4 leaders and 4 replicas on 3 brokers can be."
    ]


def test_existing_leaders_stay() -> None:
    assert reasons(THREE, "1 1 1 1", "2 3") == [
        "Leaders 1..4 per broker: broker 1 led 4 before, and existing replicas stay; "
        "all 2 new ones went to others.",
        "Replicas 1..4 per broker: broker 1 held 4 before, and existing replicas stay; "
        "all 2 new ones went to others.",
    ]


def test_many_full_brokers_are_counted() -> None:
    nodes = brokers(*[None] * 8)
    existing = "1 1 1 2 2 2 3 3 3 4 4 4 5 5 5 6 6 6 7 7 7"
    leaders, _ = reasons(nodes, existing, "8")
    assert leaders == (
        "Leaders 1..3 per broker: brokers 1, 2, 3, 4, 5 and 2 more led 3 before, and existing "
        "replicas stay; the new one went to others."
    )


def test_the_rack_rule_goes_before_even_brokers_with_its_number() -> None:
    new = "1,3,5 2,4,5 5,1,3 3,2,5 4,1,5"
    assert reasons(ONE_SMALL_RACK, "", new) == [
        "Replicas 2..5 per broker: rack c has to hold 1 replica of each of 5 new partitions, "
        "5 on 1 broker; rack a has 5 on 2 brokers. An even spread over racks has priority over an "
        "even spread over brokers."
    ]


def test_a_wide_rack_may_hold_no_more_than_its_share() -> None:
    """Two replicas over three racks: six brokers share what one broker may have elsewhere."""
    nodes = brokers(*["rack-a"] * 6, "rack-b", "rack-c")
    assert reasons(nodes, "", "1,7 8,2 3,7 8,4 5,7 8,6") == [
        "Leaders 0..3 per broker: nothing forces that; broker 8 could hand one to broker 2.",
        "Replicas 1..3 per broker: rack-a may hold at most 1 replica of each of 6 new partitions, "
        "6 on 6 brokers; rack-b has 3 on 1 broker. An even spread over racks has priority over an "
        "even spread over brokers.",
    ]


def test_without_rack_awareness_racks_are_no_reason() -> None:
    new = "1,3,5 2,4,5 5,1,3 3,2,5 4,1,5"
    assert reasons(ONE_SMALL_RACK, "", new, rack_aware=False) == [
        "The spec says rack_aware: false, so racks are not looked at.",
        "Replicas 2..5 per broker: nothing forces that; broker 5 could hand one to broker 2.",
    ]


def test_leaders_go_before_replicas() -> None:
    assert reasons(THREE, "1,2 3,2", "2,1") == [
        "Replicas 1..3 per broker: the new replica on broker 2 is a leader, and even leaders go "
        "before even replicas."
    ]


def test_an_empty_broker_takes_one_replica_of_a_partition_at_most() -> None:
    existing = "1,2 2,1 1,2 2,1 1,2 2,1"
    assert reasons(THREE, existing, "3,1 3,2")[0] == (
        "Replicas 2..7 per broker: broker 3 held 0 and takes one replica of every new partition, "
        "which is all that a broker can."
    )


def test_what_nothing_forces_is_said_so() -> None:
    assert reasons(THREE, "", "1 1 1") == [
        "Leaders 0..3 per broker: nothing forces that; broker 1 could hand one to broker 2.",
        "Replicas 0..3 per broker: all 3 new replicas on broker 1 are leaders, and even leaders "
        "go before even replicas.",
    ]


@pytest.mark.parametrize("existing", ["1 1", "1 2 3"])
def test_where_nothing_is_placed_there_is_nothing_to_choose(existing: str) -> None:
    assert reasons(THREE, existing, "") == [
        "Nothing new is placed, and existing replicas stay where they are."
    ]


def test_nothing_at_all_has_no_reasons() -> None:
    assert reasons(THREE, "", "") == []
    assert reasons((), "1", "") == []
