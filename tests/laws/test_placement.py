"""Laws of the striped strategy: sound rows, and growth in steps is growth at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from worlds import broker_lists, rows_on

from reconciler.model.cluster import Broker, Replicas
from reconciler.placement.check import check_placement
from reconciler.placement.problem import Problem, Wish, count_load
from reconciler.placement.striped import place_striped


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Draw wishes, new and continued, over any racks; existing rows also on brokers that left."""
    nodes = draw(broker_lists())
    ids = sorted(node.id for node in nodes)
    wishes = []
    for number in range(draw(st.integers(1, 4))):
        replication = draw(st.integers(1, len(nodes)))
        existing = draw(st.just(()) | rows_on([*ids, 98, 99], replication))
        count = draw(st.integers(1, 25))
        wishes.append(Wish(f"t{number}", existing, count, replication, draw(st.booleans())))
    leaders, replicas = count_load(wish.existing for wish in wishes)
    return Problem(nodes, leaders, replicas, tuple(wishes))


@given(problems())
def test_the_checker_takes_every_answer(problem: Problem) -> None:
    assert check_placement(problem, place_striped(problem)) == ()


@given(problems())
def test_racks_are_as_even_as_they_can_be(problem: Problem) -> None:
    """Dealt one by one to the least filled rack with room: the checker's rule, said otherwise."""
    placed = place_striped(problem)
    for wish in problem.wishes:
        if wish.rack_aware:
            even = deal(problem.brokers, wish.replication)
            assert all(per_rack(problem.brokers, row) == even for row in placed[wish.topic])


def deal(nodes: tuple[Broker, ...], replication: int) -> list[int]:
    room = Counter(node.rack for node in nodes)
    held = dict.fromkeys(room, 0)
    for _ in range(replication):
        least = min((rack for rack in room if held[rack] < room[rack]), key=lambda r: held[r])
        held[least] += 1
    return sorted(count for count in held.values() if count)


def per_rack(nodes: tuple[Broker, ...], row: Replicas) -> list[int]:
    rack_of = {node.id: node.rack for node in nodes}
    return sorted(Counter(rack_of[broker] for broker in row).values())


@given(problems())
def test_new_leaders_go_round(problem: Problem) -> None:
    """Each topic's new leaders differ by at most one between any two brokers."""
    placed = place_striped(problem)
    for wish in problem.wishes:
        led = Counter(row[0] for row in placed[wish.topic])
        counts = [led[node.id] for node in problem.brokers]
        assert max(counts) - min(counts) <= 1


@given(problems())
def test_every_wish_gets_its_rows_of_distinct_brokers(problem: Problem) -> None:
    placed = place_striped(problem)
    ids = {node.id for node in problem.brokers}
    assert set(placed) == {wish.topic for wish in problem.wishes}
    for wish in problem.wishes:
        rows = placed[wish.topic]
        assert len(rows) == wish.count
        assert {len(set(row) & ids) for row in rows} == {wish.replication}


@given(
    broker_lists(),
    st.integers(1, 30),
    st.integers(1, 30),
    st.data(),
    st.booleans(),
)
def test_growing_one_by_one_is_placing_at_once(
    nodes: tuple[Broker, ...], first: int, more: int, data: st.DataObject, rack_aware: bool
) -> None:
    replication = data.draw(st.integers(1, len(nodes)))
    whole = Wish("t", (), first, replication, rack_aware)
    problem = Problem(nodes, {}, {}, (whole,))
    grown = place_striped(problem)["t"]
    at_once = replace(whole, existing=grown, count=more)
    for _ in range(more):
        step = replace(whole, existing=grown, count=1)
        grown += place_striped(replace(problem, wishes=(step,)))["t"]
    added = place_striped(replace(problem, wishes=(at_once,)))["t"]
    assert grown[first:] == added


@given(broker_lists(), st.integers(1, 40), st.integers(1, 40), st.data())
def test_a_topic_that_grew_is_the_topic_that_was_large_from_the_start(
    nodes: tuple[Broker, ...], first: int, more: int, data: st.DataObject
) -> None:
    """Whatever the first count, the same start gives the same stripe."""
    replication = data.draw(st.integers(1, len(nodes)))
    large = Wish("t", (), first + more, replication)
    rows = place_striped(Problem(nodes, {}, {}, (large,)))["t"]
    small = replace(large, existing=rows[:first], count=more)
    assert place_striped(Problem(nodes, {}, {}, (small,)))["t"] == rows[first:]


@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_brokers_and_wishes_means_nothing(problem: Problem, random: Random) -> None:
    nodes, wishes = list(problem.brokers), list(problem.wishes)
    random.shuffle(nodes)
    random.shuffle(wishes)
    other = replace(problem, brokers=tuple(nodes), wishes=tuple(wishes))
    assert place_striped(other) == place_striped(problem)


@given(problems())
def test_more_wishes_do_not_change_what_comes_before_them(problem: Problem) -> None:
    """A new topic is placed after all expansions, so it never moves one."""
    wishes = tuple(wish for wish in problem.wishes if wish.existing)
    alone = place_striped(replace(problem, wishes=wishes))
    beside = place_striped(problem)
    assert {topic: beside[topic] for topic in alone} == alone
