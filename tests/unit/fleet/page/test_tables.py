"""Every table of the page with a query: DuckDB runs it over a lake of a few rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from string import Formatter
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from reconciler.fleet import tables
from reconciler.fleet.page.contents import FleetPage, FleetTotals, Kept
from reconciler.fleet.page.table import Table, fill_table, find_rows
from reconciler.fleet.page.tables import TABLES
from reconciler.fleet.rows import make_table

ASKED = [table for table in TABLES if table.query]
KEYS = "cluster topic"
PLAN = (
    "cluster topic action steps partitions_before partitions_after risks refusals reasons file line"
)
LAKE: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "unhealthy": (
        f"{KEYS} offline unwritable under_replicated lagging",
        [("a", "t", 0, 1, 2, [3]), ("a", "u", 0, 0, 3, []), ("b", "t", 1, 0, 1, [*range(9)])],
    ),
    "uneven_topics": (
        f"{KEYS} partitions leader_skew replica_skew",
        [("a", "t", 4, 2, 9), ("a", "u", 1_234, 2, 2), ("b", "t", 6, 3, 0)],
    ),
    "specs": (f"{KEYS} owner", [("a", "t", "shop"), ("a", "u", None), ("b", "x", "other")]),
    "topics": (
        f"{KEYS} partitions internal",
        [("a", "t", 2, False), ("a", "u", 3, False), ("b", "t", 3, False), ("a", "__o", 50, True)],
    ),
    "partitions": (
        f"{KEYS} replicas size_bytes",
        [("a", "t", [1, 2], 1024), ("a", "t", [1, 2, 3], None), ("a", "u", [1], None)],
    ),
    "configs": (
        f"{KEYS} config value",
        [("a", "t", "retention.ms", "1000"), ("a", "t", "a", "x=y"), ("b", "t", "empty", None)],
    ),
    "events": (
        f"{KEYS} event first_seen",
        [
            ("a", "t", "topic-made", "20261119T030000Z"),
            ("a", "t", "config-changed", "20261120T030000Z"),
            ("a", "t", "topic-grown", "20261120T030000Z"),
            ("a", None, "broker-added", "20261121T030000Z"),
        ],
    ),
    "trend": (
        "cluster seen topics partitions size_bytes offline unwritable under_replicated"
        " brokers_down",
        [
            ("a", "20261120T030000Z", 1, 2, None, None, None, None, None),
            ("a", "20261121T030000Z", 1_000, 2, 1024, 0, 1, 2, 0),
            ("b", "20261121T030000Z", 234, 3, None, 5, 0, 5, 1),
        ],
    ),
    "changes": (
        PLAN,
        [
            ("a", "t", "update", ["expand"], 2, 4, ["ordering"], [], [], "x.yaml", 3),
            ("b", "t", "update", ["expand"], 1, 2, ["ordering", "load"], [], [], None, None),
            ("b", "u", "delete", ["delete"], 1, None, ["none"], [], [], "y.yaml", 1),
            ("b", "v", "refuse", [], 3, 2, [], ["rule-a"], ["it shrinks"], "y.yaml", 2),
        ],
    ),
    "move_plans": (
        "cluster status error changed refused refusals partitions replicas copied_bytes seconds"
        " peak_share drained cordons",
        [
            ("idle", "planned", None, 0, 0, [], 0, 0, 0, 0, None, [], 0),
            ("a", "planned", None, 1, 0, [], 2, 3, 2048, 60, 0.5, [4, 5], 0),
            ("b", "planned", None, 1, 2, ["too many"], 5, 6, 4096, None, None, [], 1),
            ("down", "unreachable", "no answer", *[None] * 10),
        ],
    ),
    "findings": (
        "cluster topic subject rule severity evidence what way_out owner cause rank fixed_by"
        " file line",
        [
            (
                "a",
                "t",
                "t",
                "lags",
                "error",
                [("in_sync", "1")],
                "it lags",
                "look",
                "o",
                "c",
                2,
                None,
                None,
                None,
            ),
            (
                *("b", None, "7", "down", "error", [], "it is down", "start it", None, "d", 1),
                *(None, None, None),
            ),
            (
                *("a", "t", "retention.ms", "differs", "note"),
                [
                    ("key", "retention.ms"),
                    ("value", "604800000"),
                    ("usual", "1000"),
                    ("of", "1000"),
                ],
                *("604800000, not 1000", "write it", None, "e", 3, "plan", None, None),
            ),
            (
                *("b", "t", "t", "lags", "error", [], "it lags", "look", None, "c", 2, None),
                *(None, None),
            ),
            (
                *("b", "t", "t", "topic-idle", "warning"),
                [("idle_after", "90d"), ("last_written", "2026-01-01 00:00 UTC"), ("read_by", "")],
                *("it is idle", "delete it", "shop", "t", 4, None, "x.yaml", 7),
            ),
            (
                *("a", "old", "old", "topic-expired", "warning"),
                [("expires", "2026-11-20"), ("last_written", ""), ("read_by", "g, h")],
                *("it expired", "delete it", None, "old", 5, None, "y.yaml", 9),
            ),
        ],
    ),
    "balance": (
        "cluster kind next_leaders_most next_leaders_bound rack_next_leaders_most"
        " rack_next_leaders_bound",
        [
            ("even", "cluster", 5, 5, 8, 8),
            ("far", "cluster", 5, 5, 9, 3),
            ("near", "cluster", 6, 5, None, None),
            ("near", "rack", None, None, None, None),
            ("old", "cluster", None, None, None, None),
        ],
    ),
}
SHOWN = {
    "problems": """
        offline                   | b | t | –    | 1 | 3 | 0, 1, 2, 3, 4, 5, 6, 7, and 1 more
        below min.insync.replicas | a | t | shop | 1 | 2 | 3
        under-replicated          | a | u | –    | 3 | 3 | –
        under-replicated          | a | t | shop | 2 | 2 | 3
        under-replicated          | b | t | –    | 1 | 3 | 0, 1, 2, 3, 4, 5, 6, 7, and 1 more
    """,
    "topics": """
        t | b | –    | 6     | 3 | 0 | update
        t | a | shop | 4     | 2 | 9 | update
        u | a | –    | 1,234 | 2 | 2 | –
    """,
    "changes": """
        v | b | –    | refuse | 3 → 2 partitions |                | it shrinks [rule-a] | y.yaml:2
        u | b | –    | delete | delete           |                |                     | y.yaml:1
        t | b | –    | update | 1 → 2 partitions | ordering, load |                     |
        t | a | shop | update | 2 → 4 partitions | ordering       |                     | x.yaml:3
    """,
    "moves": """
        down | 0 | 0 | 0 | 0 B     | –     | –   | –    | 0 | no answer [unreachable]
        b    | 1 | 5 | 6 | 4.0 KiB | –     | –   | –    | 2 | too many
        a    | 1 | 2 | 3 | 2.0 KiB | 60 s  | 50% | 4, 5 | 0 |
    """,
    "inventory": """
        u | a | –    | | 3 | 1   | –       |                         |  | – | –
        t | b | –    | | 3 | 0   | –       | empty | 1 → 2 partitions | – | –
        t | a | shop | | 2 | 2–3 | 1.0 KiB | a x=y, retention.ms 1s | 2 → 4 partitions \
