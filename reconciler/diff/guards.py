"""Refusals of an entire plan, of either kind, and the fields of a refused topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import cast

from reconciler.errors import Finding, Severity
from reconciler.model.cluster import ClusterState, TopicSpec
from reconciler.model.plan import FieldValue, Plan, RefusedField
from reconciler.model.requests import KafkaRequest
from reconciler.model.steps import has_steps
from reconciler.spec.entry import ClusterEntry


def check_means(entry: ClusterEntry, plan: Plan, state: ClusterState) -> Iterator[Finding]:
    """Yield what refuses an entire plan that apply could not make: no lock, or no record of it.

    Apply would refuse it, which is after the merge. What only the account of apply can know, it
    checks itself.
    """
    if has_steps(plan):
        yield from (note for note in state.notes if note.severity is Severity.ERROR)
        yield from _check_audit(entry, plan, state)


def _check_audit(entry: ClusterEntry, plan: Plan, state: ClusterState) -> Iterator[Finding]:
    """Refuse a plan if the audit topic of its cluster takes no record, or is not there or created.

    An account that may see some topics only gets a note.
    """
    name = entry.audit_topic
    if name is not None and KafkaRequest.INIT_PRODUCER_ID in state.unoffered:
        what = f"the brokers of {entry.name} do not offer {KafkaRequest.INIT_PRODUCER_ID}, so no "
        what += f"record can be written to audit_topic {name} exactly once"
        way_out = "remove audit_topic, and keep the journal of apply instead"
        yield Finding("request-unoffered", what, way_out, entry.where("audit_topic"))
        return
    if name is None or name in state.topics:
        return
    if any(topic.name == name and topic.after for topic in plan.topics):
        return
    where = entry.where("audit_topic")
    if any(note.rule == "cluster-rights" for note in state.notes):
        what = f"it is not known whether audit_topic {name} exists: the account may not see it"
        way_out = f"grant Describe on {name} to the account that plans"
        yield Finding("audit-topic", what, way_out, where, Severity.NOTE)
        return
    what = f"audit_topic {name} is not on {entry.name}, so apply would refuse this plan"
    way_out = "write a spec for it and plan it as well, or remove audit_topic"
    yield Finding("audit-topic", what, way_out, where)


def refuse_plan(plan: Plan, found: Iterable[Finding]) -> Plan:
    """Add findings to a plan: errors refuse all of it, others are notes."""
    found = tuple(found)
    refusals = [finding for finding in found if finding.severity is Severity.ERROR]
    notes = [finding for finding in found if finding.severity is not Severity.ERROR]
    return replace(plan, refusals=(*plan.refusals, *refusals), notes=(*plan.notes, *notes))


def list_refusals(plan: Plan, *, skip_refused: bool = False) -> tuple[Finding, ...]:
    """List the reasons why a plan cannot be applied.

    `skip_refused` skips refused topics, but never a refusal of the plan itself.
    """
    if skip_refused:
        return plan.refusals
    of_topics = (found.about(topic.name) for topic in plan.topics for found in topic.refusals)
    return (*plan.refusals, *of_topics)


def spell_refused(
    spec: TopicSpec, fields: Iterable[tuple[str, object, object]]
) -> tuple[RefusedField, ...]:
    """Spell the fields of a refused topic that differ. In: their path, and both values."""
    return tuple(
        RefusedField(path, _read_value(before), _read_value(after), spec.where(path))
        for path, before, after in fields
        if before != after  # both are None if the spec of a new topic omits a count
    )


def _read_value(value: object) -> FieldValue | None:
    """Return a value of a diff, whose rows are lists."""
    return tuple(value) if isinstance(value, list) else cast("FieldValue | None", value)
