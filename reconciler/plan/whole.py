"""What is refused of a plan as a whole, whatever its topics: too much at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.errors import Finding
from reconciler.plan.refused import list_refused_fields
from reconciler.plan.steps import steps_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconciler.diff import TopicDiff
    from reconciler.errors import Location
    from reconciler.model import Guards, Plan

ALWAYS = 5
"""So many topics may change whatever the share: of a few topics, a share says little."""


def guard_plan(
    plan: Plan, diffs: Iterable[TopicDiff], guards: Guards, live: int, where: Location
) -> Plan:
    """Refuse a plan as a whole that changes too large a share of `live` topics.

    Only topics that exist and would be altered count: creating takes nothing from anybody, and to
    what is refused nothing is done. `where` is the place of the guard. The steps stay in the plan,
    which is refused as it is; each topic also lists its fields, as a refused topic does.
    """
    if guards.max_changed_percent is None:
        return plan
    changed = sum(topic.before is not None and bool(steps_of(topic)) for topic in plan.topics)
    most = count_allowed(guards.max_changed_percent, live)
    if changed <= most:
        return plan
    share = f"{changed / live:.0%}" if live else "more than all"
    what = (
        f"the plan changes {changed:,} of {live:,} live topics ({share}), and "
        f"max_changed: {guards.max_changed_percent}% allows {most:,}"
    )
    way_out = (
        "split the change, such as with --topic, or raise max_changed in clusters.yaml "
        "if that is meant"
    )
    refusal = Finding("guard-max-changed", what, way_out, where)
    fields = {diff.spec.name: list_refused_fields(diff) for diff in diffs if diff.changes}
    topics = tuple(replace(t, refused_change=fields.get(t.name, ())) for t in plan.topics)
    return replace(plan, topics=topics, refusals=(*plan.refusals, refusal))


def count_allowed(percent: int, live: int) -> int:
    """Return how many live topics one plan may change: a few always, none at 0 %."""
    return max(ALWAYS, live * percent // 100) if percent else 0


def list_refusals(plan: Plan, *, skip_refused: bool = False) -> tuple[Finding, ...]:
    """List what keeps a plan from being applied.

    `skip_refused` leaves out what is refused of single topics, never what is refused of the whole.
    """
    if skip_refused:
        return plan.refusals
    of_topics = (found.about(topic.name) for topic in plan.topics for found in topic.refusals)
    return (*plan.refusals, *of_topics)