| 2026-11-20 03:00 UTC | topic-grown
    """,
    "trend": """
        2026-11-21 03:00 UTC | 2 | 5 | 1 | 7 | 1 | 1,234 | 5 | 1.0 KiB
        2026-11-20 03:00 UTC | 1 | – | – | – | – | 1     | 2 | –
    """,
    "causes": """
        1 | d | 1 | 1
        2 | c | 2 | 2
        3 | e | 1 | 1
        4 | t | 1 | 1
        5 | old | 1 | 1
    """,
    "rules": """
        error   | lags          | 2 | 2
        error   | down          | 1 | 1
        warning | topic-expired | 1 | 1
        warning | topic-idle    | 1 | 1
        note    | differs       | 1 | 1
    """,
    "matrix": """
        b | 3 | 1 | 1 |   | 1 |
        a | 3 | 1 |   | 1 |   | 1
    """,
    "findings": """
        1 | error | b | 7 | –  | down | it is down | | start it | d | –
        2 | error | a | t | o  | lags | it lags | in_sync 1 | look | c | –
        2 | error | b | t | –  | lags | it lags | | look | c | –
        3 | note  | a | t | –  | differs | 7d, not 1s | key retention.ms, of 1000, usual 1s, \
value 7d | write it | e | plan
        4 | warning | b | t   | shop | topic-idle | it is idle | idle_after 90d, last_written \
