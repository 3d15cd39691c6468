"""Colour and width of text: the one place that writes ANSI codes and breaks lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

ERASE_LINE = "\r\x1b[K"
SHOW_CURSOR = "\x1b[?25h"

_CODES = {"green": 32, "yellow": 33, "red": 31, "cyan": 36, "bold": 1, "dim": 2}
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Paint:
    """ANSI colours, or nothing: the text is complete without them."""

    wanted: bool

    def __call__(self, colour: str, text: str) -> str:
        """Paint `text`, one of green, yellow, red, cyan, bold, dim."""
        return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if self.wanted and text else text


def strip_colours(text: str) -> str:
    """Return a text without its ANSI codes, as wide as a terminal shows it."""
    return _ANSI.sub("", text)


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
        room = len(blanks) + len(strip_colours(word))
        if used and used + room > width:
            folded, used = f"{folded}\n{' ' * hang}{word}", hang + len(strip_colours(word))
        else:
            folded, used = folded + blanks + word, used + room
    return folded
