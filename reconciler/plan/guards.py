"""Refusals: of an entire plan that changes too much, and of single fields of a topic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from reconciler.diff import desired_partitions
from reconciler.errors import Finding, Severity
from reconciler.model import RefusedField, has_steps, steps_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconciler.diff import TopicDiff
    from reconciler.errors import Location
    from reconciler.model import ClusterState, FieldValue, Guards, Plan
    from reconciler.spec import ClusterEntry

    Fields = Iterator[tuple[str, FieldValue | None, FieldValue | None]]

ALWAYS = 5
"""The number of topics that may always change: for few topics, a share means little."""


def guard_plan(
    plan: Plan, diffs: Iterable[TopicDiff], guards: Guards, live: int, where: Location
) -> Plan:
    """Refuse an entire plan that changes too large a share of `live` topics.

    Only topics that exist and would be altered count: a new topic affects no one, and a refused
    topic is not changed. A topic on which only defaults become explicit counts in a freeze alone,
    for nothing that is in force changes. `where` is the location of the guard. The steps stay in
    the plan, so that a reviewer sees them; each topic also lists its fields, as a refused topic
    does.
    """
    if guards.max_changed_percent is None:
        return plan
    diffs = tuple(diffs)
    most = count_allowed(guards.max_changed_percent, live)
    spared = {diff.spec.name for diff in diffs if diff.only_explicit} if most else set()
    changed = sum(
        topic.before is not None and topic.name not in spared and bool(steps_of(topic))
        for topic in plan.topics
    )
    if changed <= most:
        return plan
    share = f"{changed / live:.0%}" if live else "more than all"
    what = (
        f"the plan changes {changed:,} of {live:,} live topics ({share}), and "
        f"max_changed: {guards.max_changed_percent}% allows {most:,}"
    )
    way_out = "raise max_changed in clusters.yaml if this is intended"
    if most:
        way_out = f"split the change, into several requests or with --topic, or {way_out}"
    return _refuse_whole(plan, diffs, Finding("guard-max-changed", what, way_out, where))


def require_means(
    entry: ClusterEntry, plan: Plan, state: ClusterState, diffs: Iterable[TopicDiff] = ()
) -> Plan:
    """Refuse an entire plan that apply could not make: without a lock, or a record of it.

    Apply would refuse it, which is after the merge. What only the account of apply can know, it
    checks itself.
    """
    if not has_steps(plan):
        return plan
    for finding in state.notes:
        if finding.severity is Severity.ERROR:
            plan = _refuse_whole(plan, diffs, finding)
    return _require_audit(entry, plan, state, diffs)


def _require_audit(
    entry: ClusterEntry, plan: Plan, state: ClusterState, diffs: Iterable[TopicDiff]
) -> Plan:
    """Refuse a plan if the audit topic of its cluster does not exist and is not created.

    An account that may see some topics only gets a note.
    """
    name = entry.audit_topic
    if name is None or name in state.topics:
        return plan
    if any(topic.name == name and topic.after for topic in plan.topics):
        return plan
    where = entry.where("audit_topic")
    if any(note.rule == "cluster-rights" for note in state.notes):
        what = f"it is not known whether audit_topic {name} exists: the account may not see it"
        way_out = f"grant Describe on {name} to the account that plans"
        note = Finding("audit-topic", what, way_out, where, Severity.NOTE)
        return replace(plan, notes=(*plan.notes, note))
    what = f"audit_topic {name} is not on {entry.name}, so apply would refuse this plan"
    way_out = "give it a spec and plan it as well, or take audit_topic away"
    return _refuse_whole(plan, diffs, Finding("audit-topic", what, way_out, where))


def _refuse_whole(plan: Plan, diffs: Iterable[TopicDiff], refusal: Finding) -> Plan:
    fields = {diff.spec.name: list_refused_fields(diff) for diff in diffs if diff.changes}
    topics = tuple(
        replace(t, refused_change=fields.get(t.name, t.refused_change)) for t in plan.topics
    )
    return replace(plan, topics=topics, refusals=(*plan.refusals, refusal))


def count_allowed(percent: int, live: int) -> int:
    """Return how many live topics one plan may change: a few always, none at 0 %."""
    return max(ALWAYS, live * percent // 100) if percent else 0


def list_refusals(plan: Plan, *, skip_refused: bool = False) -> tuple[Finding, ...]:
    """List the reasons why a plan cannot be applied.

    `skip_refused` skips refused topics, but never a refusal of the plan itself.
    """
    if skip_refused:
        return plan.refusals
    of_topics = (found.about(topic.name) for topic in plan.topics for found in topic.refusals)
    return (*plan.refusals, *of_topics)


def list_refused_fields(diff: TopicDiff) -> tuple[RefusedField, ...]:
    """List every field that differs between a spec and its topic, or that a new topic has."""
    return tuple(
        RefusedField(path, before, after, diff.spec.where(path))
        for path, before, after in _list_fields(diff)
        if before != after  # both are None if the spec of a new topic omits a count
    )


def _list_fields(diff: TopicDiff) -> Fields:
    spec, existing = diff.spec, diff.state.assignment if diff.state else ()
    if spec.absent:
        yield "state", "present", "absent"
        return
    if diff.state is None:
        yield "partitions", None, desired_partitions(spec)
        yield "replication_factor", None, diff.replication_factor or None
        yield from ((f"config.{key}", None, value) for key, value in diff.config.items())
    for change in diff.changes if diff.state else ():
        yield change.path, _read_value(change.found), _read_value(change.desired)
    for partition, row in enumerate(diff.manual or (), len(existing)):
        yield f"assignment.{partition}", None, row


def _read_value(value: object) -> FieldValue | None:
    """Return a value of a diff, whose rows are lists."""
    return tuple(value) if isinstance(value, list) else cast("FieldValue | None", value)
