"""Laws of the fingerprint: it moves with what a plan does and rests on, and with nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from worlds import NAMES, VALUES, World, worlds

from reconciler.apply.convergence import Remaining, compare_state
from reconciler.errors import PlanFileError
from reconciler.model.cluster import TopicState
from reconciler.model.plan import Plan, PlannedTopic, TopicImage
from reconciler.model.steps import is_deletion, steps_of
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan

PRINTABLE = "".join(map(chr, range(32, 127)))
SHAPES: tuple[Callable[[TopicImage], TopicImage], ...] = (
    lambda image: replace(image, topic_id=f"{image.topic_id}x"),
    lambda image: replace(image, assignment=(*image.assignment, (1,))),
    lambda image: replace(image, assignment=image.assignment[1:]),
)
MUTATIONS: tuple[Callable[[TopicImage], TopicImage], ...] = (
    *SHAPES,
    lambda image: replace(image, assignment=((*image.assignment[0], 77), *image.assignment[1:])),
    lambda image: replace(image, config={**image.config, "flush.ms": "77"}),
    lambda image: replace(image, config={**image.config, "": ""}),
)


def changed(plan: Plan, number: int, topic: PlannedTopic) -> Plan:
    topics = (*plan.topics[:number], topic, *plan.topics[number + 1 :])
    return replace(plan, topics=topics)


@given(worlds(), st.data())
def test_the_fingerprint_moves_with_every_image(world: World, data: st.DataObject) -> None:
    plan = world.plan()
    images = [
        (number, side)
        for number, topic in enumerate(plan.topics)
        for side in ("before", "after")
        if getattr(topic, side) is not None
    ]
    assume(images)
    number, side = data.draw(st.sampled_from(images))
    image = getattr(plan.topics[number], side)
    # A topic that is deleted is gone wherever its replicas are, and whatever its configs.
    mutations = SHAPES if is_deletion(plan.topics[number]) else MUTATIONS
    for mutate in (*mutations, lambda _: None):
        other = changed(plan, number, replace(plan.topics[number], **{side: mutate(image)}))
        assert fingerprint_plan(other) != fingerprint_plan(plan)


@given(worlds(), st.dictionaries(st.sampled_from(sorted(VALUES)), st.just("7"), max_size=3))
def test_the_fingerprint_stays_when_an_unrelated_topic_is_configured(
    world: World, config: dict[str, str]
) -> None:
    named = {spec.name for spec in world.specs}
    others = {name: topic for name, topic in world.state.topics.items() if name not in named}
    assume(others)
    moved = {n: replace(t, config=config, topic_id="anew") for n, t in others.items()}
    state = replace(world.state, topics={**world.state.topics, **moved})
    other = replace(world, state=state)
    assert fingerprint_plan(other.plan()) == fingerprint_plan(world.plan())


@given(worlds(), st.data())
def test_the_fingerprint_stays_when_an_unrelated_topic_comes_and_nothing_is_placed(
    world: World, data: st.DataObject
) -> None:
    """Where replicas are placed the cluster's load decides, so there a plan rests on it."""
    specs = tuple(
        replace(spec, partitions=None, replication_factor=None, assignment=None)
        for spec in world.specs
        if spec.name in world.state.topics
    )
    name = data.draw(st.sampled_from([f"{name}x" for name in NAMES]))
    ids = [broker.id for broker in world.state.brokers]
    new = TopicState(name, "new", ((data.draw(st.sampled_from(ids)),),))
    state = replace(world.state, topics={**world.state.topics, name: new})
    without = replace(world, specs=specs)
    beside = replace(without, state=state)
    assert fingerprint_plan(beside.plan()) == fingerprint_plan(without.plan())


@given(worlds(), st.data())
def test_a_plan_stays_approved_and_applicable_while_its_replicas_move(
    world: World, data: st.DataObject
) -> None:
    """A drain moves replicas for hours, to any broker; apply takes none of them back."""
    plan = world.plan()
    topics = []
    for topic in plan.topics:
        before, after = topic.before, topic.after
        if before is None:
            topics.append(topic)
            continue
        number = len(before.assignment)
        rows = tuple(
            tuple(data.draw(st.permutations([*row, 50 + len(row)])))[: len(row)]
            for row in before.assignment
        )
        live = replace(world.state.topics[topic.name], assignment=rows)
        assert compare_state(topic, live) == Remaining(steps_of(topic))
        if after is not None:
            done = replace(live, assignment=rows + after.assignment[number:], config=after.config)
            assert compare_state(topic, done).is_done
            after = replace(after, assignment=rows + after.assignment[number:])
        topics.append(replace(topic, before=replace(before, assignment=rows), after=after))
    moved = replace(plan, topics=tuple(topics))
    assert fingerprint_plan(moved) == fingerprint_plan(plan)
    assert [steps_of(topic) for topic in moved.topics] == [steps_of(t) for t in plan.topics]


@given(worlds(), st.data())
def test_every_changed_character_of_a_change_is_caught(world: World, data: st.DataObject) -> None:
    text = encode_plan(world.plan())
    spans = list(spans_of_changes(text))
    assume(spans)
    start, end = data.draw(st.sampled_from(spans))
    for _ in range(20):
        at = data.draw(st.integers(start, end - 1))
        character = data.draw(st.sampled_from(PRINTABLE.replace(text[at], "")))
        with pytest.raises(PlanFileError):
            decode_plan(text[:at] + character + text[at + 1 :])


def spans_of_changes(text: str) -> list[tuple[int, int]]:
    """Find where each `change` of a plan file stands in its text."""
    spans, at = [], 0
    for resource in json.loads(text)["resource_changes"]:
        change = json.dumps(resource["change"], sort_keys=True, separators=(",", ":"))
        at = text.index(f'"change":{change}', at) + len('"change":')
        spans.append((at, at + len(change)))
    return spans


@given(worlds(), st.data())
def test_everything_that_is_taken_out_of_a_change_is_caught(
    world: World, data: st.DataObject
) -> None:
    document = json.loads(encode_plan(world.plan()))
    assume(document["resource_changes"])
    resource = data.draw(st.sampled_from(document["resource_changes"]))
    holder, key = data.draw(st.sampled_from(places_in(resource["change"])))
    del holder[key]
    with pytest.raises(PlanFileError):
        decode_plan(json.dumps(document))


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """List every item of a nested value, with what holds it."""
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    found = [(value, key) for key, _ in items]
    for _, item in items:
        if isinstance(item, dict | list):
            found += places_in(item)
    return found


@given(st.text() | st.binary().map(lambda b: b.decode("latin-1")))
def test_whatever_is_no_plan_is_refused_in_words(text: str) -> None:
    with pytest.raises(PlanFileError, match=r"\[plan-(form|version|tampered)\]"):
        decode_plan(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(worlds(), JSON, st.data())
def test_whatever_stands_in_a_plan_instead_is_refused(
    world: World, value: object, data: st.DataObject
) -> None:
    text = encode_plan(world.plan())
    document = json.loads(text)
    holder, key = data.draw(st.sampled_from(places_in(document)))
    assume(json.dumps(holder[key]) != json.dumps(value))
    holder[key] = value
    with pytest.raises(PlanFileError):
        decode_plan(json.dumps(document))
