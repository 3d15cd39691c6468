"""The second look at topics that are to be deleted: still the same, still unused, or held back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reconciler.apply.sight import look
from reconciler.diff import object_to_use
from reconciler.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from reconciler.model import PlannedTopic, TopicUsage
    from reconciler.ports import Clock, ClusterReader


@dataclass(slots=True)
class SecondLook:
    """What became of topics since they were planned to go: in use, gone already, or neither."""

    used: dict[str, list[Finding]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)


def look_again(
    reader: ClusterReader,
    clock: Clock,
    topics: Mapping[str, PlannedTopic],
    pauses_s: Sequence[float],
) -> SecondLook:
    """Find the topics that must not be deleted any more, and those that are deleted already.

    A topic that some brokers show and the others do not know any more is on its way out; it is
    waited for, and counts as used if it stays so. Errors: ClusterError where nobody answers.
    """
    found = SecondLook()
    waiting = dict(topics)
    for pause in (*pauses_s, None):
        usage = reader.read_usage(waiting) if waiting else {}
        for name in usage:
            if objections := list(object_to_deletion(waiting.pop(name), usage[name])):
                found.used[name] = objections
        gone = {name for name, left in look(reader, clock, waiting).items() if left.is_done}
        found.gone |= gone
        waiting = {name: topic for name, topic in waiting.items() if name not in gone}
        if not waiting or pause is None:
            break
        clock.sleep(pause)
    for name, topic in waiting.items():
        found.used[name] = [_stale(topic, "some brokers show it, others do not know it")]
    return found


def object_to_deletion(topic: PlannedTopic, usage: TopicUsage) -> Iterator[Finding]:
    """Object where a topic is no longer as unused as it was when it was planned to go."""
    deletion = topic.deletion
    if deletion is None:
        return
    written = not usage.unseen and usage.ends != deletion.ends
    if written:
        writes = _describe_writes(deletion.ends, usage.ends)
        yield _stale(topic, f"{writes} since the plan was made")
    for objection in object_to_use(usage, deletion.unused_for_ms):
        if not (written and objection.rule == "deletion-written"):
            yield _stale(topic, objection.what, objection.way_out)


def _describe_writes(before: Sequence[int], after: Sequence[int]) -> str:
    """Say what moved: a write moves an end by one, or by a few with its transaction's marks."""
    if len(before) != len(after):
        return f"it came to have {len(after)} partitions, not {len(before)},"
    moved = [n for n, (then, now) in enumerate(zip(before, after, strict=True)) if then != now]
    noun = "partition" if len(moved) == 1 else "partitions"
    listed = ", ".join(map(str, moved[:3])) + (f" and {len(moved) - 3} more" * (len(moved) > 3))
    return f"it was written to ({noun} {listed})"


def _stale(topic: PlannedTopic, what: str, way_out: str = "plan again") -> Finding:
    return Finding("plan-stale", f"{topic.name}: {what}", way_out, topic.location)
