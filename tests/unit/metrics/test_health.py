"""The health of one cluster: which partitions and brokers count, and as what."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shorthand import brokers, cluster, topic

from reconciler.metrics.health import PROBLEMS, count_problems
from reconciler.model.cluster import LogDirectory, TopicState


def live(**found: object) -> TopicState:
    """Return a topic of two partitions, led and in sync unless `found` says otherwise."""
    healthy = {"leaders": (1, 2), "in_sync": ((1, 2), (2, 3))}
    return topic("1,2 2,3", **{**healthy, **found})


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        (live(), {}),
        (live(leaders=(-1, 2)), {"offline": 1}),
        (live(leaders=(), in_sync=()), {}),
        (live(in_sync=((1,), (2, 3))), {"under_replicated": 1}),
        (live(in_sync=((1,), (2, 3)), reassigning=frozenset({0})), {}),
        (
            live(in_sync=((1,), (2, 3)), config={"min.insync.replicas": "2"}),
            {"under_replicated": 1, "unwritable": 1},
        ),
        (
            live(leaders=(-1, 2), in_sync=((), (2, 3)), config={"min.insync.replicas": "2"}),
            {"offline": 1, "under_replicated": 1},
        ),
        (live(in_sync=((1,), (2, 3)), internal=True), {"under_replicated": 1}),
    ],
)
def test_what_counts_of_a_topic(seen: TopicState, wrong: dict[str, int]) -> None:
    assert count_problems(cluster(seen)) == dict.fromkeys(PROBLEMS, 0) | wrong


def test_the_default_of_the_cluster_holds_for_topics_without_an_override() -> None:
    short = live(in_sync=((1,), (2, 3)))
    assert count_problems(cluster(short, defaults={"min.insync.replicas": "2"}))["unwritable"] == 1


def test_log_directories_that_are_offline_on_living_brokers_count() -> None:
    one, *others = brokers("a", "b", "c")
    held = (LogDirectory("/a", 9, 9, 0), LogDirectory("/b", None, None, online=False))
    state = replace(cluster(live(), nodes=(one, *others)), directories={1: held, 2: held[:1]})
    assert count_problems(state)["directories_offline"] == 1
    dead = replace(state, brokers=(replace(one, alive=False), *others))
    assert count_problems(dead)["directories_offline"] == 0


def test_brokers_that_are_down_count() -> None:
    one, *others = brokers("a", "b", "c")
    state = cluster(live(), nodes=(replace(one, alive=False), *others))
    assert count_problems(state)["brokers_down"] == 1
