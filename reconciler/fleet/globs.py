"""Patterns of topic names, as columns match them."""

from __future__ import annotations

import re
import string
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SET = re.compile(r"\[!?+\]?+[^\]]*\]")
_NEVER = "(?!)"
_LETTERS = f"{string.ascii_letters}{string.digits}._-"
"""The characters of topic names. Source: org.apache.kafka.common.internals.Topic."""


def translate_globs(globs: Iterable[str]) -> str:
    """Return the regular expression of names that match one of the patterns; Java reads it too.

    Python's own translation is for Python alone: a `[` inside of a set means more to Java. As
    there, what stands between two stars is found once, as early as it can be, and never again
    (`(?>…)`): otherwise `*a*a*a*a*b` takes for ever if names have many an `a`.
    """
    return "^(?:" + ("|".join(map(_translate, globs)) or _NEVER) + ")$"


def _translate(glob: str) -> str:
    parts = [""]
    at = 0
    while at < len(glob):
        if glob[at] == "*":
            parts.append("")
        elif found := _SET.match(glob, at):
            parts[-1] += _list_members(found[0])
            at = found.end() - 1
        else:
            parts[-1] += "." if glob[at] == "?" else re.escape(glob[at])
        at += 1
    if len(parts) == 1:
        return parts[0]
    first, *middle, last = parts
    return first + "".join(f"(?>.*?{part})" for part in middle if part) + f".*{last}"


def _list_members(letters: str) -> str:
    """Spell a set, its ranges and its opposite by the letters in it."""
    held = "".join(re.escape(letter) for letter in _LETTERS if fnmatchcase(letter, letters))
    return f"[{held}]" if held else _NEVER
