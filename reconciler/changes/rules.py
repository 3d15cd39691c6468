"""A team's own rules, evaluated for the changes of a plan to each topic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconciler.changes.risks import assess_risks
from reconciler.changes.topics import TopicDiff
from reconciler.diff.fields import desired_partitions, managed_overrides
from reconciler.errors import Severity
from reconciler.model.cluster import ClusterState
from reconciler.model.plan import Deletion, PlannedTopic, TopicImage
from reconciler.model.steps import Verb, steps_of
from reconciler.policy.facts import ChangeFacts, TopicFacts
from reconciler.policy.rules import Judge


def judge_changes(
    diffs: Iterable[TopicDiff], state: ClusterState, judge: Judge
) -> tuple[TopicDiff, ...]:
    """Evaluate the rules for every change: errors refuse it, warnings and notes are added to it.

    This comes before placement, so that refused topics take no room.
    """
    judged = []
    for diff in diffs:
        if not diff.changes:  # most topics
            judged.append(diff)
            continue
        refusals, notes = list(diff.refusals), list(diff.notes)
        for finding in judge.judge_change(diff.spec, gather_facts(diff, state)):
            (refusals if finding.severity is Severity.ERROR else notes).append(finding)
        judged.append(replace(diff, refusals=tuple(refusals), notes=tuple(notes)))
    return tuple(judged)


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
    keys: set[str] = set()  # none if the topic is deleted
    if not diff.spec.absent:
        both = overrides.keys() | diff.config.keys()
        keys = {key for key in both if overrides.get(key) != diff.config.get(key)}
    risks = assess_risks(diff, overrides, defaults)
    return ChangeFacts(
        actions=_list_verbs(diff),
        before=before,
        after=after,
        config_keys=tuple(sorted(keys)),
        risks=tuple(sorted({str(note.risk) for note in risks})),
    )


def _list_verbs(diff: TopicDiff) -> tuple[Verb, ...]:
    """List the steps of a change. Nothing is placed yet, so new partitions have no replicas."""
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
