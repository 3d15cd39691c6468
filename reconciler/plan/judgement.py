"""A team's own rules, asked about what a plan would do to each topic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.diff import managed_overrides, wished_partitions
from reconciler.errors import Severity
from reconciler.plan.guards import assess_risks
from reconciler.policy import Change, Image

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reconciler.diff import TopicDiff
    from reconciler.model import ClusterState
    from reconciler.policy import Judge


def judge_changes(
    diffs: Iterable[TopicDiff], state: ClusterState, judge: Judge
) -> tuple[TopicDiff, ...]:
    """Ask the rules about every change: errors refuse it, warnings and notes stand beside it.

    This comes before placement, so that what is refused takes no room.
    """
    return tuple(_judge(diff, state, judge) for diff in diffs)


def _judge(diff: TopicDiff, state: ClusterState, judge: Judge) -> TopicDiff:
    if not diff.changes:
        return diff  # and most topics do not differ
    findings = list(judge.judge_change(diff.spec, describe_change(diff, state)))
    refusals = (f for f in findings if f.severity is Severity.ERROR)
    notes = (f for f in findings if f.severity is not Severity.ERROR)
    return replace(diff, refusals=(*diff.refusals, *refusals), notes=(*diff.notes, *notes))


def describe_change(diff: TopicDiff, state: ClusterState) -> Change:
    """Tell what a diff does to its topic. Configs are those in force, as far as they are known."""
    overrides = managed_overrides(diff.state) if diff.state else {}
    defaults = state.config_defaults
    before = after = None
    if diff.state is not None:
        count = len(diff.state.assignment)
        replication = max(diff.state.replication_factors, default=0)
        before = Image(count, replication, {**defaults, **overrides})
    if not diff.spec.absent:
        partitions = wished_partitions(diff.spec) or (before.partitions if before else 0)
        after = Image(partitions, diff.replication_factor, {**defaults, **diff.config})
    risks = assess_risks(diff, overrides, defaults)
    return Change(
        actions=tuple(_list_actions(diff)),
        before=before,
        after=after,
        config_keys=tuple(sorted(_list_keys(overrides, diff))),
        risks=tuple(sorted({str(note.risk) for note in risks})),
    )


def _list_actions(diff: TopicDiff) -> Iterator[str]:
    if diff.spec.absent:
        if diff.state is not None:
            yield "delete"
    elif diff.state is None:
        yield "create"
    else:
        if diff.new_partitions:
            yield "expand"
        if any(change.path.startswith("config") for change in diff.changes):
            yield "configure"


def _list_keys(overrides: Mapping[str, str], diff: TopicDiff) -> set[str]:
    """Name the configs that are set or unset; none where the topic is to go."""
    if diff.spec.absent:
        return set()
    keys = overrides.keys() | diff.config.keys()
    return {key for key in keys if overrides.get(key) != diff.config.get(key)}
