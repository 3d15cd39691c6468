"""What a table of the page is: a query, columns, and sentences; and how its rows are found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.fleet.page.contents import FleetPage, Kept, Row, cut
from reconciler.units import approximate_size

Key = tuple[str, str]
Ask = Callable[[str, Sequence[Key] | None], Sequence[Row]]
"""Runs SQL over the tables that it names, or over their rows of some topics only."""

MOST_ROWS = 500


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, which is escaped; a picture, which is markup; and a number to sort by."""

    text: str = ""
    picture: str = ""
    sort_by: float | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its key in addresses, its title, and what it shows of a row.

    A column of `choices` has few values, by which its table can be filtered. A column that `links`
    has names of clusters, and leads to their brokers. `above` is a picture in its head.
    """

    key: str
    title: str
    show: Callable[[Row], Cell]
    style: str = ""
    numeric: bool = False
    choices: bool = False
    links: bool = False
    above: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the page.

    Its rows come from a `query` or, with `pick`, from what the page already has. A query is SQL
    that Spark and DuckDB understand. It names tables of the lake as {topics}, and returns all rows
    in order; the first of them are shown. `lookups` are queries with at most one row per cluster
    and topic: their columns are added to the rows that are shown, so they read these topics only.
    Where a table is missing, because there is no plan, audit or history, a query has no rows.
    `arrange` makes the rows of all rows of the query.

    `note` is shown if rows are left out, and `empty` if there are no rows.
    """

    name: str
    title: str
    columns: tuple[Column, ...] | Callable[[FleetPage], tuple[Column, ...]]
    query: str = ""
    lookups: tuple[str, ...] = ()
    arrange: Callable[[Sequence[Row]], Sequence[Row]] | None = None
    pick: Callable[[FleetPage], Kept[Row]] | None = None
    most: int = MOST_ROWS
    intro: str = ""
    note: str = ""
    empty: str = "Nothing to show."


@dataclass(frozen=True, slots=True)
class Listing:
    """A table with its cells, ready to be written."""

    table: Table
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str


def fill_table(table: Table, page: FleetPage) -> Listing:
    """Return the cells of a table on a page."""
    kept = table.pick(page) if table.pick else page.tables.get(table.name, Kept())
    columns = table.columns if isinstance(table.columns, tuple) else table.columns(page)
    rows = tuple(tuple(column.show(row) for column in columns) for row in kept.rows)
    counts = {"shown": len(rows), "total": kept.total, "left": kept.left_out}
    said = {name: f"{number:,}" for name, number in counts.items()}
    return Listing(table, columns, rows, table.note.format(**said) if kept.left_out else "")


def find_rows(table: Table, ask: Ask) -> Kept[Row]:
    """Return the first rows of a table by its query, and the number of all."""
    if table.arrange is not None:
        arranged = table.arrange(ask(table.query, None))
        return Kept(tuple(arranged[: table.most]), len(arranged))
    rows = ask(f"{table.query} LIMIT {table.most}", None)
    total = len(rows)
    if total == table.most:
        (counted,) = ask(f"SELECT count(*) AS total FROM ({table.query})", None)
        total = counted["total"]
    if rows and table.lookups:
        keys = [_key(row) for row in rows]
        for lookup in table.lookups:
            found = {_key(row): row for row in ask(lookup, keys)}
            rows = [{**row, **found.get(_key(row), {})} for row in rows]
    return Kept(tuple(rows), total)


def _key(row: Row) -> Key:
    return row["cluster"], row["topic"]


def words(
    key: str, title: str, say: Callable[[Row], str], style: str = "", *, choices: bool = False
) -> Column:
    """Return a column of what is said of a row."""
    return Column(key, title, lambda row: Cell(say(row)), style, choices=choices)


def text(
    key: str, title: str, style: str = "", *, of: str = "", missing: str = "", choices: bool = False
) -> Column:
    """Return a column of texts. `of` is their name in a row if it is not the key."""
    say = lambda row: cut(row.get(of or key) or missing)  # noqa: E731
    return words(key, title, say, style, choices=choices)


def number(key: str, title: str, *, of: str = "") -> Column:
    """Return a column of numbers, with a dash where they are unknown."""
    return Column(key, title, lambda row: Cell(say_number(row.get(of or key))), numeric=True)


def amount(
    key: str, title: str, say: Callable[[Any], str] = approximate_size, *, of: str
) -> Column:
    """Return a column of numbers in words, such as 5.0 GiB, that is sorted by the numbers."""

    def show(row: Row) -> Cell:
        value = row.get(of)
        return Cell("–") if value is None else Cell(say(value), sort_by=value)

    return Column(key, title, show, numeric=True)


def say_number(value: int | None) -> str:
    """Format a number, or a dash if it is unknown."""
    return "–" if value is None else f"{value:,}"
