"""Laws of the measure: what is counted in bulk, counted again one partition at a time."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from worlds import broker_lists, rows_on

from reconciler.model.cluster import Broker, Replicas
from reconciler.placement.loss import Exposed, count_unwritable, measure_losses
from reconciler.placement.measure import count_misplaced, measure_quality


@st.composite
def exposed_topics(draw: st.DrawFn, nodes: tuple[Broker, ...]) -> list[Exposed]:
    """Draw topics, some of it out of sync, some of it on brokers that are gone."""
    ids = [*sorted(node.id for node in nodes), 98]
    topics = []
    for _ in range(draw(st.integers(1, 3))):
        assignment = draw(rows_on(ids, draw(st.integers(1, len(ids)))))
        known = draw(st.integers(0, len(assignment)))
        synced = [draw(st.sets(st.sampled_from(row))) for row in assignment[:known]]
        in_sync = tuple(map(tuple, synced))
        topics.append(Exposed(assignment, draw(st.integers(1, 3)), in_sync))
    return topics


@given(st.data(), broker_lists())
def test_a_loss_is_what_becomes_of_each_partition(
    data: st.DataObject, nodes: tuple[Broker, ...]
) -> None:
    topics = data.draw(exposed_topics(nodes))
    ids = [node.id for node in nodes]
    lost = data.draw(st.lists(st.sets(st.sampled_from(ids), min_size=1), min_size=1, max_size=4))
    for gone, loss in zip(lost, measure_losses(topics, nodes, lost), strict=True):
        fates = [
            fate(topic, n, nodes, gone) for topic in topics for n in range(len(topic.assignment))
        ]
        heirs = [heir for moved, heir, _, _ in fates if moved and heir is not None]
        assert loss.leaders_moved == sum(moved for moved, _, _, _ in fates)
        assert loss.heirs == {heir: heirs.count(heir) for heir in heirs}
        assert loss.under_min_in_sync == sum(under for _, _, under, _ in fates)
        assert loss.offline == sum(offline for _, _, _, offline in fates)
        left = [node for node in nodes if node.id not in gone]
        assert (
            count_unwritable(topics, left)[0] - count_unwritable(topics, nodes)[0]
            == loss.under_min_in_sync
        )


def fate(
    topic: Exposed, number: int, nodes: Collection[Broker], gone: Collection[int]
) -> tuple[bool, int | None, bool, bool]:
    """Return whether the leader moves, where to, and what is newly under or offline."""
    before = serving(topic, number, [node.id for node in nodes if node.alive])
    after = serving(topic, number, [b for b in before if b not in gone])
    moved = bool(before) and before[0] in gone
    needed = min(topic.min_in_sync, len(topic.assignment[number]))
    under = len(before) >= needed and len(after) < needed
    return moved, after[0] if after else None, under, bool(before) and not after


def serving(topic: Exposed, number: int, living: Collection[int]) -> Replicas:
    row = topic.assignment[number]
    synced = topic.in_sync[number] if number < len(topic.in_sync) else row
    return tuple(broker for broker in row if broker in living and broker in synced)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5))
def test_misplaced_is_the_least_way_to_an_even_spread(leaders: list[int]) -> None:
    n, total = len(leaders), sum(leaders)
    ways = [w for w in product((total // n, total // n + 1), repeat=n) if sum(w) == total]
    least = min(sum(max(0, a - b) for a, b in zip(leaders, way, strict=True)) for way in ways)
    assert count_misplaced(leaders) == least


@given(st.integers(1, 9), st.integers(1, 30), st.integers(0, 30), st.randoms(use_true_random=False))
def test_two_orders_misplace_at_most_half_the_brokers(
    n: int, first: int, more: int, dice: Random
) -> None:
    """Created round the brokers in any order, grown round them in another from any place."""
    one, other = list(range(n)), list(range(n))
    dice.shuffle(one)
    dice.shuffle(other)
    led = [one[p % n] for p in range(first)] + [other[p % n] for p in range(more)]
    assert count_misplaced([led.count(broker) for broker in range(n)]) <= n // 2


def test_half_the_brokers_are_reached() -> None:
    led = [0, 1, 0, 1]
    assert count_misplaced([led.count(broker) for broker in range(4)]) == 2


@given(broker_lists(), st.data())
def test_a_measure_of_all_topics_is_that_of_one_with_all_rows(
    nodes: tuple[Broker, ...], data: st.DataObject
) -> None:
    ids = [node.id for node in nodes]
    parts = [data.draw(rows_on(ids, min(2, len(ids)))) for _ in range(3)]
    assert measure_quality(parts, nodes) == measure_quality([sum(parts, ())], nodes)
    assert measure_quality(parts[::-1], nodes[::-1]) == measure_quality(parts, nodes)
