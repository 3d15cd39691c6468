"""Columns of any cells, lines that are wider than the terminal, and the one place of colours."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from sources import parse_modules

from reconciler.styling import Paint, fold_line, set_columns, strip_colours

PAINT = Paint(wanted=True)

TITLE = (
    "+ create    orders.by-customer               12 partitions × 3 replicas     topics/o.yaml:12"
)
DETAIL = "            placement                        leaders 2, replicas 6 per broker, racks even"
COLUMN = " " * 45


@pytest.mark.parametrize(
    ("line", "width", "folded"),
    [
        ("short", 5, ["short"]),
        (TITLE, len(TITLE), [TITLE]),
        (TITLE, 80, [TITLE[:71], COLUMN + "topics/o.yaml:12"]),
        (DETAIL, 80, [DETAIL[:78], COLUMN + "racks even"]),
        (
            "            Put 8 back, or create",
            24,
            ["            Put 8 back,", " " * 12 + "or create"],
        ),
        ("placement: as even as possible", 20, ["placement: as even", "  as possible"]),
        ("no-blank-to-break-at here", 10, ["no-blank-to-break-at", "  here"]),
        ("", 10, [""]),
    ],
)
def test_a_line_is_broken_at_blanks(line: str, width: int, folded: list[str]) -> None:
    assert fold_line(line, width).split("\n") == folded


def test_colours_take_no_room_and_are_kept() -> None:
    line = f"{PAINT('green', 'one')} two {PAINT('dim', 'three')}"
    assert fold_line(line, 13) == line
    first, second = fold_line(line, 12).split("\n")
    assert strip_colours(first) == "one two"
    assert second == "  " + PAINT("dim", "three")


ROWS = [("broker", "leaders", "state"), ("1", "1,200", "running"), ("12", "7", "")]


def test_each_column_is_as_wide_as_its_widest_cell() -> None:
    assert set_columns(ROWS) == [
        "broker  leaders  state",
        "1       1,200    running",
        "12      7",
    ]


def test_columns_have_sides_a_separator_and_least_widths() -> None:
    assert set_columns(ROWS, "<>^", between="|", least=(8, 0, 9)) == [
        "broker  |leaders|  state",
        "1       |  1,200| running",
        "12      |      7|",
    ]


def test_the_last_side_is_for_all_further_columns() -> None:
    assert set_columns([("a", "bb", "cc"), ("aa", "b", "c")], "<>") == ["a   bb  cc", "aa   b   c"]


def test_colours_take_no_room_in_columns() -> None:
    painted = [tuple(PAINT("red", cell) if cell < "8" else cell for cell in row) for row in ROWS]
    assert painted != ROWS
    for sides in ("<", ">", "^"):
        lines = set_columns(painted, sides)
        assert [strip_colours(line) for line in lines] == set_columns(ROWS, sides)
    assert set_columns(painted)[2] == f"{PAINT('red', '12')}      {PAINT('red', '7')}"


def test_no_rows_are_no_lines() -> None:
    assert set_columns([], least=(3,)) == []


def find_colours(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that write an escape character, or use the colours of click."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if "\x1b" in text:
                yield node.lineno
            case ast.Constant(value=bytes(text)) if b"\x1b" in text:
                yield node.lineno
            case ast.Attribute(value=ast.Name(id="click"), attr="style" | "secho" | "unstyle"):
                yield node.lineno
            case ast.ImportFrom(module="click" | "click.termui"):
                yield node.lineno


def test_only_styling_writes_colours() -> None:
    # An escape character is spelt with a backslash, or is itself in the text.
    modules = parse_modules(r"\\|\x1b|\bclick\b")
    found = {path: list(find_colours(module)) for path, module in modules.items()}
    assert {name for name, lines in found.items() if lines} == {"styling.py"}


@pytest.mark.parametrize(
    "line",
    [
        r'print("\x1b[31mred")',
        r'print(f"\033[{code}m")',
        r'stream.write(b"\x1b[K")',
        'click.echo(click.style("red", fg="red"))',
        'click.secho("red", fg="red")',
        "from click import secho",
    ],
)
def test_a_colour_elsewhere_is_found(line: str) -> None:
    assert list(find_colours(ast.parse(line))) == [1]
