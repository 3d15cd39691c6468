"""Patterns of topic names, as columns match them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SET = re.compile(r"\[(!?)(\]?[^\]]*)\]")
_NEVER = "(?!)"


def translate_globs(globs: Iterable[str]) -> str:
    """Return the regular expression of names that match one of the patterns; Java reads it too.

    Python's own translation escapes for Python alone: a `[` inside of a set means more to Java.
    """
    return "^(?:" + ("|".join(map(_translate, globs)) or _NEVER) + ")$"


def _translate(glob: str) -> str:
    parts, at = [], 0
    while at < len(glob):
        if found := _SET.match(glob, at):
            parts.append(_translate_set(*found.groups()))
            at = found.end()
            continue
        parts.append({"*": ".*", "?": "."}.get(glob[at]) or re.escape(glob[at]))
        at += 1
    return "".join(parts)


def _translate_set(negated: str, held: str) -> str:
    """Keep ranges; whatever else is no letter or digit stands for itself."""
    inside = re.sub(r"[^A-Za-z0-9-]", lambda found: "\\" + found[0], held)
    return f"[{'^' if negated else ''}{inside}]"
