"""Throttles that nothing in flight uses, and the commands that remove them."""

from __future__ import annotations

from typing import Any

import pytest
from readings import FOLLOWER, LEADER, default, listed, move, rate, reading

from reconciler.model.cluster import RateSource, ThrottleRate
from reconciler.model.moves import DirectoryRate, MovesReading, mark_directory_rate
from reconciler.model.throttles import Leftover, find_leftovers
from reconciler.moves.throttles import choose_removals, name_removals


def find(read: MovesReading) -> tuple[Leftover, ...]:
    return find_leftovers(read.rates, read.lists, read.reassignments)


def names(**throttles: object) -> list[tuple[str | None, int | None]]:
    moves = throttles.pop("moves", ())
    assert isinstance(moves, tuple)
    return [(e.topic, e.broker) for e in find(reading(*moves, **throttles))]


def test_a_list_is_used_by_a_move_of_a_partition_in_it() -> None:
    lists = (listed("t", "0:4,1:5"), listed("t", "0:1,0:2", LEADER))
    assert names(moves=(move(),), lists=lists) == []


@pytest.mark.parametrize("replicas", ["1:4", "10:4", "1:4,2:5"])
def test_a_list_of_other_partitions_is_left_over(replicas: str) -> None:
    assert names(moves=(move(),), lists=(listed("t", replicas),)) == [("t", None)]


def test_a_list_of_another_topic_is_left_over() -> None:
    lists = (listed("t", "*"), listed("u", "0:4"), listed("v", "*"))
    assert names(moves=(move(),), lists=lists) == [("u", None), ("v", None)]


def test_the_cluster_default_is_used_by_any_move() -> None:
    assert names(moves=(move(),), rates=default(9)) == []
    assert names(rates=default(9)) == [(None, None)]


def test_a_brokers_rate_is_used_by_a_move_that_it_takes_part_in() -> None:
    rates = tuple(rate(broker, 9) for broker in (1, 2, 4, 5))
    assert names(moves=(move(),), rates=rates) == [(None, 5)]


def test_what_brokers_have_from_elsewhere_is_not_theirs() -> None:
    shown = ThrottleRate(5, FOLLOWER, 9, RateSource.CLUSTER_DEFAULT)
    static = ThrottleRate(6, FOLLOWER, 9, RateSource.STATIC)
    assert names(rates=(shown, static)) == []


def test_all_of_one_entity_is_removed_by_one_command() -> None:
    found = find(
        reading(
            rates=(*default(9), rate(10, 9), rate(2, 9)),
            lists=(listed("t", "*", LEADER), listed("t", "*")),
        )
    )
    brokers = "kafka-configs --alter --entity-type brokers"
    leader, follower = (f"{side}.replication.throttled" for side in ("leader", "follower"))
    assert [each.command for each in found] == [
        f"{brokers} --entity-default --delete-config {leader}.rate,{follower}.rate",
        f"{brokers} --entity-name 2 --delete-config {follower}.rate",
        f"{brokers} --entity-name 10 --delete-config {follower}.rate",
        "kafka-configs --alter --entity-type topics --entity-name t "
        f"--delete-config {leader}.replicas,{follower}.replicas",
    ]


def choose(
    *topics: str, brokers: tuple[int, ...] = (), of_all: bool = False, **more: Any
) -> tuple[list[str], list[str]]:
    moves = more.pop("moves", ())
    found, wrong = choose_removals(reading(*moves, **more), topics, brokers, of_all=of_all)
    return [each.text for each in found], wrong


def test_throttles_are_removed_by_their_names() -> None:
    lists = (listed("t", "*", LEADER), listed("t", "*"), listed("u", "*"))
    rates = (rate(None, 9, LEADER), rate(None, 9), rate(2, 7), rate(3, 7))
    assert choose("t", brokers=(2,), of_all=True, lists=lists, rates=rates) == (
        [
            "t: leader replicas *, follower replicas *",
            "broker 2: follower rate 7 B/s",
            "the cluster: leader rate 9 B/s, follower rate 9 B/s",
        ],
        [],
    )


def test_what_is_missing_or_in_use_is_not_removed() -> None:
    static = ThrottleRate(3, FOLLOWER, 9, RateSource.STATIC)
    found, wrong = choose(
        "t",
        "nowhere",
        brokers=(3, 4, 5, 7),
        of_all=True,
        moves=(move(),),
        lists=(listed("t", "0:4"),),
        rates=(rate(4, 7), static),
    )
    assert found == []
    assert wrong == [
        "nothing is throttled by a list of nowhere",
        "a list of t is used by what is in flight: wait until that has ended",
        "a rate of broker 3 is in server.properties: remove it there",
        "a rate of broker 4 is used by what is in flight: wait until that has ended",
        "nothing is throttled by a rate of broker 5",
        "broker 7 does not answer, so its rates are not known",
        "nothing is throttled by the default rate of the cluster",
    ]


def test_a_rate_of_a_broker_in_use_can_go_where_a_default_limits_it() -> None:
    found, wrong = choose(brokers=(4,), moves=(move(),), rates=(*default(9), rate(4, 70)))
    assert (found, wrong) == (["broker 4: follower rate 70 B/s"], [])


def test_a_rate_in_use_stays_where_the_default_does_not_limit_its_side() -> None:
    rates = (rate(None, 9, LEADER), rate(4, 70))
    said = "a rate of broker 4 is used by what is in flight: wait until that has ended"
    assert choose(brokers=(4,), moves=(move(),), rates=rates) == ([], [said])


def test_a_rate_of_a_broker_can_go_beside_one_in_server_properties() -> None:
    rates = (ThrottleRate(5, LEADER, 9, RateSource.STATIC), rate(5, 70))
    assert choose(brokers=(5,), rates=rates) == (["broker 5: follower rate 70 B/s"], [])


def test_a_default_of_moves_is_for_settle() -> None:
    said = "the default rate of the cluster is of moves: reconciler moves settle removes it"
    assert choose(of_all=True, rates=default(9)) == ([], [said])


def test_what_removes_leftovers() -> None:
    lists = (listed("t", "0:1"), listed("u", "*"))
    found = find(reading(rates=(*default(9), rate(5, 9)), lists=lists))
    assert list(name_removals(found)) == [
        "reconciler moves settle",
        "reconciler moves unthrottle --broker 5 --topic u",
    ]
    assert list(name_removals(())) == []


@pytest.mark.parametrize(
    ("rate", "marked"), [(30 * 2**20, 30 * 2**20 + 1), (10**7, 9765 * 1024 + 1), (5, 1025)]
)
def test_a_rate_between_log_directories_is_known_by_its_number(rate: int, marked: int) -> None:
    assert mark_directory_rate(rate) == marked
    assert DirectoryRate(None, marked, RateSource.CLUSTER_DEFAULT).is_of_moves
    assert not DirectoryRate(None, rate, RateSource.CLUSTER_DEFAULT).is_of_moves
    assert not DirectoryRate(1, marked, RateSource.BROKER).is_of_moves
