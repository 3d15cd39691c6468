"""The striped strategy as matrices of broker ids, beside the examples that Kafka publishes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import pytest
from shorthand import brokers, rows

from reconciler.model.cluster import Assignment, Broker
from reconciler.placement.problem import Problem, Wish
from reconciler.placement.strategies import place_replicas
from reconciler.placement.striped import place_striped

FIVE = tuple(Broker(number) for number in range(5))
SIX_IN_THREE = tuple(
    Broker(number, f"rack{rack}") for number, rack in enumerate((1, 3, 3, 2, 2, 1))
)
"""KIP-36's example; its list with alternating racks is 0, 3, 1, 5, 4, 2."""


def place(
    nodes: Sequence[Broker],
    count: int,
    replication: int,
    existing: str = "",
    *,
    rack_aware: bool = True,
    leaders: dict[int, int] | None = None,
) -> Assignment:
    """Place one topic's new partitions."""
    wish = Wish("t", rows(existing), count, replication, rack_aware)
    return place_striped(Problem(tuple(nodes), leaders or {}, {}, (wish,)))["t"]


def start_at(broker: int, nodes: Sequence[Broker]) -> dict[int, int]:
    """Return leaders such that a new topic begins at `broker`."""
    return {node.id: 0 if node.id == broker else 9 for node in nodes}


# Kafka's published examples, from a fixed start.


def test_rack_unaware_goes_as_in_kafkas_own_example() -> None:
    """AdminUtils, five brokers: followers shift by one more with every round of leaders."""
    expected = rows("0,1,2 1,2,3 2,3,4 3,4,0 4,0,1 0,2,3 1,3,4 2,4,0 3,0,1 4,1,2")
    assert place(FIVE, 9, 3, "0,1,2") == expected[1:]


def test_rack_aware_goes_as_in_the_example_of_kip_36() -> None:
    """Partition 6 begins a new round, and does not repeat the replicas of partition 0."""
    expected = rows("0,3,1 3,1,5 1,5,4 5,4,2 4,2,0 2,0,3 0,4,2")
    assert place(SIX_IN_THREE, 6, 3, "0,3,1") == expected[1:]


def test_rack_aware_goes_on_when_a_broker_of_the_example_is_gone() -> None:
    """Without broker 5 the list is 0, 3, 1, 4, 2."""
    remaining = [node for node in SIX_IN_THREE if node.id != 5]
    expected = rows("0,3,1 3,1,0 1,4,0 4,2,0 2,0,3 0,2,3")
    assert place(remaining, 5, 3, "0,3,1") == expected[1:]


def test_without_rack_awareness_racks_do_not_matter() -> None:
    bare = [Broker(node.id) for node in SIX_IN_THREE]
    answer = place(SIX_IN_THREE, 12, 3, "0,1,2", rack_aware=False)
    assert answer == place(bare, 12, 3, "0,1,2")


# What differs from Kafka on purpose.


def test_more_replicas_than_racks_are_dealt_evenly() -> None:
    """Kafka stops looking at racks once each has a replica; here none holds two more."""
    answer = place(SIX_IN_THREE, 12, 4)
    rack_of = {node.id: node.rack for node in SIX_IN_THREE}
    shares = {tuple(sorted(Counter(rack_of[b] for b in row).values())) for row in answer}
    assert shares == {(1, 1, 2)}


def test_a_rack_that_is_full_leaves_its_share_to_the_others() -> None:
    answer = place(brokers("a", "b", "b", "b"), 8, 3)
    assert {1 in row for row in answer} == {True}


def test_the_shift_does_not_depend_on_when_a_partition_was_added() -> None:
    """Kafka's shift begins anew with every request; here growth is one long stripe."""
    at_once = place(FIVE, 14, 3, "0,1,2")
    stepwise = rows("0,1,2")
    for _ in range(14):
        stepwise += place(FIVE, 1, 3, " ".join(",".join(map(str, row)) for row in stepwise))
    assert stepwise[1:] == at_once


