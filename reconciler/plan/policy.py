"""A team's own rules, evaluated for the changes of a plan to each topic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.diff import desired_partitions, managed_overrides
from reconciler.errors import Severity
from reconciler.model import Deletion, PlannedTopic, TopicImage, steps_of
from reconciler.plan.risks import assess_risks
from reconciler.policy import ChangeFacts, TopicFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconciler.diff import TopicDiff
    from reconciler.model import ClusterState, Verb
    from reconciler.policy import Judge


def judge_changes(
    diffs: Iterable[TopicDiff], state: ClusterState, judge: Judge
) -> tuple[TopicDiff, ...]:
    """Evaluate the rules for every change: errors refuse it, warnings and notes are added to it.

    This comes before placement, so that what is refused takes no room.
    """
    return tuple(_judge(diff, state, judge) for diff in diffs)


def _judge(diff: TopicDiff, state: ClusterState, judge: Judge) -> TopicDiff:
    if not diff.changes:
        return diff  # and most topics do not differ
    findings = list(judge.judge_change(diff.spec, gather_facts(diff, state)))
    refusals = (f for f in findings if f.severity is Severity.ERROR)
    notes = (f for f in findings if f.severity is not Severity.ERROR)
    return replace(diff, refusals=(*diff.refusals, *refusals), notes=(*diff.notes, *notes))


def gather_facts(diff: TopicDiff, state: ClusterState) -> ChangeFacts:
    """Return the change that a diff makes to its topic, with the known effective configs."""
    overrides = managed_overrides(diff.state) if diff.state else {}
    defaults = state.config_defaults
    before = after = None
    if diff.state is not None:
        count = len(diff.state.assignment)
        replication = max(diff.state.replication_factors, default=0)
        before = TopicFacts(count, replication, {**defaults, **overrides})
    if not diff.spec.absent:
        partitions = desired_partitions(diff.spec) or (before.partitions if before else 0)
        after = TopicFacts(partitions, diff.replication_factor, {**defaults, **diff.config})
    risks = assess_risks(diff, overrides, defaults)
    return ChangeFacts(
        actions=_list_verbs(diff),
        before=before,
        after=after,
        config_keys=tuple(sorted(_list_keys(overrides, diff))),
        risks=tuple(sorted({str(note.risk) for note in risks})),
    )


def _list_verbs(diff: TopicDiff) -> tuple[Verb, ...]:
    """List what would be done to a topic. Nothing is placed yet: its new partitions are empty."""
    state, absent = diff.state, diff.spec.absent
    rows = state.assignment if state else ()
    before = None
    if state:
        before = TopicImage(state.topic_id or "not read", rows, managed_overrides(state))
    after = TopicImage(None, (*rows, *[()] * diff.new_partitions), diff.config)
    planned = PlannedTopic(
        diff.spec.name,
        diff.spec.location,
        before,
        None if absent else after,
        deletion=Deletion(unused_for_ms=0, ends=()) if absent else None,
    )
    return tuple(step.verb for step in steps_of(planned))


def _list_keys(overrides: Mapping[str, str], diff: TopicDiff) -> set[str]:
    """Name the configs that are set or unset; none if the topic is to be deleted."""
    if diff.spec.absent:
        return set()
    keys = overrides.keys() | diff.config.keys()
    return {key for key in keys if overrides.get(key) != diff.config.get(key)}
