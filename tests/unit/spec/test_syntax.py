"""Files of YAML: what plain values are taken for, where they stand, what is skipped."""

from __future__ import annotations

import pytest

from reconciler.errors import Location
from reconciler.spec.syntax import ALIASED_VALUES, FILE_BYTES, load_text
from reconciler.spec.syntax_errors import DEPTH
from reconciler.spec.values import YamlList, YamlMap, YamlText


def read(text: str) -> YamlMap:
    loaded = load_text(text.encode(), "f.yaml")
    assert loaded.findings == ()
    (document,) = loaded.documents
    assert isinstance(document, YamlMap)
    return document


def rules(content: bytes) -> list[str]:
    return [finding.rule for finding in load_text(content, "f.yaml").findings]


@pytest.mark.parametrize(
    ("written", "tag"),
    [
        ("no", "str"),
        ("on", "str"),
        ("012", "int"),
        ("0x1F", "int"),
        ("12:30:45", "str"),
        ("2024-01-01", "str"),
        ("1_000", "str"),
        ("True", "bool"),
        ("1e3", "float"),
        ("~", "null"),
        ("", "null"),
        ("'1'", "str"),
        ("!!str 1", "str"),
    ],
)
def test_plain_values_are_taken_as_yaml_1_2_core_takes_them(written: str, tag: str) -> None:
    assert read(f"key: {written}")["key"].tag == tag


def test_values_know_their_places() -> None:
    document = read("a: 1\nb:\n  - x\n  - {c: 'd'}\n")
    assert document.where == Location("f.yaml", 1, 1)
    assert document.key("b").where == Location("f.yaml", 2, 1)
    assert document["b"].where == Location("f.yaml", 3, 3)
    assert document["b"][1]["c"].where == Location("f.yaml", 4, 9)


def test_an_aliased_value_stands_where_it_was_written() -> None:
    document = read("a: &x 7d\nb: *x\n")
    assert document["b"].where == Location("f.yaml", 1, 4)


def test_line_separators_in_quotes_do_not_move_what_follows() -> None:
    document = read('a: "one\u2028two", b\n'.replace(", b", "") + "b: 1\n")
    assert document["a"] == "one\u2028two"
    assert document["b"].where == Location("f.yaml", 2, 4)


def test_a_leading_byte_order_mark_and_windows_line_ends_are_no_matter() -> None:
    loaded = load_text(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n", "f.yaml")
    assert loaded.findings == ()
    (document,) = loaded.documents
    assert isinstance(document, YamlMap)
    assert document["b"].where == Location("f.yaml", 2, 4)


@pytest.mark.parametrize("text", ["", "---\n", "# only words\n", "---\n---\n...\n", "null\n"])
def test_empty_documents_are_left_out(text: str) -> None:
    assert load_text(text.encode(), "f.yaml").documents == ()


def test_limits_hold_exactly() -> None:
    assert rules(b"a: " + b"[" * (DEPTH - 1) + b"]" * (DEPTH - 1)) == []
    assert rules(b"a: " + b"[" * DEPTH + b"]" * DEPTH) == ["yaml-depth"]


@pytest.mark.parametrize("opening", [b"[", b"{", b"[{", b"- "])
def test_depth_without_end_is_refused_as_depth_with_every_libyaml(opening: bytes) -> None:
    # libyaml 0.2.6 stops by itself at 1,000 levels; before it, only DEPTH ends the reading.
    assert rules(b"a:\n " + opening * 100_000) == ["yaml-depth"]
    assert rules(b"#" * FILE_BYTES) == []
    assert rules(b"#" * (FILE_BYTES + 1)) == ["file-size"]
    anchored = "a: &a [" + ", ".join("x" * 99) + "]\n"
    most = ALIASED_VALUES // 100
    assert rules((anchored + "b: [" + ", ".join(["*a"] * most) + "]").encode()) == []
    over = anchored + "b: [" + ", ".join(["*a"] * (most + 1)) + "]"
    assert rules(over.encode()) == ["yaml-alias"]


def test_documents_before_a_broken_one_are_kept() -> None:
    loaded = load_text(b"topic: a\n---\n- [\n", "f.yaml")
    assert loaded.documents == ({"topic": "a"},)
    assert [finding.rule for finding in loaded.findings] == ["yaml-syntax"]


def test_the_kinds_of_values_are_ours() -> None:
    document = read("a: [1]")
    assert isinstance(document["a"], YamlList)
    assert isinstance(document["a"][0], YamlText)
