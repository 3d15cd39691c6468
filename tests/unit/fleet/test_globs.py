"""Patterns as columns match them are those that the estate itself matches by."""

from __future__ import annotations

import re
import subprocess
import sys
from fnmatch import fnmatchcase

from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.fleet.globs import translate_globs

LETTERS = "abz09._-"
PATTERNS = st.text(LETTERS + "*?[]!^\\$|(){}&~", max_size=8)
NAMES = st.text(LETTERS, min_size=1, max_size=6)


@given(st.lists(PATTERNS, max_size=3), NAMES)
@example(["[z-a]"], "z")
@example(["[a-z-9]"], "-")
@example(["[]a]"], "a")
@example(["[!a]*"], "ba")
@example(["a["], "a")
@example(["[a&&b]"], "a")
@example([], "a")
@example(["*a*b"], "ab")
@example(["a**b", "**"], "ab")
def test_they_match_what_fnmatch_matches(globs: list[str], name: str) -> None:
    found = re.search(translate_globs(globs), name) is not None
    assert found == any(fnmatchcase(name, glob) for glob in globs)


def test_a_pattern_of_many_stars_ends() -> None:
    code = """
import re
from reconciler.fleet.globs import translate_globs
print(re.search(translate_globs(["*a" * 40 + "*b"]), "a" * 240))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "None\n"
