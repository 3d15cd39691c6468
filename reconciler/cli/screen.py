"""A text on a terminal that is shown again and again in the same place."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import accumulate
from math import ceil

import click

from reconciler.styling import ERASE_BELOW, measure, move_up
from reconciler.units import count


class Screen:
    """Shows one text after the other, each in the place of the one before."""

    def __init__(self) -> None:
        self._above = 0

    def fits(self, text: str) -> bool:
        """Return whether a text can be replaced: a longer one scrolls its first lines away."""
        columns, rows = shutil.get_terminal_size()
        return _list_ends(text.splitlines(), columns)[-1] < rows

    def show(self, text: str) -> None:
        """Show a text; lines that do not fit are counted."""
        columns, rows = shutil.get_terminal_size()
        lines = text.splitlines()
        ends = _list_ends(lines, columns)
        if ends[-1] >= rows:
            shown = sum(end < rows - 1 for end in ends)
            lines = [*lines[:shown], f"… {count(len(lines) - shown, 'more line')}"]
            ends = _list_ends(lines, columns)
        text = "".join(f"{line}\n" for line in lines)
        click.echo(f"{move_up(self._above)}{ERASE_BELOW}{text}", nl=False, color=True)
        self._above = ends[-1]


def _list_ends(lines: Sequence[str], columns: int) -> list[int]:
    """Return on which row of the screen each line ends: one that is too wide takes several."""
    rows = (max(ceil(measure(line) / columns), 1) for line in lines)
    return list(accumulate(rows)) or [0]