2026-01-01 00:00 UTC, read_by | delete it | t | –
        5 | warning | a | old | –    | topic-expired | it expired | expires 2026-11-20, \
last_written , read_by g, h | delete it | old | –
    """,
    "due": """
        a | old | –    | topic-expired | 2026-11-20 | unknown              | g, h | y.yaml:9
        b | t   | shop | topic-idle    | 90d        | 2026-01-01 00:00 UTC | –    | x.yaml:7
    """,
    "next-leaders": """
        far  | 5 | 5 | 9 | 3
        near | 6 | 5 | – | –
        even | 5 | 5 | 8 | 8
    """,
}
"""The texts of the cells of each table, row by row."""


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO array_size(list) AS len(list)")
        for name, (columns, rows) in LAKE.items():
            made = dict(zip(columns.split(), map(list, zip(*rows, strict=True)), strict=True))
            declared = tables.TABLES.get(name)
            connection.register(name, make_table(declared, made) if declared else pa.table(made))
        yield connection


def open_tables(db: duckdb.DuckDBPyConnection) -> Callable[..., list[dict[str, Any]]]:
    """Return what asks the tables, or their rows of some topics, as the page asks Spark."""

    def ask(query: str, topics: Sequence[tuple[str, str]] | None) -> list[dict[str, Any]]:
        names = {name for _, name, _, _ in Formatter().parse(query) if name}
        if topics is not None:
            keys = ", ".join(str(key) for key in topics)
            only = f"SELECT * FROM {{}} WHERE (cluster, topic) IN ({keys})"
            views = {name: f"({only.format(name)}) AS rows_of_{name}" for name in names}
            query = query.format(**views)
        found = db.execute(query.format(**{name: name for name in names}))
        columns = [column[0] for column in found.description]
        return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]

    return ask


@pytest.fixture(scope="module")
def page(db: duckdb.DuckDBPyConnection) -> FleetPage:
    found = {table.name: find_rows(table, open_tables(db)) for table in ASKED}
    none = FleetTotals(0, 0, 0, 0, 0, 0)
    return FleetPage("20261121T030000Z", "now", None, none, Kept(), tables=found)


def list_texts(table: Table, page: FleetPage) -> list[list[str]]:
    return [[cell.text.strip() for cell in row] for row in fill_table(table, page).rows]


def test_every_query_has_rows_here() -> None:
    assert {table.name for table in ASKED} == SHOWN.keys()


@pytest.mark.parametrize("table", ASKED, ids=lambda table: table.name)
def test_what_a_table_shows_of_the_lake(page: FleetPage, table: Table) -> None:
    lines = SHOWN[table.name].strip().splitlines()
    assert list_texts(table, page) == [[part.strip() for part in line.split("|")] for line in lines]


@pytest.mark.parametrize("table", ASKED, ids=lambda table: table.name)
def test_a_table_shows_the_first_rows_and_counts_all(
    db: duckdb.DuckDBPyConnection, page: FleetPage, table: Table
) -> None:
    every = page.tables[table.name]
    first = find_rows(replace(table, most=1), open_tables(db))
    assert (first.rows, first.total) == (every.rows[:1], len(every.rows))
    assert every.total == len(every.rows)
    listing = fill_table(table, replace(page, tables={**page.tables, table.name: first}))
    assert bool(listing.note) == bool(table.note and first.left_out)


@pytest.mark.parametrize("table", ASKED, ids=lambda table: table.name)
def test_a_lake_without_a_table_shows_no_rows(table: Table) -> None:
    assert find_rows(table, lambda _, __: []) == Kept()


def test_keys_of_columns_and_names_of_tables_are_unique(page: FleetPage) -> None:
    """Both are in the address of a page that was sorted or filtered."""
    names = [table.name for table in TABLES]
    assert len(set(names)) == len(names)
    for table in TABLES:
        keys = [column.key for column in fill_table(table, page).columns]
        assert len(set(keys)) == len(keys)
