"""A text table whose columns form groups, folded to a width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

from reconciler.styling import Paint, measure_columns, pad, set_row

BETWEEN_COLUMNS = "  "
BETWEEN_GROUPS = " │ "
MARGIN = "  "
NARROWEST = 8
"""The minimum width of a group on a narrow screen."""


@dataclass(frozen=True, slots=True)
class Line:
    """A label, and the cells of every group: one for each column, or a single one `across`."""

    label: str
    cells: tuple[tuple[str, ...], ...]
    rule_above: bool = False
    across: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Lines of equally many groups. `left`: cells begin at their column's left edge."""

    lines: tuple[Line, ...]
    left: bool = False

    @property
    def width(self) -> int:
        """The widest line, in characters."""
        groups = [_group_width(widths) for widths in self._widths()]
        between = len(BETWEEN_GROUPS) * (len(groups) - 1)
        return self._label_width() + len(MARGIN) + sum(groups) + between

    def split(self, width: int) -> tuple[Table, ...]:
        """Split into tables below each other, each of complete groups and within the width.

        The cells of a group that is still too wide are broken at spaces.
        """
        room = max(width - self._label_width() - len(MARGIN), NARROWEST)
        narrow = replace(self, lines=tuple(_break_cells(self.lines, room)))
        sizes = [_group_width(widths) + len(BETWEEN_GROUPS) for widths in narrow._widths()]
        return tuple(
            replace(
                self,
                lines=tuple(
                    replace(line, cells=line.cells[part.start : part.stop]) for line in narrow.lines
                ),
            )
            for part in _pack(sizes, room + len(BETWEEN_GROUPS))
        )

    def render(self, paint: Paint) -> Iterator[str]:
        """Yield the lines of the table."""
        widths = self._widths()
        label_width = self._label_width()
        bar = paint("dim", BETWEEN_GROUPS)
        for line in self.lines:
            if line.rule_above:
                yield paint("dim", "─" * self.width)
            pairs = zip(line.cells, widths, strict=True)
            cells = [self._group(line, group, sizes, paint) for group, sizes in pairs]
            label = pad(paint("dim", line.label), label_width)
            yield label + MARGIN + bar.join(cells)

    def _group(
        self, line: Line, cells: tuple[str, ...], widths: Sequence[int], paint: Paint
    ) -> str:
        if line.across:
            return pad(cells[0], _group_width(widths), "<" if self.left else "^")
        # Colours repeat what the text shows: new replicas have a `+`.
        tinted = (
            paint("green", cell) if "+" in cell else paint("dim", cell) if cell == "·" else cell
            for cell in cells
        )
        return set_row(tinted, widths, "<" if self.left else ">", BETWEEN_COLUMNS)

    def _label_width(self) -> int:
        return max(len(line.label) for line in self.lines)

    def _widths(self) -> list[list[int]]:
        """Return the width of every column, by group; a cell across its group can widen it."""
        apart = [line.cells for line in self.lines if not line.across]
        across = [line.cells for line in self.lines if line.across]
        groups = [measure_columns(group) for group in zip(*apart, strict=True)]
        for number, widths in enumerate(groups):
            widest = max((len(cells[number][0]) for cells in across), default=0)
            for missing in range(widest - _group_width(widths)):
                widths[-1 - missing % len(widths)] += 1
        return groups


def _group_width(widths: Sequence[int]) -> int:
    return sum(widths) + len(BETWEEN_COLUMNS) * (len(widths) - 1)


def _break_cells(lines: Sequence[Line], width: int) -> Iterator[Line]:
    for line in lines:
        broken = [[wrap(cell, width) for cell in cells] for cells in line.cells]
        height = max((len(parts) for cells in broken for parts in cells), default=1)
        for row in range(max(height, 1)):
            cells = tuple(tuple("".join(p[row : row + 1]) for p in group) for group in broken)
            first = row == 0
            rule_above = line.rule_above and first
            yield Line(line.label if first else "", cells, rule_above, line.across)


def _pack(sizes: Sequence[int], room: int) -> Iterator[range]:
    start, used = 0, 0
    for number, size in enumerate(sizes):
        if used + size > room and number > start:
            yield range(start, number)
            start, used = number, 0
        used += size
    yield range(start, len(sizes))
