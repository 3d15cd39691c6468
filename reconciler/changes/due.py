"""Topics that are due: past their date, or unused for as long as their specs say.

A plan names them, with what is known of their use. Nothing is deleted by a date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from reconciler.changes.deletions import NAMED, UNSEEN, describe_age, describe_time
from reconciler.changes.topics import TopicDiff
from reconciler.errors import Finding, Severity
from reconciler.model.cluster import ClusterState, TopicSpec, TopicUsage
from reconciler.policy.policy import Policy
from reconciler.units import format_duration

EXPIRED, IDLE = "topic-expired", "topic-idle"
RULES = (EXPIRED, IDLE)


def may_be_due(spec: TopicSpec, today: str) -> bool:
    """Return whether it must be known who uses a topic. In: `today`, a date in UTC."""
    return not spec.absent and (is_expired(spec, today) or spec.idle_after_ms is not None)


def is_expired(spec: TopicSpec, today: str) -> bool:
    """Return whether the date of a topic has come."""
    return spec.expires is not None and spec.expires <= today


def note_due(
    diffs: Iterable[TopicDiff], state: ClusterState, policy: Policy
) -> tuple[TopicDiff, ...]:
    """Return the topics, each that exists and is due with a warning that says so.

    The policy can exempt topics from each of the two rules, such as dead-letter topics.
    """
    return tuple(
        replace(diff, notes=(*diff.notes, *_note(diff.spec, state, policy.spares)))
        if diff.state is not None
        else diff
        for diff in diffs
    )


def _note(
    spec: TopicSpec, state: ClusterState, spares: Callable[[str, str], bool]
) -> Iterator[Finding]:
    if not state.read_on or not may_be_due(spec, state.read_on):
        return
    usage, limit_ms = state.usage.get(spec.name, UNSEEN), spec.idle_after_ms
    # A topic that is both is reported once.
    if is_expired(spec, state.read_on) and not spares(EXPIRED, spec.name):
        what = f"it expired on {spec.expires}: {describe_use(usage)}"
        way_out = "ask for its deletion with state: absent, or write a later date"
        yield Finding(EXPIRED, what, way_out, spec.where("expires"), Severity.WARNING)
    elif limit_ms is not None and _is_idle(usage, limit_ms) and not spares(IDLE, spec.name):
        what = f"it has been idle for more than {format_duration(limit_ms)}: {describe_use(usage)}"
        way_out = "ask for its deletion with state: absent, or exempt it from topic-idle"
        yield Finding(IDLE, what, way_out, spec.where("idle_after"), Severity.WARNING)


def _is_idle(usage: TopicUsage, limit_ms: int) -> bool:
    """Return whether it is certain that nobody used a topic for so long.

    A topic without records is not: Kafka does not say how old it is, or when it was emptied.
    """
    if usage.unseen or usage.groups or usage.newest_ms is None:
        return False
    return usage.seen_at_ms - usage.newest_ms >= limit_ms


def describe_use(usage: TopicUsage) -> str:
    """Say when a topic was last written, and who reads it, as far as Kafka can tell."""
    if usage.unseen:
        return usage.unseen
    if usage.newest_ms is not None:
        age = describe_age(usage.seen_at_ms - usage.newest_ms)
        written = f"last written {describe_time(usage.newest_ms)}, {age} ago"
    else:
        written = "it holds no record, so its last write is not known"
    if not usage.groups:
        return f"{written}; no consumer group is active on it"
    more = len(usage.groups) - NAMED
    named = ", ".join(usage.groups[:NAMED]) + (f" and {more:,} more" if more > 0 else "")
    return f"{written}; read by {named}"
