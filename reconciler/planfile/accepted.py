"""The topics of a plan whose targets people accepted, and why each of the others waits.

A nightly run restores only what was accepted: `report accepted` writes this, `plan --only` and
`report drift` read it.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from reconciler.errors import Finding, PlanFileError
from reconciler.planfile.documents import describe_error


class Accepted(BaseModel):
    """The accepted topics of a plan on a cluster. `waiting` has the reason for each other topic."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    cluster: str
    topics: tuple[str, ...] = ()
    waiting: dict[str, str] = {}


def encode_accepted(accepted: Accepted) -> str:
    """Encode it as one line of JSON."""
    return accepted.model_dump_json() + "\n"


def decode_accepted(text: str, source: str = "accepted") -> Accepted:
    """Decode it. Errors: PlanFileError if it is malformed."""
    try:
        return Accepted.model_validate_json(text)
    except ValidationError as error:
        what = f"{source} has no accepted topics: {describe_error(error)}"
        way_out = "write it with: reconciler report accepted --out"
        raise PlanFileError([Finding("plan-form", what, way_out)]) from error
