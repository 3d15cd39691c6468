"""Laws of outputs: no line is a command to a runner, and JSON keeps its meaning."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from runner import find_commands

from reconciler.errors import Location, Severity, escape_commands
from reconciler.show.github import Annotation
from reconciler.styling import fold_lines

PARTS = (
    *("#", "##", "[", "]", ":", "::", "##[", "add-mask", "vso", "section_start:1:a", " ", "\n"),
    *("\r", "\t", "\x0b", "\x1c", "\x85", "\x1b", "\x1b[0K", "\x1b[31m", "\u2028", "\u00a0"),
    *("\u200b", "\ufe0f", "\u00ad", "\u0301", "\ufeff", "\U000e0100", "\\", "é", "a", "%0A"),
)
texts = st.lists(st.sampled_from(PARTS) | st.characters(exclude_categories=["Cs"])).map("".join)


@given(texts, st.none() | st.integers(1, 30))
def test_no_output_holds_a_command(text: str, width: int | None) -> None:
    once = escape_commands(fold_lines(text, width))
    assert find_commands(once) == []
    assert escape_commands(once) == once


@given(texts, st.booleans())
def test_json_keeps_its_meaning(text: str, ascii_only: bool) -> None:
    value = {text: [text, {"a": text}]}
    written = escape_commands(json.dumps(value, ensure_ascii=ascii_only, indent=1))
    assert json.loads(written) == value
    assert find_commands(written) == []


@given(texts, texts, texts)
def test_an_annotation_is_one_command(title: str, text: str, file: str) -> None:
    line = str(Annotation(Severity.ERROR, title, text, Location(file, 1)))
    assert set(find_commands(line)) == {"error"}
    assert find_commands(line.lstrip(":")) == []
