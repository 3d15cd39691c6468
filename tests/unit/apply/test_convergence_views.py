"""Views of brokers that disagree: which one is believed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import cast

import pytest
from shorthand import HERE, rows, topic

from reconciler.apply.convergence import Remaining, compare_slowest_views, compare_views
from reconciler.errors import ClusterError
from reconciler.model.cluster import TopicState
from reconciler.model.plan import Deletion, PlannedTopic, TopicImage
from reconciler.model.steps import steps_of
from reconciler.run.ports import Clock, ClusterReader

NAME = "shop.orders"
GROW = PlannedTopic(
    NAME, HERE, TopicImage("id", rows("1"), {}), TopicImage("id", rows("1 2"), {"flush.ms": "1"})
)
BEFORE, AFTER = topic("1"), topic("1 2", config={"flush.ms": "1"})
FOREIGN = topic("1 2 3", config={"flush.ms": "1"})


class Brokers:
    """The part of a reader that is asked here: each broker shows one state of the topic."""

    def __init__(self, *shown: TopicState | None, topic_id: str = "id") -> None:
        self.shown = shown
        self.topic_id = topic_id

    def read_topic_ids(self, names: Collection[str]) -> Mapping[str, str]:
        return dict.fromkeys(names, self.topic_id)

    def read_views(
        self, names: Collection[str], with_config: Collection[str] = ()
    ) -> Mapping[int, Mapping[str, TopicState]]:
        asked = {*names, *with_config}
        return {
            n: dict.fromkeys(asked, state) if state else {} for n, state in enumerate(self.shown)
        }


class Waiting:
    """A clock: what the brokers show changes while somebody waits."""

    def __init__(self, brokers: Brokers, *later: TopicState) -> None:
        self.brokers = brokers
        self.later = list(later)
        self.slept = 0

    def sleep(self, _: float) -> None:
        self.slept += 1
        if self.later:
            self.brokers.shown = (self.later.pop(0),)


NOBODY_WAITS = cast("Clock", None)


def seen(*shown: TopicState | None) -> Remaining:
    return compare_views(cast("ClusterReader", Brokers(*shown)), NOBODY_WAITS, {NAME: GROW})[NAME]


def seen_everywhere(*shown: TopicState | None) -> Remaining:
    return compare_slowest_views(cast("ClusterReader", Brokers(*shown)), {NAME: GROW})[NAME]


def test_one_broker_that_shows_it_done_is_enough_to_know() -> None:
    assert seen(BEFORE, None, AFTER).is_done


def test_everywhere_means_every_broker() -> None:
    assert seen_everywhere(AFTER, AFTER).is_done


@pytest.mark.parametrize("late", [BEFORE, None, topic("1 2"), topic("3")])
def test_one_broker_that_lags_is_waited_for(late: TopicState | None) -> None:
    found = seen_everywhere(AFTER, late, AFTER)
    assert found.steps
    assert not found.moved


def test_something_foreign_counts_once_every_broker_shows_it() -> None:
    assert not seen_everywhere(AFTER, FOREIGN).moved
    assert seen_everywhere(FOREIGN, FOREIGN).moved


def test_something_foreign_on_any_broker_is_seen_before_anything_is_done() -> None:
    assert seen(BEFORE, FOREIGN).moved


def test_silence_is_not_absence() -> None:
    for question in (seen, seen_everywhere):
        with pytest.raises(ClusterError, match="no broker answers"):
            question()


def test_nothing_is_asked_about_nothing() -> None:
    assert compare_views(cast("ClusterReader", Brokers()), NOBODY_WAITS, {}) == {}


def test_a_broker_that_shows_another_topic_state_leaves_the_whole_to_do() -> None:
    assert seen_everywhere(AFTER, FOREIGN).steps == steps_of(GROW)


@pytest.mark.parametrize("first", [topic("1 2", config={"flush.ms": "1"}), topic("3"), None])
def test_a_new_topic_that_a_broker_lacks_is_left_to_do(first: TopicState | None) -> None:
    new = replace(GROW, before=None)
    for shown in ((first, None), (None, first)):
        found = compare_slowest_views(cast("ClusterReader", Brokers(*shown)), {NAME: new})[NAME]
        assert found.steps == steps_of(new)
        assert not found.moved


def test_a_new_topic_is_done_once_every_broker_shows_it() -> None:
    new = replace(GROW, before=None)
    for last, is_done in ((AFTER, True), (topic("1"), False)):
        reader = cast("ClusterReader", Brokers(AFTER, last))
        assert compare_slowest_views(reader, {NAME: new})[NAME].is_done == is_done


# Deletions.


DELETE = PlannedTopic(
    NAME, HERE, TopicImage("id", rows("1"), {}), None, deletion=Deletion(604_800_000, (0,))
)


def undeleted(topic_id: str, *shown: TopicState | None) -> tuple[bool, bool]:
    """Tell whether it is gone by the word of some broker, and by that of all."""
    reader = cast("ClusterReader", Brokers(*shown, topic_id=topic_id))
    topics = {NAME: DELETE}
    done = compare_views(reader, NOBODY_WAITS, topics)[NAME].is_done
    return done, compare_slowest_views(reader, topics)[NAME].is_done


@pytest.mark.parametrize("shown", [(BEFORE, BEFORE), (BEFORE, None), (None, BEFORE)])
def test_a_topic_is_there_while_any_broker_shows_it(shown: tuple[TopicState | None, ...]) -> None:
    assert undeleted("id", *shown) == (False, False)


def test_a_topic_is_gone_once_no_broker_shows_it() -> None:
    assert undeleted("id", None, None) == (True, True)


@pytest.mark.parametrize("shown", [(BEFORE, None), (FOREIGN, FOREIGN)])
def test_another_topic_of_its_name_is_not_it(shown: tuple[TopicState | None, ...]) -> None:
    assert undeleted("another", *shown) == (True, True)


NEW = PlannedTopic(
    NAME, HERE, None, TopicImage(None, rows("1 2"), {"flush.ms": "1", "retention.ms": "5"})
)
CREATED = topic("1 2", config={"flush.ms": "1", "retention.ms": "5"})


@pytest.mark.parametrize("early", [topic("1 2"), topic("1 2", config={"retention.ms": "5"})])
def test_a_new_topic_that_lacks_configs_yet_is_looked_at_again(early: TopicState) -> None:
    brokers = Brokers(early)
    clock = Waiting(brokers, early, CREATED)
    assert compare_views(cast("ClusterReader", brokers), cast("Clock", clock), {NAME: NEW})[
        NAME
    ].is_done
    assert clock.slept == 2


@pytest.mark.parametrize(
    ("other", "again"),
    [
        (topic("1 2"), True),
        (topic("1 2", config={"flush.ms": "2"}), False),
        (topic("1 2 3", config={"flush.ms": "1"}), False),
        (topic("2 1"), True),  # the brokers may have placed it otherwise, and its configs come
    ],
)
def test_a_topic_that_somebody_else_created_stays_foreign(other: TopicState, again: bool) -> None:
    brokers = Brokers(other)
    clock = Waiting(brokers)
    assert compare_views(cast("ClusterReader", brokers), cast("Clock", clock), {NAME: NEW})[
        NAME
    ].moved
    assert bool(clock.slept) is again
