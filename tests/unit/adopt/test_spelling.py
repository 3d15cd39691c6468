"""Values as a person would write them, read back as the very same."""

from __future__ import annotations

import pytest
from shorthand import CATALOGUE

from reconciler.adopt.spelling import humanise, render_document, spell_text
from reconciler.spec.syntax import load_text


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("retention.ms", "604800000", "7d"),
        ("retention.ms", "-1", "-1"),
        ("retention.ms", "604800001", "604800001"),
        ("retention.ms", "0", "0"),
        ("segment.bytes", "1073741824", "1GiB"),
        ("segment.bytes", "2000000", "2000000"),
        ("max.message.bytes", "1048588", "1048588"),
        ("cleanup.policy", "compact,delete", ["compact", "delete"]),
        ("cleanup.policy", "compact", "compact"),
        ("min.cleanable.dirty.ratio", "0.2", "0.2"),
        ("min.insync.replicas", "2", "2"),
    ],
)
def test_a_unit_is_used_where_it_holds_the_value(key: str, value: str, shown: object) -> None:
    assert humanise(CATALOGUE, key, value) == shown
    assert CATALOGUE.normalise(key, shown, None) == value


@pytest.mark.parametrize(
    "text",
    ["null", "Null", "true", "no", "on", "012", "1e3", "0x1f", "1.5", "-", "---", ".inf", "_", "",
     "a: b", "# a", "two words", 'a "quoted" one', "tab\t", "it's", "5L6g3nS-eMCtK--X86sw", "4.1"],
)  # fmt: skip
def test_text_is_read_back_as_text(text: str) -> None:
    (document,) = load_text(render_document({"topic": text}).encode(), "x").documents
    assert document["topic"] == text
    assert document["topic"].tag == "str"


@pytest.mark.parametrize("text", ["orders.events", "Orders_v2", "7d", "compact"])
def test_plain_text_stands_without_quotes(text: str) -> None:
    assert spell_text(text) == text


def test_line_ends_and_tabs_have_their_short_escapes() -> None:
    assert spell_text("one\n\ttwo\r") == r'"one\n\ttwo\r"'
