"""Laws of the whole way, on real brokers: whatever is found and wished, once is enough.

Topics are made as drawn, specs are planned against them and applied. Then there is nothing left to
do, the second time changes nothing, the checker takes every assignment, and what lands is what was
planned, to the last replica and override.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache

import pytest
from config_values import values_for
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from lab import create
from shorthand import CATALOGUE, spec
from workbench import Workbench, outcomes, remove
from worlds import rows_on, seldom

from reconciler.diff.brokers import eligible_brokers
from reconciler.diff.fields import managed_overrides
from reconciler.model.cluster import Assignment, ClusterState, TopicSpec, TopicState
from reconciler.model.plan import Plan
from reconciler.model.steps import CreateTopic, steps_of
from reconciler.placement.check import check_placement
from reconciler.placement.problem import Problem, Wish, count_load
from reconciler.sandbox.cluster import Cluster

BROKERS = range(1, 7)
# Of the others, some rest on each other, some need tiered storage, and some make files of any size.
CONFIGS = (
    "cleanup.policy",
    "compression.gzip.level",
    "compression.type",
    "delete.retention.ms",
    "flush.messages",
    "max.message.bytes",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.insync.replicas",
    "retention.bytes",
    "retention.ms",
    "segment.jitter.ms",
    "unclean.leader.election.enable",
)
PROFILE = settings(
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
_prefixes = map("law{}-".format, itertools.count())


@dataclass(frozen=True)
class Case:
    """A topic as it is found, None where it is not, and what is wished of it."""

    rows: Assignment | None
    config: dict[str, str]
    wish: TopicSpec


@cache
def accepted_values(key: str) -> tuple[str, ...]:
    """Return what validation makes of the values that it takes, in the brokers' own spelling."""
    read = (CATALOGUE.normalise(key, text, None) for text in values_for(CATALOGUE.keys[key]))
    return tuple(dict.fromkeys(value for value in read if isinstance(value, str)))


@st.composite
def configs(draw: st.DrawFn, replication: int) -> dict[str, str]:
    keys = draw(st.sets(st.sampled_from(CONFIGS), max_size=4))
    config = {key: draw(st.sampled_from(accepted_values(key))) for key in sorted(keys)}
    if "min.insync.replicas" in config and not draw(seldom(5)):
        config["min.insync.replicas"] = str(draw(st.integers(1, replication)))
    return config


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw what mostly can be done: growth, configs, rows by hand; seldom what cannot."""
    replication = draw(st.integers(1, 3))
    rows = draw(st.none() | rows_on(list(BROKERS), replication))
    count = len(rows or ()) + draw(st.integers(0, 9)) - draw(seldom(8))
    wish = spec(
        partitions=max(count, 1),
        replication_factor=replication + draw(seldom(10)),
        config=draw(configs(replication)),
        rack_aware=draw(st.booleans()),
        acknowledge=frozenset() if draw(seldom(5)) else frozenset({"data-loss", "ordering"}),
    )
    if draw(seldom(4)):
        by_hand = (rows or ()) + draw(rows_on(list(BROKERS), replication))
        wish = replace(wish, assignment=by_hand, partitions=None, replication_factor=None)
    return Case(rows, draw(configs(replication)) if rows else {}, wish)


@pytest.fixture
def bench(cluster6: Cluster) -> Workbench:
    return Workbench(cluster6)


@given(st.lists(cases(), min_size=1, max_size=4))
@settings(PROFILE, max_examples=3)
def test_once_is_enough(bench: Workbench, drawn: list[Case]) -> None:
    hold_to_the_laws(bench, drawn)


@pytest.mark.slow
@given(st.lists(cases(), min_size=1, max_size=8))
@settings(PROFILE, max_examples=150)
def test_once_is_enough_in_many_more_cases(bench: Workbench, drawn: list[Case]) -> None:
    hold_to_the_laws(bench, drawn)


def hold_to_the_laws(bench: Workbench, drawn: list[Case]) -> None:
    prefix = next(_prefixes)
    specs = [replace(case.wish, name=f"{prefix}{number}") for number, case in enumerate(drawn)]
    found = [
        CreateTopic(wish.name, case.rows, case.config)
        for wish, case in zip(specs, drawn, strict=True)
        if case.rows is not None
    ]
    # What is in force without an override is known from a topic that has none: where there is no
    # such topic, a plan may refuse as risky what it would not once one has been created.
    plain = spec(f"{prefix}plain", partitions=1, replication_factor=1)
    specs.append(plain)
    create(bench.connection, CreateTopic(plain.name, ((1,),), {}), *found)
    try:
        hold_one(bench, specs)
    finally:
        remove(bench, [wish.name for wish in specs])


def hold_one(bench: Workbench, specs: list[TopicSpec]) -> None:
    # All configs, as afterwards: other tests leave topics behind.
    live = bench.reader.read_cluster(config_of=()).topics.keys()
    before = bench.read(live | {wish.name for wish in specs})
    plan = bench.plan(*specs)
    assert check(plan, specs, before) == ()
    expected = {
        topic.name: "refused" if topic.refusals else "done"
        for topic in plan.topics
        if topic.refusals or steps_of(topic)
    }
    for kind, number in Counter(expected.values()).items():
        event(f"{number} topics {kind}")
    assert outcomes(bench.apply(plan, skip_refused=True)) == expected

    after = bench.read(before.topics.keys() | {wish.name for wish in specs})
    assert_landed_and_nothing_else(plan, before, after)
    second = bench.plan(*specs)
    assert [topic.name for topic in second.topics if steps_of(topic)] == []
    assert {topic.name for topic in second.topics if topic.refusals} == {
        name for name, kind in expected.items() if kind == "refused"
    }

    again = {name: "already done" if kind == "done" else kind for name, kind in expected.items()}
    assert outcomes(bench.apply(plan, skip_refused=True)) == again
    assert shape(bench.read(after.topics)) == shape(after)


def check(plan: Plan, specs: list[TopicSpec], state: ClusterState) -> tuple[str, ...]:
    """Hold every assignment of a plan that was not written by hand against the checker."""
    wished = {wish.name: wish for wish in specs}
    wishes, placed = [], {}
    for topic in plan.topics:
        existing = topic.before.assignment if topic.before else ()
        rows = topic.after.assignment[len(existing) :] if topic.after else ()
        if rows and wished[topic.name].assignment is None:
            placed[topic.name] = rows
            rack_aware = wished[topic.name].rack_aware
            wishes.append(Wish(topic.name, existing, len(rows), len(rows[0]), rack_aware))
    leaders, replicas = count_load(topic.assignment for topic in state.topics.values())
    brokers = eligible_brokers(state.brokers, ())
    return check_placement(Problem(brokers, leaders, replicas, tuple(wishes)), placed)


def assert_landed_and_nothing_else(plan: Plan, before: ClusterState, after: ClusterState) -> None:
    expected = shape(before)
    for topic in plan.topics:
        if steps_of(topic):
            assert topic.after is not None
            there = topic.name in before.topics
            topic_id = topic.after.topic_id if there else after.topics[topic.name].topic_id
            expected[topic.name] = (topic_id, topic.after.assignment, dict(topic.after.config))
    assert shape(after) == expected


def shape(state: ClusterState) -> dict[str, tuple[str | None, Assignment, dict[str, str]]]:
    """Return what a plan could change, and the ids: in-sync replicas come and go by themselves."""
    return {name: of_topic(topic) for name, topic in state.topics.items()}


def of_topic(topic: TopicState) -> tuple[str | None, Assignment, dict[str, str]]:
    return (topic.topic_id, topic.assignment, dict(managed_overrides(topic)))
