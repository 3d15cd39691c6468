"""Lines that are wider than the terminal: broken between words, under their column."""

from __future__ import annotations

import click
import pytest

from reconciler.styling import fold_line

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
        ("placement: optimal (proven)", 20, ["placement: optimal", "  (proven)"]),
        ("no-blank-to-break-at here", 10, ["no-blank-to-break-at", "  here"]),
        ("", 10, [""]),
    ],
)
def test_a_line_is_broken_at_blanks(line: str, width: int, folded: list[str]) -> None:
    assert fold_line(line, width).split("\n") == folded


def test_colours_take_no_room_and_are_kept() -> None:
    line = f"{click.style('one', fg='green')} two {click.style('three', dim=True)}"
    assert fold_line(line, 13) == line
    first, second = fold_line(line, 12).split("\n")
    assert click.unstyle(first) == "one two"
    assert second == "  " + click.style("three", dim=True)
