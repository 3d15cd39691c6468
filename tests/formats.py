"""The published schemas, each checked once for all tests that hold a document against it."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from jsonschema.validators import validator_for

from reconciler.cli.schema import render_schema

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


@cache
def load_validator(name: str) -> Validator:
    """Return the validator of a format, in the dialect that its schema names."""
    schema: dict[str, Any] = json.loads(render_schema(name))
    dialect = validator_for(schema)
    dialect.check_schema(schema)
    return dialect(schema)
