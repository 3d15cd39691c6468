"""The parts of a table on the page: columns, cells, and the table itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconciler.fleet.page.contents import Kept


@dataclass(frozen=True, slots=True)
class ListingColumn:
    """A column: its key in addresses, its title and looks. `above` is a picture in its head.

    A column of `choices` has few values, by which its table can be filtered.
    """

    key: str
    title: str
    numeric: bool = False
    above: str = ""
    style: str = ""
    choices: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, which is escaped; a picture, which is markup; a link; and a number to sort by."""

    text: str = ""
    picture: str = ""
    link: str = ""
    sort_by: float | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A table. `note` says what is left out; `empty` replaces the rows if there are none."""

    name: str
    title: str
    columns: tuple[ListingColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    empty: str = "Nothing to show."


def number_column(key: str, title: str) -> ListingColumn:
    """Return a column of numbers."""
    return ListingColumn(key, title, numeric=True)


def amount_cell(number: int | None) -> Cell:
    """Return a cell of a number, or of a dash if it is unknown."""
    return Cell("–" if number is None else f"{number:,}")


def unknown_or(number: float | None, say: Callable[[float], str]) -> Cell:
    """Return a cell of a number in words, or of a dash if it is unknown."""
    return Cell("–") if number is None else Cell(say(number), sort_by=number)


def say_left_out(kept: Kept[object], noun: str, first: str) -> str:
    """Say how many rows are left out, if any."""
    if not kept.left_out:
        return ""
    return f"{len(kept.rows):,} of {count(kept.total, noun)}, {first}; {kept.left_out:,} left out."
