"""Which steps of gradual changes a plan has, which number each is, and what is left after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shorthand import cluster, plan, spec, topic

from reconciler.show.gradual import GradualStep, list_gradual_steps
from reconciler.units import DAY

WEEK = 7 * DAY
ONE_DAY = {"retention.ms": str(DAY)}


def find(
    live: Mapping[str, str],
    wished: Mapping[str, str] = ONE_DAY,
    defaults: dict[str, str] | None = None,
    **more: Any,
) -> list[GradualStep]:
    """Return the steps of a plan for one topic, whose spec accepts that records are deleted."""
    asked = {"gradual": 2, "acknowledge": frozenset({"data-loss"}), **more}
    specs = [spec("a", config=wished, **asked)]
    return list(
        list_gradual_steps(
            plan(specs, cluster(topic(name="a", config=live), defaults=defaults)), specs
        )
    )


def test_every_step_down_to_the_target_is_one_with_what_is_left() -> None:
    live, left = str(WEEK), []
    while steps := find({"retention.ms": live}):
        (step,) = steps
        assert (step.topic, step.key, step.before) == ("a", "retention.ms", live)
        left.append((step.count_from(str(WEEK)), [int(limit or 0) // DAY for limit in step.left]))
        live = step.after or ""
    assert left == [((1, 3), [2, 1]), ((2, 3), [1]), ((3, 3), [])]
    assert live == str(DAY)


def test_a_limit_between_two_steps_has_no_number() -> None:
    (step,) = find({"retention.ms": str(5 * DAY)})
    assert step.after == str(3 * DAY)
    assert step.count_from(str(WEEK)) is None
    assert step.count_from("-1") is None


def test_a_refused_step_is_one_too() -> None:
    (step,) = find({"retention.ms": str(WEEK)}, acknowledge=frozenset())
    assert (step.before, step.after, step.left) == (
        str(WEEK),
        str(4 * DAY),
        (str(2 * DAY), str(DAY)),
    )


def test_the_limit_of_the_brokers_can_be_the_first_or_the_last_one() -> None:
    defaults = {"retention.ms": str(WEEK)}
    (first,) = find({}, defaults=defaults)
    assert (first.before, first.after) == (None, str(4 * DAY))
    (middle,) = find({"retention.ms": str(30 * DAY)}, {}, defaults)
    assert (middle.after, middle.left, middle.count_from(str(30 * DAY))) == (
        str(15 * DAY),
        (None,),
        None,
    )
    (last,) = find({"retention.ms": str(8 * DAY)}, {}, defaults)
    assert (last.after, last.left) == (None, ())


def test_other_changes_are_no_steps() -> None:
    assert find({"retention.ms": str(WEEK)}, gradual=0) == []  # not gradual
    assert find({"retention.ms": str(DAY)}, {"retention.ms": str(WEEK)}) == []  # longer
    assert find(ONE_DAY, {**ONE_DAY, "flush.ms": "5"}) == []  # another config
    assert (
        list(list_gradual_steps(plan([spec("b", gradual=2)], cluster()), [spec("b", gradual=2)]))
        == []
    )
