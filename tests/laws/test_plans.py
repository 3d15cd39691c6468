"""Laws of planning: applied once is enough, nothing is silent, order means nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TypeVar

from hypothesis import event, given
from hypothesis import strategies as st
from shorthand import CATALOGUE, HERE, NOW_MS
from worlds import World, rows_on, worlds

from reconciler.diff.fields import (
    NOT_MANAGED_KEYS,
    desired_replication,
    list_doubts,
    managed_overrides,
)
from reconciler.model.cluster import TopicSpec, TopicState
from reconciler.model.plan import Plan
from reconciler.model.steps import is_deletion, steps_of
from reconciler.planfile.codec import decode_plan, encode_plan
from reconciler.show.text import render_text

Item = TypeVar("Item")


def refused(plan: Plan) -> set[str]:
    return {topic.name for topic in plan.topics if topic.refusals}


def names_freed(plan: Plan) -> set[str]:
    """Return new topics whose names only collide with a topic that the same plan deletes."""
    gone = {topic.name.replace(".", "_") for topic in plan.topics if is_deletion(topic)}
    collides = {"name-collides-with-live"}
    refusals = {topic.name: {found.rule for found in topic.refusals} for topic in plan.topics}
    return {n for n, rules in refusals.items() if rules == collides and n.replace(".", "_") in gone}


@given(worlds())
def test_a_plan_that_was_applied_leaves_nothing_to_do(world: World) -> None:
    first, second = world.plan(), world.applied().plan()
    event(f"{sum(bool(steps_of(topic)) for topic in first.topics)} topics changed")
    event(f"{len(refused(first))} topics refused")
    freed = names_freed(first)
    assert {topic.name for topic in second.topics if steps_of(topic)} <= freed
    assert refused(second) | freed == refused(first)
    changed = [d.spec.name for d in world.applied().diffs() if d.changes and not d.refusals]
    assert set(changed) <= refused(first)


@given(worlds())
def test_what_is_read_once_more_is_what_a_plan_rests_on(world: World) -> None:
    doubts = list_doubts(world.specs, world.state, CATALOGUE)
    live = [diff for diff in world.diffs() if diff.state is not None]
    planned = {topic.name for topic in world.plan().topics}
    assert set(doubts.planned) == planned & world.state.topics.keys()
    config = [d for d in live if any(c.path.startswith(("config", "topic")) for c in d.changes)]
    assert set(doubts.overridden) == {d.spec.name for d in config if d.state and d.state.config}
    factors = {d.spec.name: d.state.replication_factors for d in live if d.state}
    wished = {d.spec.name: desired_replication(d.spec) for d in live}
    assert set(doubts.longer) == {n for n in factors if max(factors[n]) > (wished[n] or 99)}


@given(worlds(), st.data())
def test_internal_topics_change_no_plan(world: World, data: st.DataObject) -> None:
    """The first apply makes Kafka create one: the same specs still give the same plan.

    Only the health of the cluster counts it.
    """
    ids = [broker.id for broker in world.state.brokers]
    offsets = TopicState("__consumer_offsets", "own", data.draw(rows_on(ids, 1)), internal=True)
    with_it = {**world.state.topics, "__consumer_offsets": offsets}
    planned = replace(world, state=replace(world.state, topics=with_it)).plan()
    assert replace(planned, health=None) == replace(world.plan(), health=None)


@given(worlds())
def test_nothing_is_silent(world: World) -> None:
    """Every wish is met afterwards, or refused; every override stays, goes, or is noted."""
    planned = {topic.name: topic for topic in world.plan().topics}
    after = world.applied().state
    for spec in world.specs:
        topic = planned.get(spec.name)
        if topic is not None and topic.refusals:
            continue
        live = after.topics.get(spec.name)
        assert (live is None) is spec.absent
        if live is not None:
            assert_meets(spec, live, world)
            noted = " ".join(note.what for note in topic.notes) if topic else ""
            unmanaged = {k for k, v in live.config.items() if v is None or k in NOT_MANAGED_KEYS}
            assert all(key in noted for key in unmanaged)


def assert_meets(spec: TopicSpec, live: TopicState, world: World) -> None:
    """Hold a topic against its spec, field by field, without the code under test."""
    if spec.assignment is not None:
        assert live.assignment == spec.assignment
    else:
        assert spec.partitions in (None, len(live.assignment))
        assert spec.replication_factor is None or live.replication_factors == {
            spec.replication_factor
        }
    # Overrides alone count, since the brokers' defaults can change.
    own = managed_overrides(live)
    assert all(CATALOGUE.same(key, own.get(key), spec.config[key]) for key in spec.config)
    assert set(own) <= set(spec.config)


@given(worlds())
def test_every_config_that_differs_is_named(world: World) -> None:
    for diff in world.diffs():
        if diff.state is not None and not diff.spec.absent:
            now = managed_overrides(diff.state)
            keys = {key for key in {*now, *diff.config} if now.get(key) != diff.config.get(key)}
            named = {change.path for change in diff.changes if change.path.startswith("config")}
            assert named == {f"config.{key}" for key in keys}


@given(worlds())
def test_every_field_of_a_refused_change_is_listed_and_none_of_others(world: World) -> None:
    diffs = {diff.spec.name: diff for diff in world.diffs()}
    for planned in world.plan().topics:
        listed = {field.path for field in planned.refused_change}
        diff = diffs[planned.name]
        if not planned.refusals:
            assert listed == set()
        elif diff.spec.absent:
            assert listed == {"state"}
        elif diff.state is not None:
            assert {change.path for change in diff.changes} <= listed
        else:
            assert {f"config.{key}" for key in diff.config} <= listed


@given(worlds())
def test_the_balance_that_is_promised_is_the_balance_that_comes(world: World) -> None:
    assert world.plan().balance_after == world.applied().plan().balance_before


@given(worlds())
def test_what_is_there_is_never_moved(world: World) -> None:
    after = world.applied().state
    for name, topic in world.state.topics.items():
        if name not in deleted(world):
            assert after.topics[name].assignment[: len(topic.assignment)] == topic.assignment


def deleted(world: World) -> set[str]:
    return world.state.topics.keys() - world.applied().state.topics.keys()


@given(worlds())
def test_what_goes_was_asked_for_allowed_and_seen_to_be_unused(world: World) -> None:
    """No topic goes to reach anything else, whatever a spec says of it."""
    gone = deleted(world)
    event(f"{len(gone)} topics deleted")
    assert gone <= {spec.name for spec in world.specs if spec.absent}
    assert len(gone) <= world.guards.max_deletes
    for name in gone:
        usage = world.state.usage[name]
        assert (usage.groups, usage.unseen) == ((), "")
        assert not world.state.topics[name].reassigning
        assert usage.newest_ms is None or usage.newest_ms <= NOW_MS - world.guards.unused_for_ms


@given(worlds())
def test_brokers_that_take_nothing_new_get_nothing_new(world: World) -> None:
    after = world.applied().state
    takers = {b.id for b in world.state.brokers if b.alive and not b.cordoned} - world.excluded
    for name, topic in after.topics.items():
        old = world.state.topics.get(name)
        new = topic.assignment[len(old.assignment) if old else 0 :]
        assert {broker for row in new for broker in row} <= takers


@given(worlds())
def test_specs_that_say_what_is_there_make_no_steps(world: World) -> None:
    specs = tuple(
        TopicSpec(
            name,
            HERE,
            partitions=len(topic.assignment),
            config=managed_overrides(topic),
            assignment=topic.assignment if len(topic.replication_factors) == 1 else None,
        )
        for name, topic in world.state.topics.items()
    )
    plan = replace(world, specs=specs).plan()
    assert [topic for topic in plan.topics if not topic.notes] == []
    assert [steps_of(topic) for topic in plan.topics if steps_of(topic)] == []
    assert refused(plan) == set()
    assert plan.balance_after == plan.balance_before


@given(worlds(), st.randoms(use_true_random=False))
def test_order_means_nothing(world: World, random: Random) -> None:
    def shuffled(items: Iterable[Item]) -> list[Item]:
        drawn = list(items)
        random.shuffle(drawn)
        return drawn

    topics = {
        name: replace(topic, config=dict(shuffled(topic.config.items())))
        for name, topic in shuffled(world.state.topics.items())
    }
    state = replace(
        world.state,
        brokers=tuple(shuffled(world.state.brokers)),
        topics=topics,
        config_defaults=dict(shuffled(world.state.config_defaults.items())),
    )
    specs = tuple(
        replace(spec, config=dict(shuffled(spec.config.items()))) for spec in shuffled(world.specs)
    )
    other = World(state, specs, world.excluded, world.guards)
    assert encode_plan(other.plan()) == encode_plan(world.plan())
    assert render_text(other.plan()) == render_text(world.plan())


@given(worlds())
def test_a_plan_survives_its_file(world: World) -> None:
    plan = world.plan()
    assert decode_plan(encode_plan(plan)) == plan
    assert encode_plan(decode_plan(encode_plan(plan))) == encode_plan(plan)


@given(worlds())
def test_a_plan_that_came_from_a_file_reads_and_does_the_same(world: World) -> None:
    plan = world.plan()
    back = decode_plan(encode_plan(plan))
    assert render_text(back) == render_text(plan)
    assert [steps_of(topic) for topic in back.topics] == [steps_of(topic) for topic in plan.topics]


@given(worlds())
def test_every_topic_of_the_estate_is_counted_once(world: World) -> None:
    plan = world.plan()
    changed = sum(bool(steps_of(topic) or topic.refusals) for topic in plan.topics)
    assert plan.unchanged + changed == len(world.specs)  # noted ones are unchanged
    assert [topic.name for topic in plan.topics] == sorted({topic.name for topic in plan.topics})


PRINT_A_PLAN = """
import sys
from shorthand import brokers, cluster, plan, spec, topic
from reconciler.planfile.codec import encode_plan
from reconciler.show.text import render_text
live = [
    topic("1,2,3 2,3,1", f"t.{n}", config={f"k{k}": str(k) for k in range(n)},
          reassigning=frozenset(range(n % 2)))
    for n in range(12)
] + [topic("1,2 1,2,3 2", "mixed"), topic("1", "t-0"), topic("1", "t_1.x")]
both = frozenset({"ordering", "data-loss"})
specs = [spec(f"t.{n}", partitions=n, config={f"k{n}": "x"}, acknowledge=both) for n in range(1, 9)]
specs += [spec(f"new{n}", partitions=n, replication_factor=3) for n in range(1, 9)]
specs += [spec("mixed", partitions=9), spec("t_1_x", partitions=1, replication_factor=9)]
made = plan(specs, cluster(*live, nodes=brokers("a", "b", "c", "a", "b")))
sys.stdout.write(encode_plan(made) + render_text(made, colour=True))
"""


def test_the_hash_seed_means_nothing() -> None:
    tests = str(Path(__file__).parents[1])
    answers = {
        subprocess.run(
            [sys.executable, "-c", PRINT_A_PLAN],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": tests},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    (answer,) = answers
    assert b'"expand"' in answer
