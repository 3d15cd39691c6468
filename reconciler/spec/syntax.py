"""What libyaml says of broken YAML, in words that name the usual cause and the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconciler.errors import Finding, Location
from reconciler.spec.values import quote

if TYPE_CHECKING:
    from collections.abc import Callable

    import yaml

# What libyaml calls a problem, what it means to the author, and the way out.
_PROBLEMS = (
    (
        "mapping values are not allowed",
        "a ':' stands where no key can be",
        "quote a value that holds ': ', or check the indentation of this line and the one above",
    ),
    (
        "could not find expected ':'",
        "a key without ': ' behind it",
        "write key: value, with a blank after the colon",
    ),
    (
        "did not find expected key",
        "the indentation fits no line above",
        "line it up with the keys it belongs to, and close every quote and bracket above",
    ),
    (
        "did not find expected '-' indicator",
        "a line of a list does not start with '- '",
        "line it up with the other items",
    ),
    (
        "block sequence entries are not allowed",
        "a '- ' stands where no list can start",
        "put the list on lines of its own below the key",
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
        "take the line out",
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
        "text stands behind the end of a document",
        "start every document with '---' on a line of its own",
    ),
)


def explain_syntax_error(
    error: yaml.MarkedYAMLError, text: str, place: Callable[[Any], Location]
) -> Finding:
    """Turn an error of libyaml into a finding at the place where the author has to look."""
    problem = str(error.problem)
    opened = "expected ',' or" in problem or "quoted scalar" in str(error.context)
    mark: Any = error.context_mark if opened and error.context_mark else error.problem_mark
    character = text[mark.index : mark.index + 1]
    where = place(mark)
    if character == "\t":
        what, way_out = "a tab stands where YAML takes only blanks", "indent with blanks"
        return Finding("yaml-tab", what, way_out, where)
    if "did not find expected key" in problem and not _starts_line(text, mark.index):
        what, way_out = "text stands behind a value that has ended", "quote the whole value"
        return Finding("yaml-syntax", what, way_out, where)
    for said, what, way_out in _PROBLEMS:
        if said in problem:
            return Finding("yaml-syntax", what.format(character=quote(character)), way_out, where)
    return Finding("yaml-syntax", f"this is not YAML: {problem}", "", where)


def _starts_line(text: str, index: int) -> bool:
    """Tell whether only blanks stand before a place in its line."""
    return not text[text.rfind("\n", 0, index) + 1 : index].strip()
