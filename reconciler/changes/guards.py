"""Refusals of a plan that changes too many topics, and the fields of a refused topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from reconciler.changes.topics import TopicDiff
from reconciler.diff.fields import desired_partitions
from reconciler.diff.guards import refuse_plan, spell_refused
from reconciler.errors import Finding, Location
from reconciler.model.cluster import Guards, list_known
from reconciler.model.plan import Plan, RefusedField
from reconciler.model.steps import steps_of

ALWAYS = 5
"""The number of topics that may always change: for few topics, a share means little."""


def guard_changes(
    plan: Plan, diffs: Iterable[TopicDiff], guards: Guards, live: int, where: Location
) -> Iterator[Finding]:
    """Yield the refusal of a plan that changes too large a share of `live` topics.

    Only topics that exist and would be altered count: a new topic affects no one, and a refused
    topic is not changed. A topic on which only defaults become explicit counts in a freeze alone,
    for nothing that is in force changes. `where` is the location of the guard.
    """
    if guards.max_changed_percent is None:
        return
    most = count_allowed(guards.max_changed_percent, live)
    spared = {diff.spec.name for diff in diffs if diff.only_explicit} if most else set()
    changed = sum(
        topic.before is not None and topic.name not in spared and bool(steps_of(topic))
        for topic in plan.topics
    )
    if changed <= most:
        return
    share = f"{changed / live:.0%}" if live else "more than all"
    what = (
        f"the plan changes {changed:,} of {live:,} live topics ({share}), and "
        f"max_changed: {guards.max_changed_percent}% allows {most:,}"
    )
    way_out = "raise max_changed in clusters.yaml if this is intended"
    if most:
        way_out = f"split the change, into several requests or with --topic, or {way_out}"
    yield Finding("guard-max-changed", what, way_out, where)


def count_allowed(percent: int, live: int) -> int:
    """Return how many live topics one plan may change: a few always, none at 0 %."""
    return max(ALWAYS, live * percent // 100) if percent else 0


def refuse_changes(plan: Plan, found: Iterable[Finding], diffs: Iterable[TopicDiff]) -> Plan:
    """Add findings to a plan. If one refuses it, each topic also lists its fields.

    The steps stay in the plan, so that a reviewer sees them; the fields are as of a refused topic.
    """
    refused = refuse_plan(plan, found)
    if refused.refusals == plan.refusals:
        return refused
    fields = {diff.spec.name: list_refused_fields(diff) for diff in diffs if diff.changes}
    topics = tuple(
        replace(t, refused_change=fields.get(t.name, t.refused_change)) for t in refused.topics
    )
    return replace(refused, topics=topics)


def list_refused_fields(diff: TopicDiff) -> tuple[RefusedField, ...]:
    """List every field that differs between a spec and its topic, or that a new topic has."""
    return spell_refused(diff.spec, _list_fields(diff))


def _list_fields(diff: TopicDiff) -> Iterator[tuple[str, object, object]]:
    spec, existing = diff.spec, diff.state.assignment if diff.state else ()
    if spec.absent:
        yield "state", "present", "absent"
        return
    if diff.state is None:
        yield "partitions", None, desired_partitions(spec)
        yield "replication_factor", None, diff.replication_factor or None
        yield from ((f"config.{key}", None, value) for key, value in diff.config.items())
    for change in diff.changes if diff.state else ():
        yield change.path, change.found, change.desired
    for partition, row in enumerate(list_known(diff.given or ()), len(existing)):
        yield f"assignment.{partition}", None, row
