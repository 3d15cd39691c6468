"""The published schemas of JSON answers, and whether an answer fits its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

SCHEMAS = Path(__file__).parents[1] / "schemas"


def read_answer(schema: str, text: str) -> Any:
    """Return what a command printed as JSON, if it fits the published schema of this name."""
    answer = json.loads(text)
    published = json.loads((SCHEMAS / f"{schema}.schema.json").read_text())
    jsonschema.Draft202012Validator(published).validate(answer)
    return answer
