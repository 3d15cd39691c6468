"""What is left of a planned topic, held against what a cluster may show of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shorthand import HERE, rows, said, topic

from reconciler.apply import kinds
from reconciler.apply.convergence import Remaining, compare_state, merge_views
from reconciler.errors import Finding
from reconciler.model.cluster import TopicState, leave_to_brokers
from reconciler.model.plan import Deletion, PlannedTopic, TopicImage
from reconciler.model.steps import (
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ElectLeaders,
    ExpandTopic,
)

NAME = "shop.orders"


def planned(before: TopicImage | None, after: TopicImage | None, **more: Any) -> PlannedTopic:
    return PlannedTopic(NAME, HERE, before, after, **more)


def image(
    assignment: str, config: dict[str, str] | None = None, topic_id: str | None = f"id-{NAME}"
) -> TopicImage:
    return TopicImage(topic_id, rows(assignment), config or {})


CREATE = planned(None, image("1,2 2,3", {"flush.ms": "1"}, topic_id=None))
EXPAND = planned(image("1 2"), image("1 2 3 1"))
CONFIG = planned(
    image("1", {"flush.ms": "1", "segment.ms": "2", "max.message.bytes": "3"}),
    image("1", {"flush.ms": "9", "max.message.bytes": "3", "retention.ms": "5"}),
)


def moved(topic: PlannedTopic, live: TopicState | None) -> list[str]:
    """Return what moved, without its place and the one way out."""
    found = compare_state(topic, live)
    assert found.steps == ()
    head, tail = f"{HERE}: {NAME}: ", "; plan again [plan-stale]"
    return [text.removeprefix(head).removesuffix(tail) for text in said(found.moved)]


def left(topic: PlannedTopic, live: TopicState | None) -> tuple[object, ...]:
    found = compare_state(topic, live)
    assert found.moved == ()
    return found.steps


# Creating.


def test_a_topic_that_is_not_there_is_left_to_create() -> None:
    assert left(CREATE, None) == (CreateTopic(NAME, rows("1,2 2,3"), {"flush.ms": "1"}),)


def test_a_topic_that_was_created_as_planned_is_done() -> None:
    live = topic("1,2 2,3", config={"flush.ms": "1"})
    assert compare_state(CREATE, live).is_done


def test_a_part_of_a_creation_that_fits_one_request_has_moved() -> None:
    assert moved(CREATE, topic("1,2", config={"flush.ms": "1"})) == [
        "it was created since the plan was made with 1 partition (planned: 2)"
    ]


def test_a_creation_in_parts_goes_on_as_an_expansion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "MAX_RECORDS", 1)
    live = topic("1,2", config={"flush.ms": "1"})
    assert left(CREATE, live) == (ExpandTopic(NAME, 1, rows("2,3")),)


def test_an_override_that_is_not_planned_has_moved() -> None:
    live = topic("1,2 2,3", config={"flush.ms": "1", "segment.ms": "7"})
    assert moved(CREATE, live) == [
        "it was created since the plan was made with segment.ms 7 (planned: not set)"
    ]


@pytest.mark.parametrize(
    ("live", "what"),
    [
        ("2,1 2,3", "partition 0 is on brokers [2, 1], not [1, 2]"),
        (
            "1,2 2,3 3,1",
            "it was created since the plan was made with 3 partitions (planned: 2)",
        ),
        ("3,1", "it was created since the plan was made with 1 partition (planned: 2)"),
    ],
)
def test_a_topic_that_somebody_created_otherwise_has_moved(live: str, what: str) -> None:
    assert moved(CREATE, topic(live, config={"flush.ms": "1"})) == [what]


@pytest.mark.parametrize("config", [{}, {"flush.ms": "2"}])
def test_a_topic_that_somebody_created_with_other_configs_has_moved(
    config: dict[str, str],
) -> None:
    (what,) = moved(CREATE, topic("1,2 2,3", config=config))
    found = config.get("flush.ms", "not set")
    assert what == f"it was created since the plan was made with flush.ms {found} (planned: 1)"


def test_of_many_partitions_elsewhere_three_are_named() -> None:
    five = planned(None, image("1 1 1 1 1", topic_id=None))
    *named, more = moved(five, topic("2 2 2 2 2"))
    assert named == [f"partition {n} is on brokers [2], not [1]" for n in range(3)]
    assert more == "2 more partitions on other brokers than planned"


BY_BROKERS = planned(None, TopicImage(None, leave_to_brokers(2, 2), {"flush.ms": "1"}))


@pytest.mark.parametrize("live", ["1,2 2,3", "9,8 9,8"])
def test_a_topic_that_the_brokers_place_is_done_wherever_it_is(live: str) -> None:
    assert compare_state(BY_BROKERS, topic(live, config={"flush.ms": "1"})).is_done


@pytest.mark.parametrize(
    ("live", "what"),
    [
        ("1,2,3 2,3,1", ["partition 0 has 3 replicas, not 2", "partition 1 has 3 replicas, not 2"]),
        ("1,2", ["it was created since the plan was made with 1 partition (planned: 2)"]),
    ],
)
def test_of_a_topic_that_the_brokers_place_the_counts_are_compared(
    live: str, what: list[str]
) -> None:
    assert moved(BY_BROKERS, topic(live, config={"flush.ms": "1"})) == what
    assert not compare_state(BY_BROKERS, topic(live, config={"flush.ms": "1"})).elsewhere


def test_a_creation_in_parts_that_the_brokers_place_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kinds, "MAX_RECORDS", 1)
    live = topic("7,8", config={"flush.ms": "1"})
    assert left(BY_BROKERS, live) == (ExpandTopic(NAME, 1, leave_to_brokers(1, 2)),)


def test_of_many_partitions_with_other_replicas_three_are_named() -> None:
    five = planned(None, TopicImage(None, leave_to_brokers(5, 1), {}))
    *named, more = moved(five, topic("2,1 2,1 2,1 2,1 2,1"))
    assert named == [f"partition {n} has 2 replicas, not 1" for n in range(3)]
    assert more == "2 more partitions with another number of replicas"


@pytest.mark.parametrize(
    ("assignment", "config", "elsewhere"),
    [
        ("3,1 2,3", {"flush.ms": "1"}, True),
        ("3,1 2,3", {"flush.ms": "2"}, False),
        ("3 2", {"flush.ms": "1"}, False),
        ("3,1", {"flush.ms": "1"}, False),
        ("3,1 2,3 1,2", {"flush.ms": "1"}, False),
    ],
)
def test_only_rows_differ_where_brokers_placed_it_otherwise(
    assignment: str, config: dict[str, str], elsewhere: bool
) -> None:
    found = compare_state(CREATE, topic(assignment, config=config))
    assert found.moved
    assert found.elsewhere is elsewhere


# Expanding.


def test_an_expansion_that_the_brokers_place_is_done_wherever_it_is() -> None:
    grown = planned(image("1 2"), TopicImage("id", rows("1 2") + leave_to_brokers(2, 1), {}))
    assert left(grown, topic("1 2")) == (ExpandTopic(NAME, 2, leave_to_brokers(2, 1)),)
    assert left(grown, topic("3 1")) == (ExpandTopic(NAME, 2, leave_to_brokers(2, 1)),)
    assert compare_state(grown, topic("1 2 1 1")).is_done
    assert moved(grown, topic("1 2 1 1,2")) == ["partition 3 has 2 replicas, not 1"]


def test_configs_may_come_later_than_rows_that_brokers_placed_otherwise() -> None:
    config = {"flush.ms": "1"}
    both = planned(image("1"), image("1 2", config))
    for topic_planned, live in ((both, "1 3"), (CREATE, "3,1 2,3")):
        late = compare_state(topic_planned, topic(live))
        assert (bool(late.moved), late.lags, late.elsewhere) == (True, True, False)
        there = compare_state(topic_planned, topic(live, config=config))
        assert (bool(there.moved), there.lags, there.elsewhere) == (True, False, True)
    foreign = compare_state(both, topic("1 3", config={"flush.ms": "7"}))
    assert (foreign.lags, foreign.elsewhere) == (False, False)


def test_an_election_places_nothing() -> None:
    before, after = image("1,2"), image("1,2")
    elect = planned(replace(before, leaders=(2,)), replace(after, leaders=(1,)))
    found = compare_state(elect, topic("2,1", leaders=(2,)))
    assert found.moved
    assert not found.elsewhere


def test_an_expansion_that_brokers_placed_otherwise_differs_only_in_rows() -> None:
    assert compare_state(EXPAND, topic("1 2 3 2")).elsewhere
    assert compare_state(EXPAND, topic("3 2 3 2")).elsewhere
    assert not compare_state(EXPAND, topic("1 2 3")).elsewhere


def test_an_expansion_that_has_not_begun_is_left_whole() -> None:
    assert left(EXPAND, topic("1 2")) == (ExpandTopic(NAME, 2, rows("3 1")),)


def test_a_part_of_an_expansion_that_fits_one_request_has_moved() -> None:
    assert moved(EXPAND, topic("1 2 3")) == [
        "partitions: 2 → 3 since the plan was made (planned: 4)"
    ]


def test_an_expansion_in_parts_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "MAX_RECORDS", 1)
    assert left(EXPAND, topic("1 2 3")) == (ExpandTopic(NAME, 3, rows("1")),)


def test_an_expansion_that_is_there_is_done() -> None:
    assert compare_state(EXPAND, topic("1 2 3 1")).is_done


@pytest.mark.parametrize(("live", "found"), [("1", 1), ("1 2 3 1 2", 5)])
def test_another_number_of_partitions_has_moved(live: str, found: int) -> None:
    what = f"partitions: 2 → {found} since the plan was made (planned: 4)"
    assert moved(EXPAND, topic(live)) == [what]


def test_new_partitions_of_another_size_have_that_number_named() -> None:
    sized = ["partition 2 has 2 replicas, not 1", "partition 3 has 3 replicas, not 1"]
    assert moved(EXPAND, topic("1 2 3,1 1,2,3")) == sized


def test_new_partitions_elsewhere_have_moved() -> None:
    what = "partition 2 is on brokers [2], not [3]"
    assert moved(EXPAND, topic("1 2 2 1")) == [what]


@pytest.mark.parametrize("rows_now", ["1 3", "3 1", "4 4"])
def test_an_expansion_leaves_replicas_where_they_are_by_now(rows_now: str) -> None:
    assert left(EXPAND, topic(rows_now)) == (ExpandTopic(NAME, 2, rows("3 1")),)
    assert compare_state(EXPAND, topic(f"{rows_now} 3 1")).is_done


@pytest.mark.parametrize(
    ("rows_now", "number", "found"),
    [("1,2 2,1", 0, "2 replicas"), ("1 3,2", 1, "2 replicas"), ("1 4,2,3", 1, "3 replicas")],
)
def test_an_expansion_waits_for_moves_that_change_the_number_of_replicas(
    rows_now: str, number: int, found: str
) -> None:
    """Kafka takes new partitions with as many replicas as one of the existing has, in flight."""
    found_now = compare_state(EXPAND, topic(rows_now))
    assert found_now.steps == ()
    assert said(found_now.moved) == [
        f"{HERE}: {NAME}: partition {number} has {found} by now, and new partitions are planned "
        "with 1; apply again once its replicas have moved, or plan again [plan-stale]"
    ]


def test_an_expansion_that_is_there_stays_done_while_replicas_move() -> None:
    assert compare_state(EXPAND, topic("1 4,2 3 1")).is_done
    both = planned(image("1"), image("1 2", {"flush.ms": "1"}))
    assert left(both, topic("3,1 2")) == (ConfigureTopic(NAME, {"flush.ms": "1"}, frozenset()),)


def test_an_expansion_does_not_care_for_configs() -> None:
    assert left(EXPAND, topic("1 2", config={"flush.ms": "7"})) != ()


# Configs.


def test_configs_that_are_as_planned_on_are_left_whole() -> None:
    live = topic("1", config={"flush.ms": "1", "segment.ms": "2", "max.message.bytes": "3"})
    assert left(CONFIG, live) == (
        ConfigureTopic(NAME, {"flush.ms": "9", "retention.ms": "5"}, frozenset({"segment.ms"})),
    )


def test_configs_that_are_there_are_done() -> None:
    live = topic("1", config={"flush.ms": "9", "retention.ms": "5", "max.message.bytes": "3"})
    assert compare_state(CONFIG, live).is_done


def test_a_part_of_the_configs_has_moved() -> None:
    """One request sets and unsets them all: apply leaves none of them behind."""
    live = topic("1", config={"flush.ms": "9", "segment.ms": "2", "max.message.bytes": "3"})
    assert moved(CONFIG, live) == ["flush.ms: 1 → 9 since the plan was made (planned: 9)"]


def test_configs_come_after_partitions() -> None:
    both = planned(image("1"), image("1 2", {"flush.ms": "1"}))
    assert left(both, topic("1 2")) == (ConfigureTopic(NAME, {"flush.ms": "1"}, frozenset()),)
    assert moved(both, topic("1", config={"flush.ms": "1"})) == [
        "flush.ms: not set → 1 since the plan was made (planned: 1)"
    ]


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("flush.ms", "7", "flush.ms: 1 → 7 since the plan was made (planned: 9)"),
        ("flush.ms", None, "flush.ms: 1 → not set since the plan was made (planned: 9)"),
        ("segment.ms", "7", "segment.ms: 2 → 7 since the plan was made (planned: not set)"),
        ("retention.ms", "7", "retention.ms: not set → 7 since the plan was made (planned: 5)"),
    ],
)
def test_a_config_of_another_value_has_moved(key: str, value: str | None, what: str) -> None:
    config = {"flush.ms": "1", "segment.ms": "2", "max.message.bytes": "3", key: value}
    assert moved(CONFIG, topic("1", config=config)) == [what]


@pytest.mark.parametrize("value", ["3", "4", None])
def test_a_config_that_the_plan_does_not_touch_may_move(value: str | None) -> None:
    live = topic("1", config={"flush.ms": "1", "segment.ms": "2", "max.message.bytes": value})
    assert left(CONFIG, live) != ()


def test_partitions_that_the_plan_does_not_touch_may_move() -> None:
    config = {"flush.ms": "1", "segment.ms": "2", "max.message.bytes": "3"}
    assert left(CONFIG, topic("3 2 1", config=config)) != ()


def test_configs_are_left_out_of_a_view_that_was_not_asked_for_them() -> None:
    assert compare_state(CONFIG, topic("1"), with_config=False).is_done


# The topic itself.


def test_a_topic_that_was_deleted_has_moved() -> None:
    assert moved(EXPAND, None) == ["it was deleted since the plan was made"]


def test_a_topic_without_steps_is_done_whatever_there_is() -> None:
    refused = planned(image("1"), image("1"), refusals=(Finding("deletion-budget", "no"),))
    for live in (None, topic("3 2 1", topic_id="other")):
        assert compare_state(refused, live) == Remaining()


def test_everything_that_moved_is_told_at_once() -> None:
    both = planned(image("1", {"flush.ms": "1"}), image("1 2 3", {"flush.ms": "2"}))
    assert len(moved(both, topic("1 3 1", config={"flush.ms": "9"}))) == 3


# Several brokers' views.


def test_a_broker_that_lags_does_not_hide_what_another_shows() -> None:
    assert merge_views(EXPAND, [topic("1 2"), topic("1 2 3 1"), None]).is_done


def test_a_topic_is_missing_only_where_no_broker_shows_it() -> None:
    assert merge_views(CREATE, [None, None]).steps == left(CREATE, None)


def test_no_views_at_all_show_nothing() -> None:
    assert merge_views(CREATE, []).steps == left(CREATE, None)


def test_of_equal_views_the_one_with_least_left_counts() -> None:
    old = topic("1", config={"flush.ms": "1", "segment.ms": "2", "max.message.bytes": "3"})
    new = topic("1", config={"flush.ms": "9", "retention.ms": "5", "max.message.bytes": "3"})
    for views in ([old, new], [new, old]):
        assert merge_views(CONFIG, views).is_done


def test_a_foreign_change_that_one_broker_shows_counts() -> None:
    good, foreign = topic("1 2 3 1"), topic("1 2 1 3")
    for views in ([good, foreign], [foreign, good]):
        assert merge_views(EXPAND, views).moved != ()


@pytest.mark.parametrize(("showing", "done"), [(1, True), (2, False)])
def test_a_foreign_override_counts_once_two_brokers_show_it(showing: int, done: bool) -> None:
    """A broker that was restarted may return overrides of a deleted topic of the same name."""
    ours = topic("1,2 2,3", config={"flush.ms": "1"})
    old = topic("1,2 2,3", config={"flush.ms": "1", "retention.ms": "-1"})
    assert merge_views(CREATE, [old] * showing + [ours]).is_done is done


def test_of_one_broker_every_override_counts() -> None:
    old = topic("1,2 2,3", config={"flush.ms": "1", "retention.ms": "-1"})
    assert merge_views(CREATE, [old]).moved != ()


def test_a_foreign_config_takes_two_brokers_that_show_it() -> None:
    """One that was restarted may show configs of a deleted topic of the same name."""
    assert CONFIG.before is not None
    good = topic("1", config=dict(CONFIG.before.config))
    foreign = topic("1", config={"flush.ms": "77"})
    for views in ([good, foreign], [foreign, good], [good, foreign, good]):
        assert merge_views(CONFIG, views).steps == left(CONFIG, good)
    for views in ([good, foreign, foreign], [foreign], [foreign, None]):
        assert merge_views(CONFIG, views).moved != ()


# Deletions.


DELETE = planned(image("1 2"), None, deletion=Deletion(604_800_000, (0, 0)))


def test_a_topic_that_is_there_is_left_to_be_deleted() -> None:
    assert compare_state(DELETE, topic("1 2")).steps == (DeleteTopic(NAME, f"id-{NAME}"),)


def test_a_topic_that_is_gone_is_deleted() -> None:
    assert compare_state(DELETE, None).is_done


def test_a_topic_that_is_to_go_and_grew_has_moved() -> None:
    assert moved(DELETE, topic("1 2 3")) == ["partitions: 2 → 3 since the plan was made"]


def test_a_topic_is_gone_only_where_no_broker_shows_it() -> None:
    for views in ([None, topic("1 2")], [topic("1 2"), None, None]):
        assert merge_views(DELETE, views).steps == (DeleteTopic(NAME, f"id-{NAME}"),)
    assert merge_views(DELETE, [None, None]).is_done


class TestElections:
    LED = TopicImage(f"id-{NAME}", rows("1,2 2,1"), {}, (2, 1))
    ELECT = planned(LED, replace(LED, leaders=(1, 2)))

    def test_leaders_of_before_are_left_to_elect(self) -> None:
        left = compare_state(self.ELECT, topic("1,2 2,1", NAME, leaders=(2, 1)))
        assert left == Remaining((ElectLeaders(NAME, {0: 1, 1: 2}),))

    def test_leaders_of_another_failover_are_elected_all_the_same(self) -> None:
        left = compare_state(self.ELECT, topic("1,2 2,1", NAME, leaders=(-1, 2)))
        assert left.steps

    def test_preferred_leaders_that_lead_are_done(self) -> None:
        assert compare_state(self.ELECT, topic("1,2 2,1", NAME, leaders=(1, 2))).is_done

    def test_rows_with_other_preferred_leaders_are_another_plan(self) -> None:
        found = moved(self.ELECT, topic("2,1 2,1", NAME, leaders=(2, 1)))
        assert found == ["partition 0 is on brokers [2, 1], not [1, 2]"]
