"""An approval: the fingerprint of the plan that people read, and the rows that it gives.

A merge plans again. If another change came first, rows may be others that are no better, and so
the fingerprint. With its rows at hand, the approved plan is made once more and used if its rows
are valid and as good as new ones. The fingerprint decides, so rows alone approve nothing. The same
holds for the rows of a rebalance, which depend on sizes that grow.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from reconciler.errors import Finding, PlanFileError, Severity
from reconciler.model.cluster import Assignment, Place, Replicas
from reconciler.model.moves import MovedRows
from reconciler.model.plan import Plan
from reconciler.planfile.codec import fingerprint_plan
from reconciler.planfile.documents import describe_error
from reconciler.planfile.plan_document import Sha256

MOST_BYTES = 1_000_000
"""The limit of unpacked text: what a comment holds must not fill the memory of a job."""

_Topic = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
_Broker = Annotated[int, Field(ge=0, lt=2**31)]
_Row = Annotated[tuple[_Broker, ...], Field(min_length=1, max_length=32)]
_Rows = dict[_Topic, tuple[_Row, ...]]
_ROWS = TypeAdapter(_Rows)
_Moved = tuple[tuple[_Topic, Annotated[int, Field(ge=0, lt=2**31)], _Row, _Row], ...]
"""The topic, the partition, and its replicas before and after."""
_MOVED = TypeAdapter(_Moved)
_Given = TypeVar("_Given", bound=Sized)


class _ApprovalDocument(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    fingerprint: Sha256
    rows: _Rows
    moved: _Moved = ()


@dataclass(frozen=True, slots=True)
class Approval:
    """An approved fingerprint, and the new rows by topic of its plan; none if they are unknown.

    `moved` are the rows that a rebalance changes, instead of new ones.
    """

    fingerprint: str
    rows: Mapping[str, Assignment] = field(default_factory=lambda: MappingProxyType({}))
    moved: MovedRows = field(default_factory=lambda: MappingProxyType({}))


def list_new_rows(plan: Plan) -> dict[str, Assignment]:
    """Return the rows that a plan adds, by topic, whether placed or given by a spec."""
    added = {}
    for topic in plan.topics:
        existing = len(topic.before.assignment) if topic.before else 0
        if topic.after and len(topic.after.assignment) > existing:
            added[topic.name] = topic.after.assignment[existing:]
    return added


def list_moved_rows(plan: Plan) -> dict[Place, tuple[Replicas, Replicas]]:
    """Return the rows that a plan of a rebalance changes; none of any other plan."""
    if plan.moves is None or plan.moves.balance is None:
        return {}
    return {
        (topic.name, number): (old, new)
        for topic in plan.topics
        if topic.before and topic.after
        for number, (old, new) in enumerate(
            zip(topic.before.assignment, topic.after.assignment, strict=True)
        )
        if old != new
    }


def pack(text: bytes) -> str:
    """Pack text into Base64; empty for more than `unpack` accepts."""
    return b64encode(zlib.compress(text, 9)).decode() if len(text) <= MOST_BYTES else ""


def unpack(packed: str) -> bytes:
    """Unpack text. Errors: ValueError if it is malformed or too large."""
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(b64decode(packed, validate=True), MOST_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacking.eof:
        raise ValueError("too large, or cut")
    return text


def pack_rows(rows: Mapping[str, Assignment]) -> str:
    """Pack rows into Base64; empty for no rows, and for more than `unpack_rows` accepts."""
    return pack(_ROWS.dump_json(dict(rows))) if rows else ""


def unpack_rows(packed: str) -> dict[str, Assignment]:
    """Unpack rows; what is malformed or too large holds none."""
    try:
        return _ROWS.validate_json(unpack(packed), strict=True)
    except ValueError:  # a ValidationError is a ValueError
        return {}


def pack_moved(moved: MovedRows) -> str:
    """Pack the rows of a rebalance, as `pack_rows` does."""
    return pack(_MOVED.dump_json(_spell(moved))) if moved else ""


def unpack_moved(packed: str) -> MovedRows:
    """Unpack them; what is malformed or too large holds none."""
    try:
        return _read(_MOVED.validate_json(unpack(packed), strict=True))
    except ValueError:
        return {}


def _spell(moved: MovedRows) -> _Moved:
    return tuple((*place, *pair) for place, pair in sorted(moved.items()))


def _read(moved: _Moved) -> MovedRows:
    return {(topic, number): (before, after) for topic, number, before, after in moved}


def encode_approval(approval: Approval) -> str:
    """Encode an approval as one line of JSON."""
    document = _ApprovalDocument(
        fingerprint=approval.fingerprint, rows=dict(approval.rows), moved=_spell(approval.moved)
    )
    return document.model_dump_json() + "\n"


def decode_approval(text: str, source: str = "approval") -> Approval:
    """Decode an approval. Errors: PlanFileError if it is malformed."""
    try:
        document = _ApprovalDocument.model_validate_json(text)
    except ValidationError as error:
        what = f"{source} is not an approval: {describe_error(error)}"
        way_out = "write it with: reconciler report approved --out"
        raise PlanFileError([Finding("plan-form", what, way_out)]) from error
    return Approval(document.fingerprint, document.rows, _read(document.moved))


def keep_approved(
    approval: Approval, assemble: Callable[[Mapping[str, Assignment] | None], Plan]
) -> Plan:
    """Return the approved plan if it can be made, otherwise a new one with a note that says why.

    `assemble` makes the plan, with proposed rows or with its own.
    """
    why = "leaders and replicas are as even as with new rows"
    return _keep(approval.fingerprint, approval.rows, assemble, why)


def keep_moved(approval: Approval, assemble: Callable[[MovedRows | None], Plan]) -> Plan:
    """Return the approved plan of moves, as `keep_approved` does.

    `assemble` makes the plan, with the approved rows of its rebalance or with its own.
    """
    why = "they bring the same brokers inside their bands as new rows"
    return _keep(approval.fingerprint, approval.moved, assemble, why)


def _keep(
    fingerprint: str, rows: _Given, assemble: Callable[[_Given | None], Plan], why: str
) -> Plan:
    plan = assemble(None)
    if fingerprint_plan(plan) == fingerprint:
        return plan
    if not rows:
        return _note(plan, "the new plan is not the approved one, whose rows are unknown")
    kept = assemble(rows)
    if fingerprint_plan(kept) == fingerprint:
        return _note(kept, f"the approved rows are used: {why}")
    objections = [note for note in kept.notes if note.rule == "approved-rows"]
    if not objections:
        return _note(plan, "the new plan is not the approved one, even with the approved rows")
    return replace(plan, notes=(*plan.notes, *objections))


def _note(plan: Plan, what: str) -> Plan:
    note = Finding("approved-rows", what, severity=Severity.NOTE)
    return replace(plan, notes=(*plan.notes, note))
