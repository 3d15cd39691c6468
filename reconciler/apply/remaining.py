"""What is left to do of a planned topic, seen from its live state: nothing, some, or it moved.

One function answers four questions: is the plan stale, was it applied before, how far did a lost
or failed request get, and does a broker show the result yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.diff import managed_overrides
from reconciler.errors import Finding
from reconciler.model import AddPartitions, AlterConfig, CreateTopic
from reconciler.plan import alter_config, is_deletion, steps_of
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconciler.model import PlannedTopic, Step, TopicImage, TopicState


@dataclass(frozen=True, slots=True)
class Remaining:
    """Steps that lead from the live state to the planned one; `moved` says why none can."""

    steps: tuple[Step, ...] = ()
    moved: tuple[Finding, ...] = ()

    @property
    def is_done(self) -> bool:
        """Nothing is left and nothing moved."""
        return not self.steps and not self.moved


def find_remaining(
    topic: PlannedTopic, live: TopicState | None, *, with_config: bool = True
) -> Remaining:
    """Compare a planned topic with its live state.

    `with_config` false leaves configs out, for a view that did not ask for them.
    """
    if is_deletion(topic):
        return _undeleted(topic, live)
    if not steps_of(topic) or topic.after is None:
        return Remaining()
    if live is None:
        return _missing(topic, topic.after)
    before = topic.before
    steps: list[Step] = []
    moved: list[Finding] = []
    if len(topic.after.assignment) > (len(before.assignment) if before else 0):
        moved += _moved_rows(topic, topic.after, live)
        steps += _missing_rows(topic, topic.after, live)
    if with_config:
        moved += _moved_keys(topic, topic.after, live)
        steps += _missing_keys(topic, topic.after, live)
    return Remaining((), tuple(moved)) if moved else Remaining(tuple(steps))


def find_in_views(
    topic: PlannedTopic, views: Iterable[TopicState | None], *, with_config: bool = True
) -> Remaining:
    """Compare with what several brokers show: the most advanced view counts.

    A topic or partition that one broker lacks may only not have reached it yet. Where brokers of
    equal partition count differ, one that shows a foreign change outweighs the others. A topic
    that is to go is there as long as any broker shows it: one that lags may not know it yet.
    """
    shown = [view for view in views if view is not None]
    newest = max((len(view.assignment) for view in shown), default=0)
    candidates: list[TopicState | None] = [v for v in shown if len(v.assignment) == newest]
    found = [find_remaining(topic, view, with_config=with_config) for view in candidates or [None]]
    return min(found, key=lambda remaining: (not remaining.moved, len(remaining.steps)))


def _undeleted(topic: PlannedTopic, live: TopicState | None) -> Remaining:
    """Return the deletion where the topic is still there, and as large as it was.

    Whether it is still the same topic, and unused, is asked apart: no view tells that.
    """
    then = len(topic.before.assignment) if topic.before else 0
    if live is None:
        return Remaining()
    if len(live.assignment) != then:
        found = count(len(live.assignment), "partition")
        return _moved(topic, f"it has {found}, not {then} as planned on")
    return Remaining(steps_of(topic))


def _missing(topic: PlannedTopic, after: TopicImage) -> Remaining:
    if topic.before is None:
        return Remaining((CreateTopic(topic.name, after.assignment, after.config),))
    return _moved(topic, "it was deleted since the plan was made")


def _moved(topic: PlannedTopic, what: str) -> Remaining:
    return Remaining(moved=(_finding(topic, what),))


def _finding(topic: PlannedTopic, what: str) -> Finding:
    return Finding("plan-stale", f"{topic.name}: {what}", "plan again", topic.location)


def _moved_rows(topic: PlannedTopic, after: TopicImage, live: TopicState) -> Iterator[Finding]:
    rested_on = len(topic.before.assignment) if topic.before else 0
    planned, found = len(after.assignment), len(live.assignment)
    if topic.before is None and live.assignment != after.assignment[:found]:
        yield _finding(topic, f"it was created otherwise, with {count(found, 'partition')}")
    elif not rested_on <= found <= planned:
        yield _finding(topic, f"it has {count(found, 'partition')}, not {rested_on} as planned on")
    else:
        for number, (wanted, row) in enumerate(
            zip(after.assignment, live.assignment, strict=False)
        ):
            if wanted != row:
                what = f"partition {number} is on brokers {list(row)}, not {list(wanted)}"
                yield _finding(topic, what)


def _missing_rows(topic: PlannedTopic, after: TopicImage, live: TopicState) -> Iterator[Step]:
    first = len(live.assignment)
    if first < len(after.assignment):
        yield AddPartitions(topic.name, first, after.assignment[first:])


def _moved_keys(topic: PlannedTopic, after: TopicImage, live: TopicState) -> Iterator[Finding]:
    before = topic.before.config if topic.before else after.config
    now = managed_overrides(live)
    for key in sorted(_touched(topic, after)):
        if now.get(key) not in (before.get(key), after.config.get(key)):
            found, then = now.get(key, "not set"), before.get(key, "not set")
            past = f"and was {then} when the plan was made" if topic.before else f"not {then}"
            yield _finding(topic, f"{key} is {found}, {past}")


def _missing_keys(topic: PlannedTopic, after: TopicImage, live: TopicState) -> Iterator[Step]:
    touched = _touched(topic, after)
    now = {key: value for key, value in managed_overrides(live).items() if key in touched}
    wanted = {key: value for key, value in after.config.items() if key in touched}
    change = alter_config(topic.name, now, wanted)
    if change.set or change.unset:
        yield change


def _touched(topic: PlannedTopic, after: TopicImage) -> frozenset[str]:
    """Return the keys that the plan sets or unsets; other overrides are none of its business."""
    if topic.before is None:
        return frozenset(after.config)
    change: AlterConfig = alter_config(topic.name, topic.before.config, after.config)
    return frozenset(change.set) | change.unset
