"""YAML values with their locations: text, maps and lists.

Scalars stay text here. The reader of each field converts them, and can quote the file in messages.
`tag` holds the type that YAML gives a scalar (`int`, `bool`, `null`, …; `str` if the text is quoted
or a block).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from reconciler.errors import Location, escape_unprintable

SHOWN_CHARACTERS = 60

RENDER = (
    "this is a template of a tool such as Helm or Jinja: render it, for example with helm "
    "template, and put the result into the estate"
)
"""The way out of a file that is a template."""

# It may end on another line.
_EXPRESSION = re.compile(r"(?<!\{)\{\{(?!\{).*?(?:\}\}|$)|\{%.*?(?:%\}|$)|\{#.*?(?:#\}|$)")


class YamlText(str):
    """A scalar with the text and the location that it has in the file."""

    __slots__ = ("column", "file", "line", "quoted", "tag")

    file: str
    line: int
    column: int
    tag: str
    quoted: bool

    @property
    def where(self) -> Location:
        """The start of the text."""
        return Location(self.file, self.line, self.column)

    @property
    def is_null(self) -> bool:
        """Whether it is `null` or `~`."""
        return self.tag == "null" and self != ""

    @property
    def is_missing(self) -> bool:
        """Whether nothing follows the key."""
        return self.tag == "null" and self == ""


class YamlMap(dict[str, Any]):
    """A YAML map: every key is a YamlText, every value a YamlText, YamlMap or YamlList."""

    __slots__ = ("column", "file", "line")

    file: str
    line: int
    column: int

    @property
    def where(self) -> Location:
        """The start of the map: its first key, or its brace."""
        return Location(self.file, self.line, self.column)

    def key(self, name: str) -> YamlText:
        """Return the key `name` with its location. Errors: KeyError."""
        for key, _ in self.entries():
            if key == name:
                return key
        raise KeyError(name)

    def places(self) -> dict[str, Location]:
        """Return where each key is written."""
        return {str(key): key.where for key, _ in self.entries()}

    def entries(self) -> Iterator[tuple[YamlText, YamlValue]]:
        """Yield keys and values in the order of the file."""
        return iter(self.items())  # type: ignore[arg-type]


class YamlList(list[Any]):
    """A YAML list."""

    __slots__ = ("column", "file", "line")

    file: str
    line: int
    column: int

    @property
    def where(self) -> Location:
        """The start of the list: its first dash, or its bracket."""
        return Location(self.file, self.line, self.column)


YamlValue = YamlText | YamlMap | YamlList


def quote(text: str) -> str:
    """Format text for a message: one line, no control characters, limited length."""
    return f"'{show(text)}'"


def show(text: str) -> str:
    """Format text like `quote`, without quotes, for text that people are to write."""
    if len(text) > SHOWN_CHARACTERS:
        text = text[: SHOWN_CHARACTERS - 1] + "…"
    return escape_unprintable(text)


def find_expression(line: str) -> re.Match[str] | None:
    """Find the first expression of a template, as of Helm or Jinja, that is not in a comment."""
    found = _EXPRESSION.search(line)
    return found if found and "#" not in line[: found.start()] else None


def describe_yaml(value: YamlValue) -> str:
    """Name a value in a message: its text, or its form if that is long."""
    if isinstance(value, YamlMap):
        return "a map"
    if isinstance(value, YamlList):
        return "a list"
    if value.is_missing:
        return "nothing"
    return quote(value) if value.quoted or value.tag == "str" else str(value)[:SHOWN_CHARACTERS]
