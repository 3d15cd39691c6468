"""Colour, columns and width of text: the one place that writes ANSI codes and aligns cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, repeat, zip_longest

ERASE_LINE = "\r\x1b[K"
SHOW_CURSOR = "\x1b[?25h"
ERASE_BELOW = "\x1b[J"

_CODES = {"green": 32, "yellow": 33, "red": 31, "cyan": 36, "bold": 1, "dim": 2}
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_LINK = "\x1b]8;;{}\x1b\\"


@dataclass(frozen=True, slots=True)
class Paint:
    """ANSI colours, or nothing: the text is complete without them."""

    wanted: bool

    def __call__(self, colour: str, text: str) -> str:
        """Paint `text`, one of green, yellow, red, cyan, bold, dim."""
        return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if self.wanted and text else text


def link(text: str, address: str) -> str:
    """Make a text a link (OSC 8), for a terminal that shows links. It is as wide as before."""
    return f"{_LINK.format(address)}{text}{_LINK.format('')}"


def move_up(lines: int) -> str:
    """Return the code that moves the cursor up some lines, to the start of the line."""
    return f"\x1b[{lines}F" if lines else "\r"


def strip_colours(text: str) -> str:
    """Return a text without its ANSI codes, as wide as a terminal shows it."""
    return _ANSI.sub("", text)


def set_columns(
    rows: Iterable[Sequence[str]],
    sides: str = "<",
    *,
    between: str = "  ",
    least: Sequence[int] = (),
) -> list[str]:
    """Set rows in columns, each as wide as its widest cell and its number in `least`.

    Cells may be painted. `sides` aligns each column as a format does, with <, > or ^; its last one
    is for all further columns. Returns a line for each row, without blanks at its end.
    """
    rows = list(rows)
    widths = [max(pair) for pair in zip_longest(measure_columns(rows), least, fillvalue=0)]
    return [set_row(row, widths, sides, between).rstrip() for row in rows]


def set_groups(
    heads: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]], *, between: str = "   "
) -> list[str]:
    """Lay out a table of two head lines; a group's title spans its columns."""
    lines = [[name for _, name in heads], *rows]
    groups: list[list[str]] = []
    for title, members in groupby(range(len(heads)), key=lambda number: heads[number][0]):
        columns = list(members)
        cells = [[line[number] for number in columns] for line in lines]
        side, widths = ">" if groups else "<", measure_columns(cells)
        groups.append([title, *(set_row(row, widths, side) for row in cells)])
    return set_columns(zip(*groups, strict=True), "<>", between=between)


def set_row(
    cells: Iterable[str], widths: Iterable[int], sides: str = "<", between: str = "  "
) -> str:
    """Set one row in columns of given widths, with blanks up to the last one's end."""
    return between.join(map(pad, cells, widths, chain(sides, repeat(sides[-1]))))


def measure_columns(rows: Iterable[Sequence[str]]) -> list[int]:
    """Return the width of each column of rows: that of its widest cell."""
    return [max(map(measure, column)) for column in zip(*rows, strict=True)]


def pad(text: str, width: int, side: str = "<") -> str:
    """Fill a text, which may be painted, with blanks up to `width`."""
    blanks = max(width - measure(text), 0)
    left = {"<": 0, "^": blanks // 2, ">": blanks}[side]
    return f"{' ' * left}{text}{' ' * (blanks - left)}"


def measure(text: str) -> int:
    """Return the width of a text on a terminal: its colours take no room."""
    return len(strip_colours(text))


def fold_lines(text: str, width: int | None) -> str:
    """Break the lines that are wider than `width` at blanks; None leaves them as they are."""
    if width is None:
        return text
    return "\n".join(fold_line(line, width) for line in text.split("\n"))


def fold_line(line: str, width: int) -> str:
    """Break a line at blanks, never in a word. What follows is indented.

    It begins under the last column of the left part of the line, so that columns stay columns.
    """
    plain = strip_colours(line)
    if len(plain) <= width:
        return line
    starts = [match.end() for match in re.finditer(r"  +(?=\S)", plain)]
    hang = max((start for start in starts if start <= width * 3 // 5), default=2)
    folded, used = "", 0
    for blanks, word in re.findall(r"( *)([^ ]+)", line):
        room = len(blanks) + measure(word)
        if used and used + room > width:
            folded, used = f"{folded}\n{' ' * hang}{word}", hang + measure(word)
        else:
            folded, used = folded + blanks + word, used + room
    return folded
