"""Patterns of names, matched in linear time: the only module that knows RE2.

Whoever opens a pull request can write a pattern. Python's own engine tries again and again: for
`(a+)+$` and a name of 40 letters, longer than any job runs. RE2 reads a name once. Therefore it has
no lookaround, no backreferences and no possessive quantifiers. CEL's `matches` is RE2 as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_ELSEWHERE = {
    "(?=": "a lookahead",
    "(?!": "a lookahead",
    "(?<=": "a lookbehind",
    "(?<!": "a lookbehind",
    "(?P": "a reference to a group",
    "(?>": "an atomic group",
    "(?(": "a condition",
}
"""What other engines read, by the token at which RE2 stops."""
_REFERENCE = re.compile(r"\\[1-9]")
_POSSESSIVE = re.compile(r"([*+?]|\{.*\})\+")
_UP_TO = re.compile(r"(?<!\\)\{,[0-9]+\}")


class PatternError(ValueError):
    """A pattern cannot be read. `uses` names syntax that has no linear time; else it is ""."""

    def __init__(self, what: str, uses: str = "") -> None:
        self.what = what
        self.uses = uses
        super().__init__(what)


@dataclass(frozen=True, slots=True)
class NamePattern:
    """A pattern for the entire name, and its meaning in plain text."""

    pattern: str
    means: str = ""

    def matches(self, name: str) -> bool:
        """Return whether the entire name matches."""
        found = compile_pattern(self.pattern).fullmatch(name.encode("utf-8", "replace"))
        return found is not None


@lru_cache(maxsize=128)
def compile_pattern(pattern: str) -> Any:
    """Compile a pattern. Errors: PatternError."""
    import re2

    options = re2.Options()
    options.log_errors = False  # the finding says it
    if wrong := _UP_TO.search(pattern):
        least = wrong[0].replace("{,", "{0,")
        raise PatternError(f"{wrong[0]} is literal text in RE2; write {least}")
    try:
        return re2.compile(pattern.encode(), options)
    except UnicodeEncodeError as error:
        raise PatternError("it holds half a character") from error
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace")
        raise PatternError(reason, _name_syntax(reason)) from error


def _name_syntax(reason: str) -> str:
    """Name the syntax of other engines that RE2 has stopped at, or return ""."""
    token = reason.rpartition(": ")[2]
    if reason.startswith("bad repetition") and _POSSESSIVE.fullmatch(token):
        return "a possessive quantifier"
    if reason.startswith("invalid escape") and _REFERENCE.fullmatch(token):
        return "a reference to a group"
    return _ELSEWHERE.get(token, "")
