"""Topics that only a drain moves: which they are, and what of their specs counts."""

from __future__ import annotations

import pytest
from shorthand import HERE, cluster, rows, spec, topic

from reconciler.diff.drains import Drain, keep_drained_topics
from reconciler.model.cluster import Reassignment, TopicSpec

DRAIN = Drain(frozenset({3}), HERE)


def kept(*specs: TopicSpec, planned: tuple[str, ...] = ()) -> list[TopicSpec]:
    """Drain broker 3, which has a replica of `a`."""
    state = cluster(topic("1,3 2,1", "a"), topic("1,2", "b"))
    return list(keep_drained_topics(DRAIN, state, planned, specs))


def test_a_topic_of_no_file_gets_a_spec_that_asks_for_nothing() -> None:
    assert kept() == [TopicSpec("a", HERE)]


def test_a_topic_that_the_plan_has_anyhow_is_not_added() -> None:
    assert kept(planned=("a",)) == []


def test_a_topic_of_a_file_outside_the_plan_changes_in_no_other_way() -> None:
    written = spec("a", partitions=9, replication_factor=3, owner="shop")
    assert kept(written) == [spec("a", owner="shop")]


def test_manual_rows_are_not_replaced_by_others() -> None:
    written = spec("a", assignment=rows("1,2 2,1"))
    assert kept(written) == [written]


def test_a_topic_to_be_deleted_is_not_moved() -> None:
    assert kept(spec("a", absent=True)) == []


@pytest.mark.parametrize("replicas", [(1, 3, 2), (1, 2, 3)])
def test_a_row_that_is_in_flight_to_or_off_a_drained_broker_counts(
    replicas: tuple[int, ...],
) -> None:
    state = cluster(topic("1,2", "a"))
    moving = Reassignment("a", 0, replicas, (), (3,))
    state = type(state)(state.cluster_id, state.brokers, state.topics, reassignments=(moving,))
    assert [each.name for each in keep_drained_topics(DRAIN, state, (), ())] == ["a"]


def test_without_brokers_to_drain_no_topic_is_added() -> None:
    nothing = Drain(frozenset(), HERE)
    assert list(keep_drained_topics(nothing, cluster(topic("1,3", "a")), (), ())) == []
