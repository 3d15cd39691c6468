"""Placement on real brokers: what is planned lands so, and idle brokers take nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from confluent_kafka.admin import ResourceType
from lab import set_config, wait_for
from shorthand import spec
from workbench import Workbench, remove

from reconciler.model.cluster import Assignment, TopicSpec
from reconciler.placement.measure import measure_balance
from reconciler.sandbox.cluster import Cluster

IDS = range(1, 7)
IDLE = 6


def wish(name: str, partitions: int) -> TopicSpec:
    return spec(
        name, partitions=partitions, replication_factor=3, acknowledge=frozenset({"ordering"})
    )


def bring(bench: Workbench, *specs: TopicSpec) -> list[Assignment]:
    """Plan and apply; return what metadata then shows, which has to be what was planned."""
    plan = bench.bring(*specs)
    planned = {topic.name: topic.after.assignment for topic in plan.topics if topic.after}
    assert planned.keys() == {each.name for each in specs}
    assert {name: read_replicas(bench, name, len(rows)) for name, rows in planned.items()} == (
        planned
    )
    return [planned[each.name] for each in specs]


def read_replicas(bench: Workbench, name: str, count: int) -> Assignment:
    """Read replica lists from a broker's metadata, once that knows `count` partitions."""
    wait_for(lambda: len(show_replicas(bench, name)) >= count)
    return show_replicas(bench, name)


def show_replicas(bench: Workbench, name: str) -> Assignment:
    topic = bench.others.list_topics(timeout=15).topics.get(name)
    shown = topic.partitions if topic else {}
    return tuple(tuple(shown[number].replicas) for number in sorted(shown))


def skews(rows: Assignment) -> tuple[int, int]:
    balance = measure_balance([rows], IDS)
    return balance.leaders.skew, balance.replicas.skew


def test_a_topic_lands_as_planned_and_evenly_when_created_and_when_grown(
    cluster6: Cluster, topic_prefix: str
) -> None:
    bench = Workbench(cluster6)
    rack = {broker.id: broker.rack for broker in bench.read([]).brokers}
    name = f"{topic_prefix}orders"
    (created,) = bring(bench, wish(name, 30))
    assert skews(created) == (0, 0)
    (grown,) = bring(bench, wish(name, 37))
    assert grown[:30] == created
    assert skews(grown) == (1, 1)
    assert {len({rack[broker] for broker in row}) for row in grown} == {3}


def test_a_topic_grown_one_partition_at_a_time_lands_as_planned_and_stays_even(
    cluster6: Cluster, topic_prefix: str
) -> None:
    bench = Workbench(cluster6)
    # Alone: beside other topics it may have a replica more on one broker than on another, since
    # leaders come first, and the cluster decides among equals.
    remove(bench, bench.reader.read_cluster(config_of=()).user_topics)
    rows: Assignment = ()
    for count in range(1, 13):
        (grown,) = bring(bench, wish(f"{topic_prefix}orders", count))
        assert grown[:-1] == rows
        assert max(skews(grown)) <= 1
        rows = grown
    assert skews(rows) == (0, 0)


def test_creates_and_expansions_of_one_plan_land_as_planned(
    cluster6: Cluster, topic_prefix: str
) -> None:
    bench = Workbench(cluster6)
    old = [f"{topic_prefix}old{n}" for n in range(5)]
    new = [f"{topic_prefix}new{n}" for n in range(5)]
    before = bring(bench, *(wish(name, 3 + n) for n, name in enumerate(old)))
    wishes = [wish(name, 12 + n) for n, name in enumerate([*old, *new])]
    after = bring(bench, *wishes)
    assert [rows[: len(kept)] for rows, kept in zip(after, before, strict=False)] == before
    assert max(max(skews(rows)) for rows in after) <= 1


@contextmanager
def cordoned(cluster: Cluster) -> Iterator[None]:
    set_config(cluster, ResourceType.BROKER, str(IDLE), cordoned_log_dirs="*")
    try:
        yield
    finally:
        set_config(cluster, ResourceType.BROKER, str(IDLE), cordoned_log_dirs="")


@contextmanager
def stopped(cluster: Cluster) -> Iterator[None]:
    cluster.stop_broker(IDLE)
    try:
        yield
    finally:
        cluster.start_broker(IDLE)


@pytest.mark.parametrize("idle", [cordoned, stopped])
def test_a_broker_that_may_take_nothing_keeps_what_it_has_and_gets_nothing(
    cluster6: Cluster, topic_prefix: str, idle: Callable[[Cluster], AbstractContextManager[None]]
) -> None:
    bench = Workbench(cluster6)
    old, new = f"{topic_prefix}old", f"{topic_prefix}new"
    (before,) = bring(bench, wish(old, 12))
    assert sum(IDLE in row for row in before) == 6
    with idle(cluster6):
        wait_for(lambda: is_idle(bench))
        after, created = bring(bench, wish(old, 30), wish(new, 30))
        assert after[:12] == before
        assert not any(IDLE in row for row in (*after[12:], *created))
        assert Counter(row[0] for row in created) == dict.fromkeys(range(1, 6), 6)
        # One broker is left in its rack, and every partition has a replica in each rack.
        assert sorted(Counter(b for row in created for b in row).values()) == [15] * 4 + [30]
    assert read_replicas(bench, old, 30) == after


def is_idle(bench: Workbench) -> bool:
    """Tell whether the cluster says of the broker that it is cordoned, or does not say it."""
    return not any(b.id == IDLE and b.alive and not b.cordoned for b in bench.read([]).brokers)
