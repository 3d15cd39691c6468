"""Retention in steps: what one plan does of the way, what it says, and what has no half."""

from __future__ import annotations

from typing import Any

import pytest
from shorthand import cluster, diff, plan, said, spec, topic

from reconciler.changes.gradual import list_limits
from reconciler.changes.topics import TopicDiff
from reconciler.show.text import render_text
from reconciler.units import DAY, HOUR

WEEK, TIB, GIB = 7 * DAY, 1 << 40, 1 << 30


@pytest.mark.parametrize(
    ("found", "target", "factor", "limits"),
    [
        (WEEK, DAY, 2, [4 * DAY, 2 * DAY, DAY]),
        (WEEK, 4 * DAY, 2, [4 * DAY]),
        (WEEK, DAY, 7, [DAY]),
        (WEEK, DAY, 3, [3 * DAY, DAY]),
        (DAY, 5 * HOUR, 2, [12 * HOUR, 6 * HOUR, 5 * HOUR]),
        (1001, 100, 2, [501, 251, 126, 100]),
        (3, 0, 2, [2, 0]),
        (DAY, DAY, 2, []),
    ],
)
def test_steps_are_round_and_as_few_as_the_factor_lets_them_be(
    found: int, target: int, factor: int, limits: list[int]
) -> None:
    assert list(list_limits(found, target, factor, "retention.ms")) == limits


def test_sizes_are_round_in_powers_of_1024() -> None:
    limits = list_limits(TIB, 100 * GIB, 2, "retention.bytes")
    assert limits == (512 * GIB, 256 * GIB, 128 * GIB, 100 * GIB)


def lower(
    live: dict[str, str],
    wished: dict[str, str],
    defaults: dict[str, str] | None = None,
    **more: Any,
) -> TopicDiff:
    """Compare a gradual spec with a topic of these overrides."""
    asked = {"gradual": 2, **more}
    return diff(spec(config=wished, **asked), cluster(topic(config=live), defaults=defaults))


def test_a_plan_takes_one_step_and_names_the_others() -> None:
    found = lower({"retention.ms": str(WEEK)}, {"retention.ms": str(DAY)})
    assert found.config == {"retention.ms": str(4 * DAY)}
    assert said(found.notes) == [
        "topics/shop.yaml:3:1: retention.ms goes from 7d to 1d in 3 steps: 4d now, then 2d, "
        "then 1d; apply, then plan again for the next step [gradual-step]"
    ]


def test_many_steps_are_named_in_short() -> None:
    found = lower({"retention.ms": str(365 * DAY)}, {"retention.ms": str(WEEK)})
    assert "in 6 steps: 183d now, then 92d, then 46d, then …, then 7d;" in said(found.notes)[0]


def test_the_last_step_is_an_ordinary_change() -> None:
    found = lower({"retention.ms": str(2 * DAY)}, {"retention.ms": str(DAY)})
    assert (found.config, found.notes) == ({"retention.ms": str(DAY)}, ())


def test_without_gradual_it_goes_at_once() -> None:
    found = lower({"retention.ms": str(WEEK)}, {"retention.ms": str(DAY)}, gradual=0)
    assert found.config == {"retention.ms": str(DAY)}


def test_a_default_is_gone_down_from_like_an_override() -> None:
    defaults = {"retention.ms": str(WEEK)}
    found = lower({}, {"retention.ms": str(DAY)}, defaults)
    assert found.config == {"retention.ms": str(4 * DAY)}


def test_an_override_that_leaves_the_file_goes_down_to_the_default_and_then_away() -> None:
    defaults = {"retention.ms": str(WEEK)}
    steps = [{"retention.ms": str(30 * DAY)}]
    while steps[-1]:
        steps.append(dict(lower(steps[-1], {}, defaults).config))
    assert [step.get("retention.ms") for step in steps[1:]] == [str(15 * DAY), str(8 * DAY), None]


def test_everything_else_is_done_in_the_first_step() -> None:
    live = {"retention.ms": str(WEEK), "segment.ms": "9000"}
    found = lower(live, {"retention.ms": str(DAY), "flush.ms": "5"}, partitions=5)
    assert found.config == {"retention.ms": str(4 * DAY), "flush.ms": "5"}
    assert found.new_partitions == 2


def test_more_retention_comes_at_once() -> None:
    found = lower({"retention.ms": str(DAY)}, {"retention.ms": "-1"})
    assert (found.config, found.notes, found.refusals) == ({"retention.ms": "-1"}, (), ())


def test_retention_of_what_is_only_compacted_has_no_steps() -> None:
    live = {"cleanup.policy": "compact", "retention.ms": str(WEEK)}
    found = lower(live, {"cleanup.policy": "compact", "retention.ms": "1000"})
    assert found.config["retention.ms"] == "1000"


def test_unlimited_has_no_half() -> None:
    found = lower({"retention.ms": "-1"}, {"retention.ms": str(DAY)})
    assert said(found.refusals) == [
        "topics/shop.yaml:3:1: retention.ms -1 (no limit) → 1d cannot go down in steps: there is "
        "nothing to divide; first write an explicit retention.ms with gradual: false, and apply "
        "it: later steps start there; or keep gradual: false, to change it in one step "
        "[gradual-needs-limit]"
    ]


def test_a_default_that_nobody_knows_has_no_half() -> None:
    (refusal,) = lower({}, {"retention.bytes": str(GIB)}).refusals
    assert refusal.what.startswith("retention.bytes (the brokers' own, not known here) → 1GiB")


def test_a_local_part_that_equals_the_whole_goes_along() -> None:
    """A tier that copies nothing more refuses any other local retention."""
    both = {"retention.ms": str(DAY), "local.retention.ms": str(DAY)}
    found = lower({"retention.ms": str(WEEK)}, both)
    assert set(found.config.values()) == {str(4 * DAY)}


def test_a_lower_local_part_is_there_at_once() -> None:
    wished = {"retention.ms": str(DAY), "local.retention.ms": str(HOUR)}
    live = {"retention.ms": str(WEEK), "local.retention.ms": str(DAY)}
    assert lower(live, wished).config["local.retention.ms"] == str(HOUR)


def test_the_step_is_what_is_lost_and_has_to_be_accepted() -> None:
    state = cluster(topic(config={"retention.ms": str(WEEK)}))
    wished = spec(config={"retention.ms": str(DAY)}, gradual=2)
    (planned,) = plan([wished], state).topics
    assert [refusal.rule for refusal in planned.refusals] == ["risk-not-acknowledged"]
    assert planned.refusals[0].what == "records older than 4d (345600000) are deleted (data-loss)"


def test_the_text_of_a_plan_names_the_steps() -> None:
    state = cluster(topic(config={"retention.ms": str(WEEK)}))
    accepted = frozenset({"data-loss"})
    wished = spec(config={"retention.ms": str(DAY)}, gradual=2, acknowledge=accepted)
    text = render_text(plan([wished], state))
    assert "7d (604800000) → 4d (345600000)" in text
    assert "in 3 steps: 4d now, then 2d, then 1d" in text
