"""What is left to do of a planned topic, seen from its live state: nothing, some, or it moved.

One function answers four questions: is the plan stale, was it applied before, how far did a lost
or failed request get, and does a broker show the result yet. Only a state that apply itself passes
through is continued: in any other one somebody else changed what the plan rests on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.apply.batches import split_step
from reconciler.diff import managed_overrides
from reconciler.errors import Finding
from reconciler.model import EMPTY, AddPartitions, AlterConfig, CreateTopic
from reconciler.plan import is_deletion, steps_of
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reconciler.model import Assignment, PlannedTopic, Step, TopicImage, TopicState

MOST_ROWS = 3
"""Partitions on other brokers that are named; of more, the number is said."""

SINCE = "since the plan was made"


@dataclass(frozen=True, slots=True)
class Remaining:
    """Steps that lead from the live state to the planned one; `moved` says why none can.

    `lags`: it may only be too early. A broker shows a new topic a moment before its configs.
    """

    steps: tuple[Step, ...] = ()
    moved: tuple[Finding, ...] = ()
    lags: bool = False

    @property
    def is_done(self) -> bool:
        """Nothing is left and nothing moved."""
        return not self.steps and not self.moved


@dataclass(frozen=True, slots=True)
class _Stage:
    """A state that apply passes through, and the steps that are left from there."""

    rows: Assignment
    config: Mapping[str, str]
    left: tuple[Step, ...]


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
        return _missing(topic)
    now = _pick_keys(topic, managed_overrides(live))
    stages = list(_list_stages(topic))
    # From the end, since a view without configs does not tell the last stages apart.
    for stage in reversed(stages):
        same_rows = stage.rows == live.assignment or not _has_more_rows(topic)
        if same_rows and (stage.config == now or not with_config):
            return Remaining(stage.left)
    counts = {len(stage.rows) for stage in stages}
    moved = list(_name_moved_rows(topic, topic.after, live, counts))
    lags = topic.before is None and not moved and now.items() < topic.after.config.items()
    moved += _name_moved_keys(topic, now) if with_config else ()
    return Remaining(moved=tuple(moved), lags=lags)


def find_in_views(
    topic: PlannedTopic, views: Iterable[TopicState | None], *, with_config: bool = True
) -> Remaining:
    """Compare with what several brokers show: the most advanced view counts.

    A topic or partition that one broker lacks may only not have reached it yet. Where brokers of
    equal partition count differ, one that shows foreign rows outweighs the others; a foreign config
    takes two of them, since a restarted broker may show those of a deleted topic. A topic that is
    to go is there as long as any broker shows it: one that lags may not know it yet.
    """
    shown = [view for view in views if view is not None]
    newest = max((len(view.assignment) for view in shown), default=0)
    candidates: list[TopicState | None] = [v for v in shown if len(v.assignment) == newest]
    found = [find_remaining(topic, view, with_config=with_config) for view in candidates or [None]]
    if with_config:
        found = _confirm_configs(topic, candidates, found) or found
    return min(found, key=lambda remaining: (not remaining.moved, len(remaining.steps)))


def _confirm_configs(
    topic: PlannedTopic, views: Iterable[TopicState | None], found: Iterable[Remaining]
) -> list[Remaining]:
    """Leave out the views that show a foreign config alone."""
    shown = list(zip(views, found, strict=False))
    said = Counter(finding for _, remaining in shown for finding in remaining.moved)
    return [
        remaining
        for view, remaining in shown
        if all(said[finding] > 1 for finding in remaining.moved)
        or find_remaining(topic, view, with_config=False).moved
    ]


def _undeleted(topic: PlannedTopic, live: TopicState | None) -> Remaining:
    """Return the deletion where the topic is still there, and as large as it was.

    Whether it is still the same topic, and unused, is asked apart: no view tells that.
    """
    then = len(topic.before.assignment) if topic.before else 0
    if live is None:
        return Remaining()
    if len(live.assignment) != then:
        found = len(live.assignment)
        return Remaining(moved=(_moved(topic, f"partitions: {then} → {found} {SINCE}"),))
    return Remaining(steps_of(topic))


def _missing(topic: PlannedTopic) -> Remaining:
    if topic.before is None:
        return Remaining(steps_of(topic))
    return Remaining(moved=(_moved(topic, f"it was deleted {SINCE}"),))


def _list_stages(topic: PlannedTopic) -> Iterator[_Stage]:
    """List the states that apply passes through, from before its first request to the end."""
    before = topic.before
    rows = before.assignment if before else ()
    config = _pick_keys(topic, before.config if before else EMPTY)
    todo = list(steps_of(topic))
    if before:
        yield _Stage(rows, config, tuple(todo))
    while todo:
        part, rest = split_step(todo[0])
        todo[:1] = [rest] if rest else []
        match part:
            case CreateTopic(assignment=created, config=brought):
                rows, config = created, brought
            case AddPartitions(added=added):
                rows = (*rows, *added)
            case AlterConfig():
                config = {k: v for k, v in {**config, **part.set}.items() if k not in part.unset}
            case _:
                pass
        yield _Stage(rows, config, tuple(todo))


def _has_more_rows(topic: PlannedTopic) -> bool:
    """Say whether the plan adds partitions; if not, where they are is none of its business."""
    return any(isinstance(step, CreateTopic | AddPartitions) for step in steps_of(topic))


def _pick_keys(topic: PlannedTopic, config: Mapping[str, str]) -> Mapping[str, str]:
    """Pick what the plan sets or unsets. All is picked of a topic that it creates."""
    if topic.before is None:
        return dict(config)
    touched = {
        key
        for step in steps_of(topic)
        if isinstance(step, AlterConfig)
        for key in (*step.set, *step.unset)
    }
    return {key: value for key, value in config.items() if key in touched}


def _moved(topic: PlannedTopic, what: str) -> Finding:
    return Finding("plan-stale", f"{topic.name}: {what}", "plan again", topic.location)


def _name_moved_rows(
    topic: PlannedTopic, after: TopicImage, live: TopicState, counts: set[int]
) -> Iterator[Finding]:
    """Name a number of partitions that apply never leaves, or partitions on other brokers."""
    if not _has_more_rows(topic):
        return
    planned, found = len(after.assignment), len(live.assignment)
    if found not in counts:
        then = len(topic.before.assignment) if topic.before else 0
        what = f"partitions: {then} → {found} {SINCE} (planned: {planned})"
        created = f"it was created {SINCE} with {count(found, 'partition')} (planned: {planned})"
        yield _moved(topic, what if topic.before else created)
        return
    pairs = enumerate(zip(after.assignment, live.assignment, strict=False))
    others = [(number, *pair) for number, pair in pairs if pair[0] != pair[1]]
    for number, wanted, row in others[:MOST_ROWS]:
        what = f"partition {number} is on brokers {list(row)}, not {list(wanted)}"
        yield _moved(topic, what)
    if len(others) > MOST_ROWS:
        more = count(len(others) - MOST_ROWS, "more partition")
        yield _moved(topic, f"{more} on other brokers than planned")


def _name_moved_keys(topic: PlannedTopic, now: Mapping[str, str]) -> Iterator[Finding]:
    """Name each config that is not as it was, or not as it is to be created."""
    after = _pick_keys(topic, topic.after.config if topic.after else EMPTY)
    before = _pick_keys(topic, topic.before.config) if topic.before else after
    for key in sorted({*before, *after, *now}):
        then, found, wanted = (config.get(key, "not set") for config in (before, now, after))
        if found == then:
            continue
        what = f"{key}: {then} → {found} {SINCE} (planned: {wanted})"
        created = f"it was created {SINCE} with {key} {found} (planned: {wanted})"
        yield _moved(topic, what if topic.before else created)
