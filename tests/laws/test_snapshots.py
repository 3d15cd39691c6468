"""Laws of snapshots: nothing is lost, and a plan made on one is the plan made on the state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from formats import load_validator
from hypothesis import given
from hypothesis import strategies as st
from worlds import worlds

from reconciler.errors import SnapshotError
from reconciler.model.cluster import (
    ClusterState,
    CommittedOffsets,
    LeaderLog,
    LogDirectory,
    Place,
    StoredReplica,
    TopicState,
)
from reconciler.model.steps import is_deletion
from reconciler.planfile.codec import encode_plan
from reconciler.planfile.snapshot import decode_snapshot, encode_snapshot

if TYPE_CHECKING:
    from worlds import World


@st.composite
def states(draw: st.DrawFn) -> ClusterState:
    """Draw a state with everything that a snapshot can hold: who uses a topic is not in it."""
    state = forget_usage(draw(worlds()).state)
    topics = {name: draw(measured(topic)) for name, topic in state.topics.items()}
    named = draw(st.none() | st.text(max_size=30))
    version = draw(st.none() | st.sampled_from(("4.1", "3.9.2")))
    brokers = tuple(sorted(state.brokers, key=lambda broker: broker.id))
    flags = st.sampled_from(("remote.log.storage.system.enable", "delete.topic.enable"))
    settings = draw(st.dictionaries(flags, st.sampled_from(("true", "false"))))
    held = draw(st.fixed_dictionaries({}, optional={b.id: directories() for b in brokers}))
    return replace(
        state,
        cluster_id=named,
        brokers=brokers,
        topics=topics,
        kafka_version=version,
        broker_settings=settings,
        directories={broker: held[broker] for broker in sorted(held)},
        read_at_ms=draw(st.integers(0, 2**42)),
        measured_s=draw(st.integers(0, 2**31)),
        committed_offsets=draw(committed(state)),
        stored={
            broker: replicas
            for broker in sorted(held)
            if (replicas := draw(stored(held[broker], sorted(topics))))
        },
    )


def stored(
    directories: tuple[LogDirectory, ...], topics: list[str]
) -> st.SearchStrategy[dict[Place, StoredReplica]]:
    """Draw where the replicas of a broker are; nothing if it has only one log directory."""
    first, *others = [each.path for each in directories]
    if not (others and topics):
        return st.just({})
    places = st.tuples(st.sampled_from(topics), st.integers(0, 99))
    bytes_ = st.integers(0, 2**63 - 1)
    # Hypothesis draws what is left out as well.
    resting = st.builds(
        StoredReplica, st.sampled_from([first, *others]), bytes_, st.just(""), st.just(0)
    )
    moving = st.builds(StoredReplica, st.just(first), bytes_, st.sampled_from(others), bytes_)
    return st.dictionaries(places, resting | moving, max_size=4)


def directories() -> st.SearchStrategy[tuple[LogDirectory, ...]]:
    """Draw the log directories of a broker, or what it says about them."""
    amounts = st.none() | st.integers(0, 2**63 - 1)
    path = st.text(min_size=1, max_size=9)
    each = st.builds(LogDirectory, path, amounts, amounts, amounts, st.booleans())
    return st.lists(each, min_size=1, max_size=2, unique_by=lambda each: each.path).map(tuple)


@st.composite
def measured(draw: st.DrawFn, topic: TopicState) -> TopicState:
    """Draw what is in sync and how much there is, or nobody knows."""
    amounts = st.just(()) | st.tuples(*[st.integers(-1, 2**63 - 1)] * len(topic.assignment))
    in_sync = draw(st.just(()) | st.just(tuple(row[::-1] for row in topic.assignment)))
    return replace(
        topic,
        in_sync=in_sync,
        internal=draw(st.booleans()),
        size_bytes=draw(amounts),
        write_bytes_per_s=draw(amounts),
        read_bytes_per_s=draw(amounts),
        guessed_rates=frozenset(draw(st.sets(st.integers(0, len(topic.assignment) - 1)))),
        logs=draw(st.just(()) | st.tuples(*[st.none() | logs()] * len(topic.assignment))),
    )


@st.composite
def logs(draw: st.DrawFn) -> LeaderLog:
    """Draw what the leader of a partition holds."""
    start, end = sorted(draw(st.tuples(*[st.integers(0, 2**63 - 1)] * 2)))
    return LeaderLog(draw(st.integers(0, 9)), start, end, draw(st.integers(0, 2**63 - 1)))


def committed(state: ClusterState) -> st.SearchStrategy[CommittedOffsets | None]:
    """Draw how far groups have read, or that nobody looked."""
    of_topics: dict[str, st.SearchStrategy[tuple[int, ...]]] = {
        name: st.tuples(*[st.integers(-1, 2**63 - 1)] * len(topic.assignment))
        for name, topic in state.topics.items()
    }
    of_group = st.fixed_dictionaries({}, optional=of_topics)
    return st.none() | st.dictionaries(st.text(max_size=9), of_group, max_size=2)


def forget_usage(state: ClusterState) -> ClusterState:
    """Return a state as a snapshot has it: who uses a topic is seen on the cluster only."""
    return replace(state, usage={})


@given(states())
def test_nothing_is_lost(state: ClusterState) -> None:
    text = encode_snapshot(state)
    assert decode_snapshot(text) == state
    assert encode_snapshot(decode_snapshot(text)) == text
    load_validator("snapshot").validate(json.loads(text))


@given(states(), st.data())
def test_neither_order_changes_the_text(state: ClusterState, data: st.DataObject) -> None:
    names = data.draw(st.permutations(list(state.topics)))
    brokers = data.draw(st.permutations(state.brokers))
    shuffled = {name: state.topics[name] for name in names}
    other = replace(state, brokers=tuple(brokers), topics=shuffled)
    assert encode_snapshot(other) == encode_snapshot(state)


@given(worlds())
def test_a_plan_on_a_snapshot_is_the_plan_on_the_state(world: World) -> None:
    read = replace(world, state=decode_snapshot(encode_snapshot(world.state)))
    told = replace(world, state=forget_usage(world.state))
    assert encode_plan(read.plan()) == encode_plan(told.plan())
    assert not any(is_deletion(topic) for topic in read.plan().topics)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(("brokers", "topics", "id", "name", "partitions", "config", "x")),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(json_values | st.text())
def test_whatever_a_file_holds_it_is_read_or_refused(value: object) -> None:
    assert is_told(value if isinstance(value, str) else json.dumps(value))


@given(states(), st.data())
def test_a_snapshot_with_one_value_changed_is_read_or_refused(
    state: ClusterState, data: st.DataObject
) -> None:
    raw = json.loads(encode_snapshot(state))
    target, key = data.draw(st.sampled_from(list(_places(raw))))
    target[key] = data.draw(json_values)
    assert is_told(json.dumps(raw))


def is_told(text: str) -> bool:
    """Tell whether a text is read, or refused with a place in it."""
    try:
        decode_snapshot(text, "s.json")
    except SnapshotError as error:
        return all(str(finding).startswith("s.json:") for finding in error.findings)
    return True


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every list and map of a document with each of its keys."""
    entries = enumerate(value) if isinstance(value, list) else value.items()
    for key, inner in entries:
        yield value, key
        if isinstance(inner, list | dict):
            yield from _places(inner)
