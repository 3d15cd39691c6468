"""Patterns of names, matched in linear time: the only module that knows RE2.

Anybody who opens a pull request can write a pattern. Python's own engine backtracks: for `(a+)+$`
and a name of 40 letters, it takes longer than any job may run. RE2 reads a name once. Therefore it
has no lookaround, no backreferences and no possessive quantifiers. CEL's `matches` also uses RE2.
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
"""Syntax of other engines, by the token at which RE2 stops."""
_REFERENCE = re.compile(r"\\[1-9]")
_POSSESSIVE = re.compile(r"([*+?]|\{.*\})\+")
_UP_TO = re.compile(r"(?<!\\)\{,[0-9]+\}")


class PatternError(ValueError):
    """An invalid pattern. `uses` names syntax that RE2 does not have; empty for other errors."""

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
    options.log_errors = False  # the finding reports them
    # RE2 compiles `{,3}` as literal text. Python reads it as `{0,3}`, and so do authors.
    if wrong := _UP_TO.search(pattern):
        least = wrong[0].replace("{,", "{0,")
        raise PatternError(f"{wrong[0]} is literal text in RE2; write {least}")
    try:
        return re2.compile(pattern.encode(), options)
    except UnicodeEncodeError as error:
        raise PatternError("it contains half of a character") from error
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace")
        raise PatternError(reason, _name_syntax(reason)) from error


def _name_syntax(reason: str) -> str:
    """Name the syntax of other engines at which RE2 stopped; empty if it is none."""
    token = reason.rpartition(": ")[2]
    if reason.startswith("bad repetition") and _POSSESSIVE.fullmatch(token):
        return "a possessive quantifier"
    if reason.startswith("invalid escape") and _REFERENCE.fullmatch(token):
        return "a reference to a group"
    return _ELSEWHERE.get(token, "")