@pytest.mark.parametrize("order", [(2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_the_order_of_brokers_changes_nothing(order: tuple[int, ...]) -> None:
    nodes = brokers("a", "b", "a")
    assert place([nodes[i] for i in order], 7, 2) == place(nodes, 7, 2)


# Where a stripe begins.


def test_a_stripe_goes_on_where_partition_0_says_it_began() -> None:
    assert place(brokers(None, None, None), 4, 1, "2 3") == rows("1 2 3 1")


def test_expanding_two_partitions_to_three_leaves_no_broker_without_a_leader() -> None:
    ids = (1, 2, 3)
    for start in ids:
        existing = f"{start} {start % 3 + 1}"
        (added,) = place(brokers(None, None, None), 1, 1, existing)
        assert {*rows(existing), added} == {(broker,) for broker in ids}


@pytest.mark.parametrize("idle", [0, 1, 2, 3, 4])
def test_a_new_topic_begins_where_the_cluster_has_the_fewest_leaders(idle: int) -> None:
    assert place(FIVE, 1, 1, leaders=start_at(idle, FIVE)) == ((idle,),)


@pytest.mark.parametrize("idle", [(0, 1), (2, 3), (4, 0)])
def test_a_new_topic_meets_the_fewest_leaders_with_all_its_own(idle: tuple[int, int]) -> None:
    load = {node.id: 0 if node.id in idle else 1 for node in FIVE}
    assert {row[0] for row in place(FIVE, 2, 1, leaders=load)} == set(idle)


def test_whole_rounds_do_not_count_for_the_start() -> None:
    (*_, last) = place(FIVE, 6, 1, leaders=start_at(3, FIVE))
    assert last == (3,)


@pytest.mark.parametrize("idle", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("existing", ["9", "9 9", "9 9 9 9"])
def test_a_stripe_whose_first_leader_is_gone_goes_on_at_the_idlest(
    idle: int, existing: str
) -> None:
    assert place(FIVE, 1, 1, existing, leaders=start_at(idle, FIVE)) == ((idle,),)


def test_ties_depend_on_the_name_so_not_all_topics_begin_at_one_broker() -> None:
    firsts = set()
    for number in range(40):
        problem = Problem(FIVE, {}, {}, (Wish(f"t{number}", (), 1, 1),))
        firsts.add(place_striped(problem)[f"t{number}"][0])
    assert firsts == {(0,), (1,), (2,), (3,), (4,)}


# Several topics.


def test_topics_count_as_load_for_each_other() -> None:
    wishes = tuple(Wish(f"t{number}", (), 1, 1) for number in range(10))
    placed = place_striped(Problem(FIVE, {}, {}, wishes))
    assert Counter(row[0] for (row,) in placed.values()) == dict.fromkeys(range(5), 2)


def test_expansions_come_before_new_topics() -> None:
    """What an expansion takes is bound; a new topic can still go round it."""
    wishes = (Wish("a", (), 1, 1), Wish("z", rows("0"), 4, 1))
    placed = place_striped(Problem(FIVE, {0: 1}, {0: 1}, wishes))
    assert placed["z"] == rows("1 2 3 4")
    more = place_striped(Problem(FIVE, {0: 1}, {0: 1}, (*wishes, Wish("b", (), 4, 1))))
    assert Counter(row[0] for row in (*more["a"], *more["b"])) == dict.fromkeys(
        {row[0] for row in (*more["a"], *more["b"])}, 1
    )


def test_the_order_of_wishes_changes_nothing() -> None:
    wishes = (Wish("a", (), 3, 2), Wish("b", rows("1,2"), 3, 2), Wish("c", (), 5, 3))
    answers = [place_striped(Problem(FIVE, {}, {}, order)) for order in permutations(wishes)]
    assert all(answer == answers[0] for answer in answers)


# Edges.


def test_one_broker_takes_everything() -> None:
    assert place(brokers("a"), 3, 1) == rows("1 1 1")


def test_as_many_replicas_as_brokers_uses_every_broker() -> None:
    assert {frozenset(row) for row in place(SIX_IN_THREE, 9, 6)} == {frozenset(range(6))}


def test_brokers_without_a_rack_are_a_rack_of_their_own() -> None:
    answer = place(brokers(None, None, "a"), 6, 2)
    assert all(3 in row for row in answer)


def test_excluded_holders_keep_what_they_hold_and_get_nothing() -> None:
    answer = place(FIVE, 10, 2, "7,8 0,7")
    assert {broker for row in answer for broker in row} == {0, 1, 2, 3, 4}


def test_no_wishes_no_rows() -> None:
    assert place_striped(Problem(FIVE, {}, {}, ())) == {}


@pytest.mark.parametrize("replication", [0, 4])
def test_a_replication_that_cannot_be_is_an_error_of_the_caller(replication: int) -> None:
    with pytest.raises(ValueError, match=f"t: {replication} replicas, 3 brokers"):
        place_replicas(Problem(FIVE[:3], {}, {}, (Wish("t", (), 1, replication),)), "striped")


def test_six_brokers_in_three_racks_grown_one_by_one_stay_even() -> None:
    """The case that Kafka's own placer leaves at leader max - min of 4.5 on average."""
    nodes = brokers("a", "a", "b", "b", "c", "c")
    grown = place(nodes, 6, 3)
    while len(grown) < 24:
        grown += place(nodes, 1, 3, " ".join(",".join(map(str, row)) for row in grown))
    assert Counter(row[0] for row in grown) == dict.fromkeys(range(1, 7), 4)
    assert Counter(b for row in grown for b in row) == dict.fromkeys(range(1, 7), 12)
