"""YAML values that know where they were written: text, maps and lists, each with its place.

Scalars stay text here, whatever YAML takes them for: the reader of a field decides, and can quote
what stands in the file. `tag` keeps YAML's own opinion (`int`, `bool`, `null`, …; `str` where the
text is quoted or a block).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconciler.errors import Location, escape_unprintable

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWN_CHARACTERS = 60


class Text(str):
    """A scalar as it stands in the file, and its place."""

    __slots__ = ("column", "file", "line", "quoted", "tag")

    file: str
    line: int
    column: int
    tag: str
    quoted: bool

    @property
    def where(self) -> Location:
        """Where the text starts."""
        return Location(self.file, self.line, self.column)

    @property
    def is_null(self) -> bool:
        """Whether `null` or `~` stands there."""
        return self.tag == "null" and self != ""

    @property
    def is_missing(self) -> bool:
        """Whether nothing stands behind the key."""
        return self.tag == "null" and self == ""


class Table(dict[str, Any]):
    """A YAML map: every key is a Text, every value a Text, Table or Sequence."""

    __slots__ = ("column", "file", "line")

    file: str
    line: int
    column: int

    @property
    def where(self) -> Location:
        """Where the map starts: its first key, or its brace."""
        return Location(self.file, self.line, self.column)

    def key(self, name: str) -> Text:
        """Return the key `name` as it was written. Errors: KeyError."""
        for key, _ in self.entries():
            if key == name:
                return key
        raise KeyError(name)

    def places(self) -> dict[str, Location]:
        """Tell where each key is written."""
        return {str(key): key.where for key, _ in self.entries()}

    def entries(self) -> Iterator[tuple[Text, Value]]:
        """Yield keys and values in the order of the file."""
        return iter(self.items())  # type: ignore[arg-type]


class Sequence(list[Any]):
    """A YAML list."""

    __slots__ = ("column", "file", "line")

    file: str
    line: int
    column: int

    @property
    def where(self) -> Location:
        """Where the list starts: its first dash, or its bracket."""
        return Location(self.file, self.line, self.column)


Value = Text | Table | Sequence


def quote(text: str) -> str:
    """Show text in a message: one line, nothing a terminal would act on, and not too long."""
    return f"'{show(text)}'"


def show(text: str) -> str:
    """Show text like `quote`, without the quotes: for what a message tells people to write."""
    if len(text) > SHOWN_CHARACTERS:
        text = text[: SHOWN_CHARACTERS - 1] + "…"
    return escape_unprintable(text)


def describe(value: Value) -> str:
    """Name a value in a message: what stands there, or its form where that is long."""
    if isinstance(value, Table):
        return "a map"
    if isinstance(value, Sequence):
        return "a list"
    if value.is_missing:
        return "nothing"
    return quote(value) if value.quoted or value.tag == "str" else str(value)[:SHOWN_CHARACTERS]
