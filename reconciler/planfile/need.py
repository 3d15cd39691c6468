"""What a cluster needs, as a file: one job reads the cluster, and another opens the request.

`report uneven` writes it, and `report request` reads it.
"""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from reconciler.errors import Finding, PlanFileError
from reconciler.moves.needs import Need
from reconciler.planfile.documents import describe_error

_NEED = TypeAdapter(Need)


def encode_need(need: Need) -> str:
    """Encode it as one line of JSON."""
    return _NEED.dump_json(need).decode() + "\n"


def decode_need(text: str, source: str) -> Need:
    """Decode it. Errors: PlanFileError if it is malformed."""
    try:
        return _NEED.validate_json(text)
    except ValidationError as error:
        what = f"{source} does not say what a cluster needs: {describe_error(error)}"
        way_out = "write it with: reconciler report uneven --out"
        raise PlanFileError([Finding("plan-form", what, way_out)]) from error
