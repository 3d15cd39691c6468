"""Explanations of YAML errors, with the usual cause and the way out.

libyaml refuses most of these texts. The others are valid YAML, but never intended: repeated keys,
and values that a comma cuts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import yaml

from reconciler.errors import Finding, Location
from reconciler.files import find_replaced
from reconciler.spec.values import (
    RENDER,
    YamlMap,
    YamlText,
    YamlValue,
    find_expression,
    quote,
    show,
)

Repeated = tuple[YamlText, YamlValue, Location]
"""A repeated key of a map, its value here, and its place."""

DEPTH = 40
"""Levels of values inside values that a file may have."""

_RESOURCE_KEYS = {"apiVersion", "kind", "metadata", "spec"}
_NO_COLON = re.compile(r"\s*[,}]")

# What libyaml calls a problem, what it means to the author, and the way out.
_PROBLEMS = (
    (
        "mapping values are not allowed",
        "a ':' where no key can be",
        "quote a value that holds ': ', or check the indentation of this line and the one above",
    ),
    (
        "could not find expected ':'",
        "a key without ': ' after it",
        "write key: value, with a space after the colon",
    ),
    (
        "did not find expected key",
        "the indentation fits no line above",
        "align it with its sibling keys, and close every quote and bracket above",
    ),
    (
        "did not find expected '-' indicator",
        "a line of a list does not start with '- '",
        "align it with the other items",
    ),
    (
        "block sequence entries are not allowed",
        "a '- ' where no list can start",
        "put the list on separate lines below the key",
    ),
    (
        "did not find expected ',' or",
        "a bracket or brace is not closed",
        "put commas between its items, and close it",
    ),
    (
        "did not find expected node content",
        "a value is missing, or a bracket or brace is not closed",
        "write the value, or close it",
    ),
    (
        "incompatible YAML document",
        "the %YAML directive asks for another version of YAML",
        "remove the line",
    ),
    (
        "unexpected end of stream",
        "a quote is opened and never closed",
        "close it on the same line",
    ),
    ("unexpected document indicator", "a quote is opened and never closed", "close it"),
    (
        "unknown escape character",
        "a backslash in double quotes starts no escape that YAML knows",
        "use single quotes, or write the backslash twice",
    ),
    (
        "cannot start any token",
        "{character} cannot start a value",
        "put the value in quotes",
    ),
    (
        "expected alphabetic or numeric character",
        "'*' and '&' start aliases and anchors",
        "put the value in quotes",
    ),
    ("undefined tag handle", "the tag has no meaning here", "leave it out"),
    (
        "did not find expected <document start>",
        "there is text after the end of a document",
        "start every document with '---' on a separate line",
    ),
)


def explain_syntax_error(
    error: yaml.MarkedYAMLError, text: str, place: Callable[[Any], Location]
) -> Finding:
    """Turn an error of libyaml into a finding at the place that the author must correct."""
    problem = str(error.problem)
    # For an open bracket or quote, libyaml reports where it gave up; the context is the start.
    opened = "expected ',' or" in problem or "quoted scalar" in str(error.context)
    mark: Any = error.context_mark if opened and error.context_mark else error.problem_mark
    character = text[mark.index : mark.index + 1]
    where = place(mark)
    # libyaml from 0.2.6 stops by itself at 1,000 levels, and it reads ahead inside brackets.
    if "maximum nesting depth" in problem:
        return explain_depth(where)
    if character == "\t":
        what, way_out = "a tab where YAML allows only spaces", "indent with spaces"
        return Finding("yaml-tab", what, way_out, where)
    indentation = text[text.rfind("\n", 0, mark.index) + 1 : mark.index]
    if "did not find expected key" in problem and indentation.strip():
        what, way_out = "there is text after the end of a value", "quote the entire value"
        return Finding("yaml-syntax", what, way_out, where)
    for said, what, way_out in _PROBLEMS:
        if said in problem:
            return Finding("yaml-syntax", what.format(character=quote(character)), way_out, where)
    return Finding("yaml-syntax", f"this is not YAML: {problem}", "", where)


def find_foreign(text: str, file: str) -> Finding | None:
    """Find what git has put in the place of a file."""
    if (replaced := find_replaced(text)) is None:
        return None
    return Finding("yaml-syntax", replaced.what, replaced.way_out, Location(file, replaced.line))


def find_template(text: str, file: str) -> Finding | None:
    """Find the first expression of a template, in a file that is no YAML."""
    for number, line in enumerate(text.split("\n"), start=1):
        if found := find_expression(line):
            where = Location(file, number, found.start() + 1)
            return Finding("yaml-syntax", f"{quote(found[0])} is not YAML", RENDER, where)
    return None


def explain_depth(where: Location) -> Finding:
    """Refuse values that are nested deeper than DEPTH."""
    what = f"values are nested deeper than {DEPTH} levels"
    return Finding("yaml-depth", what, "split the brackets or maps", where)


def explain_repeated(table: YamlMap, repeated: Sequence[Repeated], *, top: bool) -> list[Finding]:
    """Explain the repeated keys of a map: they are errors, or the start of another document.

    `top`: the map is an entire document, so the '---' before the next document may be missing.
    """
    start = _find_start(table, repeated) if top else None
    first = {str(key): key.line for key, _ in table.entries()}
    findings: list[Finding] = []
    for key, _, where in repeated:
        if key == start:
            what = "another topic starts here without '---' above it"
            way_out = f"write --- on a separate line above {show(key)}"
            findings.append(Finding("document-start", what, way_out, where))
        elif not findings or findings[-1].rule != "document-start":
            what = f"the key {quote(key)} appears here for the second time"
            way_out = f"keep one of the two; the first is in line {first[key]}"
            findings.append(Finding("yaml-duplicate-key", what, way_out, where))
    return findings


def _find_start(table: YamlMap, repeated: Sequence[Repeated]) -> str | None:
    """Return the repeated key that starts another document, if any does."""
    if any(key == "topic" and value != table[key] for key, value, _ in repeated):
        return "topic"
    resource = [str(key) for key, _, _ in repeated if key in _RESOURCE_KEYS]
    return resource[0] if len(set(resource)) > 1 else None


def find_cut(table: YamlMap, text: str, end: int, value: YamlValue) -> tuple[str, str] | None:
    """Return the error and the way out if a comma in braces cut a value: {a: b,c} has a key c.

    In: the keys before it, the end of the key in `text`, and its value. The message shows neither
    the key nor the cut value, because both may be parts of a secret.
    """
    before = next(reversed(table), "")
    cut = table.get(before)
    plain = isinstance(cut, YamlText) and not cut.quoted and cut.tag != "null"
    missing = isinstance(value, YamlText) and value.is_missing
    if not plain or not missing or not _NO_COLON.match(text, end):
        return None
    what = f"in braces, a comma ends the value of {quote(before)}: what follows has no value"
    return what, "put the entire value in quotes, or write a key and its value after the comma"
