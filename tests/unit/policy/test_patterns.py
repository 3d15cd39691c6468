"""Patterns of names: what they match, that they end, and what is said of those that cannot be."""

from __future__ import annotations

import subprocess
import sys

import pytest

from reconciler.policy.patterns import NamePattern, PatternError, compile_pattern


def test_a_pattern_matches_a_whole_name() -> None:
    pattern = NamePattern(r"[a-z]+(\.[a-z]+)?")
    assert pattern.matches("orders.events")
    assert not pattern.matches("orders.events.v1")
    assert not pattern.matches("orders.events\n")


@pytest.mark.parametrize("name", ["ä", "\ud800", ""])
def test_a_name_that_kafka_does_not_take_is_no_match_and_no_crash(name: str) -> None:
    assert not NamePattern("[a-z]+").matches(name)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a*)*b", "(.*a){20}b", "([a-z]+)*[0-9]"])
def test_every_pattern_ends(pattern: str) -> None:
    code = f"""
from reconciler.policy.patterns import NamePattern
print(NamePattern({pattern!r}).matches("a" * 240 + "!"))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("pattern", "uses"),
    [
        ("(?=a)a", "a lookahead"),
        ("(?!test)[a-z]+", "a lookahead"),
        ("[a-z]+(?<=s)", "a lookbehind"),
        ("[a-z]+(?<!tmp)", "a lookbehind"),
        (r"([a-z])\1", "a reference to a group"),
        ("(?P<x>a)(?P=x)", "a reference to a group"),
        ("(?>a+)b", "an atomic group"),
        ("(a)?(?(1)b|c)", "a condition"),
        ("[a-z]++", "a possessive quantifier"),
        ("a*+b", "a possessive quantifier"),
        ("a{2}+b", "a possessive quantifier"),
    ],
)
def test_what_has_no_linear_time_is_named(pattern: str, uses: str) -> None:
    with pytest.raises(PatternError) as refused:
        compile_pattern(pattern)
    assert refused.value.uses == uses


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("[a-z", "missing ]: [a-z"),
        ("(a", "missing ): (a"),
        ("a**", "bad repetition operator: **"),
        (r"a\Z", r"invalid escape sequence: \Z"),
        ("a{2000}", "invalid repetition size: {2000}"),
        ("((a{1000}){1}){1000}", "invalid repetition size: {1000}"),
        ("[a-z]{,3}", "{,3} is literal text in RE2; write {0,3}"),
        ("\ud800", "it contains half of a character"),
    ],
)
def test_what_is_no_pattern_is_explained(
    pattern: str, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(PatternError) as refused:
        compile_pattern(pattern)
    assert (refused.value.what, refused.value.uses) == (what, "")
    assert capfd.readouterr() == ("", "")
