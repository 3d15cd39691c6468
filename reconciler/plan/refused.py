"""What a refused change would have been: every field from → to, and the line that asks for it.

Nothing here leads to a step: a refused topic keeps `after` equal to `before`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from reconciler.diff import wished_partitions
from reconciler.errors import escape_unprintable
from reconciler.model import RefusedField
from reconciler.units import describe_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.diff import TopicDiff
    from reconciler.model import FieldValue, PlannedTopic

    Fields = Iterator[tuple[str, FieldValue | None, FieldValue | None]]


def list_refused_fields(diff: TopicDiff) -> tuple[RefusedField, ...]:
    """List every field that differs between a spec and its topic, or that a new topic has."""
    return tuple(
        RefusedField(path, before, after, diff.spec.where(path))
        for path, before, after in _list_fields(diff)
        if before != after  # a new topic whose spec leaves out a count
    )


def _list_fields(diff: TopicDiff) -> Fields:
    spec, existing = diff.spec, diff.state.assignment if diff.state else ()
    if spec.absent:
        yield "state", "present", "absent"
        return
    if diff.state is None:
        yield "partitions", None, wished_partitions(spec)
        yield "replication_factor", None, diff.replication_factor or None
        yield from ((f"config.{key}", None, value) for key, value in diff.config.items())
    for change in diff.changes if diff.state else ():
        yield change.path, _read_value(change.found), _read_value(change.wished)
    for partition, row in enumerate(diff.manual or (), len(existing)):
        yield f"assignment.{partition}", None, row


def _read_value(value: object) -> FieldValue | None:
    """Return a value of a diff, whose rows are lists."""
    return tuple(value) if isinstance(value, list) else cast("FieldValue | None", value)


def name_field(field: RefusedField) -> str:
    """Name a field as a person reads it: partitions, retention.ms, assignment of partition 3."""
    kind, _, rest = field.path.partition(".")
    return {"config": rest, "assignment": f"assignment of partition {rest}"}.get(kind, field.path)


def describe_field(field: RefusedField) -> str:
    """Say what a field changes from and to, each value in full."""
    return f"{_show(field, field.before, 'not set')} → {_show(field, field.after, 'unset')}"


def _show(field: RefusedField, value: FieldValue | None, nothing: str) -> str:
    match value:
        case None:
            return nothing
        case tuple():
            return str(list(value))
        case _:
            return escape_unprintable(describe_value(name_field(field), str(value)))


def locate_field(field: RefusedField) -> str:
    """Return the file and line that ask for the change."""
    return f"{field.where.file}:{field.where.line}"


def describe_refused_fields(topic: PlannedTopic) -> Iterator[str]:
    """Say each field of a topic's refused change in a line, with its place."""
    for field in topic.refused_change:
        yield f"{name_field(field)} {describe_field(field)} ({locate_field(field)})"
