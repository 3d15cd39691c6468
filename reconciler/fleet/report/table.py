"""What a table of the page is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """What a column is called in addresses and on the page. `above` is a picture in its head."""

    key: str
    title: str
    numeric: bool = False
    above: str = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, whatever is in it; a picture, which is markup; where it leads; what it sorts by."""

    text: str = ""
    picture: str = ""
    link: str = ""
    sort_by: int | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A table. `note` says what was left out; `empty` what it means that there is no row."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    empty: str = "Nothing to show."
