"""The location of a value in a JSON text by its path. It is only computed for an error."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from reconciler.errors import Location

_BLANK = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def locate(text: str, path: Sequence[int | str], file: str) -> Location:
    """Return the place of the value at `path`, or of the nearest value around it.

    `text` is valid JSON. Cost: it is read again from the start up to that place.
    """
    at = _skip(text, 0)
    for step in path:
        inner = _find_key(text, at, step) if isinstance(step, str) else _find_item(text, at, step)
        if inner is None:
            break
        at = inner
    return place(text, at, file)


def place(text: str, at: int, file: str) -> Location:
    """Return an offset as line and column."""
    before = text.rfind("\n", 0, at)
    return Location(file, text.count("\n", 0, at) + 1, at - before)


def spell_path(path: Sequence[int | str]) -> str:
    """Format a path: topics[3].partitions[0]."""
    spelled = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return spelled.removeprefix(".")


def _find_key(text: str, at: int, key: str) -> int | None:
    """Find a value of the object at `at`: the last of that key, which is the one that counts."""
    if text[at] != "{":
        return None
    found = None
    at = _skip(text, at + 1)
    while text[at] == '"':
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)  # the colon
        if name == key:
            found = at
        at = _next(text, at)
    return found


def _find_item(text: str, at: int, number: int) -> int | None:
    if text[at] != "[":
        return None
    at = _skip(text, at + 1)
    for _ in range(number):
        if text[at] == "]":
            return None
        at = _next(text, at)
    return at


def _next(text: str, at: int) -> int:
    """Step over the value at `at`, and over the comma behind it."""
    at = _skip(text, _DECODER.raw_decode(text, at)[1])
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at
