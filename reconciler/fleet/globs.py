"""Patterns of topic names as regular expressions, for columns of Spark."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from fnmatch import fnmatchcase

_SET = re.compile(r"\[!?+\]?+[^\]]*\]")
_NEVER = "(?!)"
_LETTERS = f"{string.ascii_letters}{string.digits}._-"
"""The characters of topic names. Source: org.apache.kafka.common.internals.Topic."""


def translate_globs(globs: Iterable[str]) -> str:
    """Return the regular expression of names that match one of the patterns, for Python and Java.

    `fnmatch.translate` is for Python alone: a `[` inside a set has another meaning in Java. Both
    translations match the text between two stars once, as early as possible, without backtracking
    (`(?>…)`): otherwise `*a*a*a*a*b` takes exponential time on a name with many `a`.
    """
    return "^(?:" + ("|".join(map(_translate, globs)) or _NEVER) + ")$"


def _translate(glob: str) -> str:
    parts = [""]
    at = 0
    while at < len(glob):
        if glob[at] == "*":
            parts.append("")
        elif found := _SET.match(glob, at):
            # Ranges and negated sets are written as their letters: Java reads these alike.
            held = "".join(
                re.escape(letter) for letter in _LETTERS if fnmatchcase(letter, found[0])
            )
            parts[-1] += f"[{held}]" if held else _NEVER
            at = found.end() - 1
        else:
            parts[-1] += "." if glob[at] == "?" else re.escape(glob[at])
        at += 1
    if len(parts) == 1:
        return parts[0]
    first, *middle, last = parts
    return first + "".join(f"(?>.*?{part})" for part in middle if part) + f".*{last}"
