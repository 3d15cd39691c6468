"""The last check of deletions: what keeps a topic, and what is gone already."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from shorthand import HERE, NOW_MS, rows, said, topic

from reconciler.apply.checks import DeletionCheck, list_objections, recheck_deletions
from reconciler.model.cluster import TopicState, TopicUsage
from reconciler.model.plan import Deletion, PlannedTopic, TopicImage
from reconciler.run.ports import Clock, ClusterReader

DAY = 86_400_000
NAME = "shop.orders"
IMAGE = TopicImage(f"id-{NAME}", rows("1 2 3"), {})
DELETE = PlannedTopic(NAME, HERE, IMAGE, None, deletion=Deletion(7 * DAY, (4, 0, 2)))
UNUSED = TopicUsage(NOW_MS, ends=(4, 0, 2), records=6, newest_ms=NOW_MS - 8 * DAY)


def objections(usage: TopicUsage) -> list[str]:
    head = f"{HERE}: {NAME}: "
    return [text.removeprefix(head) for text in said(list_objections(DELETE, usage))]


def test_a_topic_that_is_as_it_was_may_go() -> None:
    assert objections(UNUSED) == []


def test_records_that_expired_meanwhile_change_nothing() -> None:
    assert objections(replace(UNUSED, records=0, emptied=True, newest_ms=None)) == []


@pytest.mark.parametrize(
    ("ends", "what"),
    [
        ((5, 0, 2), "it was written to (partition 0)"),
        ((5, 0, 3), "it was written to (partitions 0, 2)"),
        ((4, 0, 2, 0), "it now has 4 partitions, not 3,"),
    ],
)
def test_a_write_shows_whatever_time_it_tells(ends: tuple[int, ...], what: str) -> None:
    assert objections(replace(UNUSED, ends=ends)) == [
        f"{what} since the plan was made; plan again [plan-stale]"
    ]


def test_all_that_keeps_it_is_said_and_a_write_is_said_once() -> None:
    used = replace(UNUSED, ends=(5, 0, 2), newest_ms=NOW_MS, groups=("billing",))
    assert objections(used) == [
        "it was written to (partition 0) since the plan was made; plan again [plan-stale]",
        "active consumer group billing uses it; stop its consumers, or have them read something "
        "else, and plan again [plan-stale]",
    ]


def test_what_cannot_be_seen_any_more_keeps_it() -> None:
    assert objections(TopicUsage(NOW_MS, unseen="no rights", way_out="grant them")) == [
        "no rights; grant them [plan-stale]"
    ]


def test_a_plan_that_was_made_too_long_ago_is_no_excuse() -> None:
    """A clock that was set right since the plan shows the record to be young."""
    (objection,) = objections(replace(UNUSED, newest_ms=NOW_MS - DAY))
    assert "1d ago, and unused_for is 7d" in objection


@dataclass
class Brokers:
    """The parts of a reader and a clock that are asked here; views change with each pause."""

    shown: list[bool]
    known: list[bool]
    pauses: list[float] = field(default_factory=list)

    def read_usage(self, names: Collection[str]) -> Mapping[str, TopicUsage]:
        return dict.fromkeys(names, UNUSED) if self.known[len(self.pauses)] else {}

    def read_views(
        self, names: Collection[str], with_config: Collection[str] = ()
    ) -> Mapping[int, Mapping[str, TopicState]]:
        asked = {*names, *with_config}
        return {1: dict.fromkeys(asked, topic()) if self.shown[len(self.pauses)] else {}}

    def read_topic_ids(self, names: Collection[str]) -> Mapping[str, str]:
        return dict.fromkeys(names, f"id-{NAME}")

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def second_look(brokers: Brokers) -> DeletionCheck:
    reader, clock = cast("ClusterReader", brokers), cast("Clock", brokers)
    return recheck_deletions(reader, clock, {NAME: DELETE}, (1.0, 2.0))


def test_a_topic_that_is_unused_still_is_neither_used_nor_gone() -> None:
    found = second_look(Brokers(shown=[True], known=[True]))
    assert (found.in_use, found.gone) == ({}, set())


def test_a_topic_that_no_broker_knows_is_gone() -> None:
    brokers = Brokers(shown=[False], known=[False])
    assert second_look(brokers).gone == {NAME}
    assert brokers.pauses == []


def test_a_topic_on_its_way_out_is_waited_for() -> None:
    brokers = Brokers(shown=[True, False], known=[False, False])
    assert second_look(brokers).gone == {NAME}
    assert brokers.pauses == [1.0]


def test_a_topic_that_is_half_there_for_long_is_left_alone() -> None:
    found = second_look(Brokers(shown=[True] * 3, known=[False] * 3))
    ((finding,),) = found.in_use.values()
    assert finding.what == f"{NAME}: some brokers show it, others do not know it"
    assert found.gone == set()


def test_a_broker_that_lags_may_know_it_the_next_time() -> None:
    brokers = Brokers(shown=[True, True], known=[False, True])
    found = second_look(brokers)
    assert (found.in_use, found.gone, brokers.pauses) == ({}, set(), [1.0])
