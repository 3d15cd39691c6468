"""The fields that a plan changes: small enough for a comment, to compare two plans later.

A merge makes a new plan. If it is not the approved one, people want to know in which fields the
two differ. Fields approve nothing: they are only shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from pydantic import Field, TypeAdapter

from reconciler.changes.gradual import GRADUAL_KEYS
from reconciler.diff.fields import desired_partitions
from reconciler.model.cluster import TopicSpec
from reconciler.model.plan import Plan, PlannedTopic, RefusedField
from reconciler.model.steps import Verb, steps_of
from reconciler.planfile.approval import pack, unpack
from reconciler.show.wording import FieldView, view_configs, view_step

Change = tuple[str | None, str | None]
"""A field before and after; None where it is not set."""
_Name = Annotated[str, Field(max_length=249)]
Fields = dict[_Name, dict[_Name, Change]]
"""The changes by topic and field."""


class Kept(NamedTuple):
    """What a comment keeps of its plans: the fields of both, and the topics that already agreed.

    `agreed` are topics whose specs a request brings or changes, and that are as specified.
    """

    changes: Fields
    moves: Fields
    agreed: tuple[_Name, ...] = ()

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that a request brings to what its specs say, by changes or without."""
        return tuple(sorted({*self.changes, *self.agreed}))


_KEPT = TypeAdapter(Kept)
_PARTITIONS, _FACTOR, _TOPIC = "partitions", "replication factor", "topic"
_MOVED = (Verb.MOVE, Verb.REORDER, Verb.RELOCATE, Verb.ELECT)
"""Steps that change no field of a spec: their words stand for what they change."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that two plans change differently: as text, and why."""

    topic: str
    field: str
    approved: str
    now: str
    why: str


def list_fields(plan: Plan) -> Fields:
    """Return the fields that the steps of a plan change."""
    return {t.name: dict(_list_changes(t)) for t in plan.topics if steps_of(t)}


def _list_changes(topic: PlannedTopic) -> Iterator[tuple[str, Change]]:
    before, after = topic.before, topic.after
    if after is None:
        yield _TOPIC, ("exists", "deleted")
        return
    old, new = len(before.assignment) if before else None, len(after.assignment)
    if old != new:
        yield _PARTITIONS, (None if old is None else str(old), str(new))
    if before is None:
        yield _FACTOR, (None, str(len(after.assignment[0])))
    for field in view_configs(before.config if before else {}, after.config):
        yield field.name, (field.before, field.after)
    for step in steps_of(topic):
        if step.verb in _MOVED:
            yield str(step.verb), (None, view_step(step, topic).words)


def list_deleted(changes: Fields) -> set[str]:
    """Return the topics that a plan deletes. In: its fields."""
    return {topic for topic, fields in changes.items() if _TOPIC in fields}


def keep_fields(plan: Plan, moves: Plan | None = None) -> Kept:
    """Return what a comment keeps of a plan, and of one of moves."""
    return Kept(list_fields(plan), list_fields(moves) if moves else {}, plan.agreed)


def pack_fields(kept: Kept) -> str:
    """Pack what a comment keeps into Base64; empty if it is too much."""
    return pack(_KEPT.dump_json(kept))


def unpack_fields(packed: str) -> Kept | None:
    """Unpack what a comment keeps; None for what is malformed or too large."""
    try:
        return _KEPT.validate_json(unpack(packed), strict=True)
    except ValueError:
        return None


def list_differences(plan: Plan) -> dict[str, dict[str, str | None]]:
    """Return the present value of each field in which a cluster differs from its specs, by topic.

    These are the changes of a plan, those that it refuses, and the existing drift outside its
    scope: together everything in which the cluster is not as specified, but for moves.
    """
    found = {
        topic: {name: before for name, (before, _) in fields.items()}
        for topic, fields in list_fields(plan).items()
    }
    for topic in plan.topics:
        if topic.refused_change or topic.refusals:
            found[topic.name] = dict(map(_read_refused, topic.refused_change)) or {_TOPIC: None}
    for drifted in plan.existing_drift:
        found[drifted.name] = dict(map(_read_refused, drifted.differs))
    return found


def _read_refused(field: RefusedField) -> tuple[str, str | None]:
    name = field.path.removeprefix("config.")
    before = None if field.before is None else str(field.before)
    match name:
        case "state":
            return _TOPIC, "exists"
        case "replication_factor":
            return _FACTOR, before
        case _:
            return name, before


def asks_for(spec: TopicSpec, approved: Mapping[str, Change]) -> bool:
    """Return whether a spec still asks for what an approved plan changed.

    The steps of a gradual change are on the way to what the spec asks for.
    """
    for name, (_, after) in approved.items():
        if name == _TOPIC:
            asked = spec.absent
        elif spec.absent:
            asked = False
        elif name == _PARTITIONS:
            asked = after in (None, str(desired_partitions(spec)))
        elif name == _FACTOR or (spec.gradual and name in GRADUAL_KEYS):
            continue
        else:
            asked = spec.config.get(name) == after
        if not asked:
            return False
    return True


def is_reached(approved: Mapping[str, Change], differs: Mapping[str, str | None]) -> bool:
    """Return whether a topic is as specified, or on the way there by approved steps.

    In: the fields of the approved plan, and the present values where the topic is not as specified.
    A gradual change differs after its first step, from the value that the approved plan gave it.
    """
    return all(
        name in approved and present is not None and present == approved[name][1]
        for name, present in differs.items()
    )


def compare_fields(approved: Fields, now: Fields) -> Iterator[Difference]:
    """Yield the fields that two plans change differently, by topic and field."""
    for topic in sorted({*approved, *now}):
        was, is_ = approved.get(topic, {}), now.get(topic, {})
        for name in sorted({*was, *is_}):
            old, new = was.get(name), is_.get(name)
            if old != new:
                why = _explain(name, was, is_)
                yield Difference(topic, name, _say(name, old), _say(name, new), why)


def _say(name: str, change: Change | None) -> str:
    if change is None:
        return "no change"
    before, after = change
    if before is None and name in (_PARTITIONS, _FACTOR, *_MOVED):
        return after or ""
    return FieldView(name, before, after).words


def _explain(name: str, was: Mapping[str, Change], is_: Mapping[str, Change]) -> str:
    """Say why a field differs, as far as two plans of a topic show it. `was`: the approved one."""
    if not is_:
        return "already done, or no longer specified"
    if not was:
        return "the approved plan does not change the topic"
    if (_FACTOR in was) != (_FACTOR in is_):  # only a plan that creates the topic has this field
        return f"the topic was {'created' if _FACTOR in was else 'deleted'} meanwhile"
    if name not in is_:
        return "already done, or no longer specified"
    if name not in was:
        return "the approved plan does not change it"
    old, new = was[name][0], is_[name][0]
    if old == new:
        return "the specs are different"
    if name == _PARTITIONS and old and new and int(new) > int(old):
        return "the topic was expanded meanwhile"
    return "it was changed meanwhile"
