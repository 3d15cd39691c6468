"""A matrix as a picture: a standalone SVG, in light and dark, for a pull request.

Racks are panels, brokers are columns, partitions are rows. Leaders are filled, followers are
outlined; new replicas have a colour and a band behind them. Below are the totals of every broker as
bars. There are no scripts and no external fonts, so GitHub shows the picture unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from reconciler.show.explain.matrix import Block, Column, Load, Matrix, round_sizes
from reconciler.show.explain.odds import Odds
from reconciler.show.explain.svg import Sheet
from reconciler.show.explain.words import (
    TOPIC,
    Measure,
    block_name,
    broker_name,
    compare,
    headline,
    rack_name,
)
from reconciler.show.wording import describe_balance
from reconciler.units import count

BLOCKS = 400
"""The largest number of partitions that each have a row of their own."""

FOLDED = 100
"""The approximate number of blocks of more partitions than that."""

EDGE = 24.0
LABELS = 64.0
BETWEEN_RACKS = 14.0
PAD = 8.0
BAR = 32.0
BARS = BAR + PAD + 42
"""The height of a row of bars, with the numbers below it."""

LINE = 16.0
UPRIGHT = 22.0
"""In narrower columns, broker ids read upwards and the numbers below bars are left out."""

NARROWEST = 480.0
NARROWEST_CELL, WIDEST_CELL = 10, 44
CHARACTER = 5.9
"""An upper estimate of the width of a letter of the sentences."""


def draw_matrix(matrix: Matrix) -> str:
    """Draw a matrix as an SVG document. Same matrix, same bytes."""
    drawing = _Drawing(matrix)
    drawing.draw()
    title, description = " · ".join(headline(matrix)), describe(matrix)
    return drawing.sheet.finish(drawing.grid.width, drawing.y, title, description)


def describe(matrix: Matrix) -> str:
    """Return a text description of the picture, for screen readers."""
    says = [
        f"Partitions by brokers in {count(len(matrix.racks), 'rack')}, "
        f"{describe_balance(matrix.after)} per broker."
    ]
    if odds := matrix.odds:
        parts = [
            f"{noun} {skew}, by Kafka itself {risked.expected:.1f} on average "
            f"and {risked.worst} at worst"
            for noun, skew, risked in compare(matrix, odds)
        ]
        says.append(f"Max minus min: {'; '.join(parts)}, over {odds.throws} random placements.")
    return " ".join([*says, *matrix.reasons])


@dataclass(frozen=True, slots=True)
class _Grid:
    """The places of columns and panels, and the size of a cell. Units: pixels."""

    cell: float
    row: float
    left: Mapping[int, float]
    panels: tuple[tuple[float, float], ...]
    width: float

    @property
    def right(self) -> float:
        """Where the last panel ends."""
        return sum(self.panels[-1]) if self.panels else EDGE + LABELS


def _lay_out(matrix: Matrix, rows: int) -> _Grid:
    """Give every broker a column: wide if they are few, narrow if they are many."""
    columns, racks = len(matrix.columns) or 1, len(matrix.racks)
    beside = 2 * EDGE + LABELS + racks * (2 * PAD + BETWEEN_RACKS) - BETWEEN_RACKS
    cell = float(min(WIDEST_CELL, max(NARROWEST_CELL, (NARROWEST - beside) // columns)))
    row = float(min(20, max(5, 1200 // max(rows, 1))))
    left: dict[int, float] = {}
    panels = []
    x = EDGE + LABELS
    for rack in matrix.racks:
        brokers = len(rack.columns) * cell
        inside = max(brokers, len(rack_name(rack)) * CHARACTER + PAD)
        start = x + PAD + (inside - brokers) / 2
        left |= {c.broker: start + number * cell for number, c in enumerate(rack.columns)}
        panels.append((x, inside + 2 * PAD))
        x += inside + 2 * PAD + BETWEEN_RACKS
    width = max(x - BETWEEN_RACKS + EDGE, NARROWEST)
    return _Grid(cell, row, left, tuple(panels), width)


def _range(held: Sequence[int]) -> str:
    least, most = min(held), max(held)
    return f"{least:,} each" if least == most else f"{least:,}..{most:,}"


class _Drawing:
    """Draws from the top down; `y` is where the next part begins."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        self.blocks = matrix.blocks(BLOCKS if len(matrix.rows) <= BLOCKS else FOLDED)
        self.grid = _lay_out(matrix, len(self.blocks))
        self.step = next(s for s in round_sizes() if s * self.grid.row >= LINE - 2)
        self.step *= len(self.blocks[0]) if self.blocks else 1
        self.sheet = Sheet()
        self.y = EDGE

    def draw(self) -> None:
        """Draw all parts."""
        self._header()
        self._legend()
        self._panels()
        self._column_heads()
        for number, block in enumerate(self.blocks):
            self._block(number, block)
        for measure in TOPIC:
            self._bars(measure)
        self.y += 2 * PAD
        if self.matrix.odds:
            self._odds(self.matrix.odds)
        self._sentences()
        self.y += EDGE - PAD

    def _header(self) -> None:
        topic, rest = headline(self.matrix)
        self.sheet.write(EDGE, self.y + 14, topic, "h")
        self.sheet.write(EDGE, self.y + 34, rest, "m")
        self.y += 48

    def _legend(self) -> None:
        x = EDGE
        kinds = [("l", "leader"), ("f", "follower")] if self.matrix.first_new else []
        if self.matrix.first_new < len(self.matrix.rows):
            kinds += [("l n", "new leader"), ("f n", "new follower")]
        for style, says in kinds:
            self.sheet.box(x + 0.5, self.y + 0.5, 11, 11, style, round_px=2)
            self.sheet.write(x + 18, self.y + 10, says, "m s")
            x += 18 + len(says) * CHARACTER + 14
        self.sheet.line(x, self.y + 6, x + 14, self.y + 6, "even")
        self.sheet.write(x + 20, self.y + 10, "even share", "m s")
        self.y += 28

    def _panels(self) -> None:
        """Draw the racks as panels behind everything above them."""
        heads = 22 + self._ids_height()
        height = heads + len(self.blocks) * self.grid.row + len(TOPIC) * BARS + PAD
        for rack, (x, width) in zip(self.matrix.racks, self.grid.panels, strict=True):
            self.sheet.box(x, self.y, width, height, "p", round_px=6)
            self.sheet.write(x + width / 2, self.y + 17, rack_name(rack), "c g s")
        self.y += 22

    def _ids_height(self) -> float:
        return 18 if self.grid.cell >= UPRIGHT else 34

    def _column_heads(self) -> None:
        """Name the brokers, upwards if columns are narrow; grey out the idle ones."""
        height = self._ids_height()
        body = height + len(self.blocks) * self.grid.row
        self.sheet.write(EDGE, self.y + height - 5, "broker", "m s")
        for column in self.matrix.columns:
            x = self.grid.left[column.broker]
            middle = x + self.grid.cell / 2
            if column.idle:
                self.sheet.box(x, self.y, self.grid.cell, body, "x")
            if self.grid.cell >= UPRIGHT:
                self.sheet.write(middle, self.y + 13, broker_name(column), "c s")
            else:
                foot = self.y + height - 4
                self.sheet.write(middle + 3, foot, broker_name(column), "t", turned=True)
        self.y += height

    def _block(self, number: int, block: Block) -> None:
        grid = self.grid
        grown = block.new and self.matrix.first_new > 0
        if grown:
            band = grid.right - EDGE + PAD
            self.sheet.box(EDGE - PAD, self.y, band, grid.row, "band")
        if block.first % self.step == 0 or number == 0:
            says = block_name(block) + (" new" if grown else "")
            self.sheet.write(EDGE, self.y + max(grid.row / 2 + 4, 9), says, "m s")
        for broker, load in sorted(self.matrix.tally(block).items()):
            self._cell(block, broker, load)
        self.y += grid.row

    def _cell(self, block: Block, broker: int, load: Load) -> None:
        """Draw the load of a block on a broker: a full cell per partition, or a share of it."""
        gap = 3.0 if self.grid.row >= 12 else 1.0
        room = self.grid.cell - 2 * gap
        x = self.grid.left[broker] + gap
        known = {"broker": str(broker), "partition": block_name(block)}
        for style, held in (("l", load.leaders), ("f", load.replicas - load.leaders)):
            if held:
                width = room * held / len(block)
                new = " n" if block.new else ""
                many = known if len(block) == 1 else {**known, "count": str(held)}
                height = self.grid.row - 2 * gap
                y = self.y + gap
                self.sheet.box(x, y, width, height, style + new, round_px=2, known=many)
                x += width

    def _bars(self, measure: Measure) -> None:
        """Draw each broker's total as a bar, with the new part on top, and the even share."""
        columns = self.matrix.columns
        most = max((measure.after(column) for column in columns), default=0) or 1
        base = self.y + PAD + 8 + BAR
        self.sheet.write(EDGE, base - 4, measure.noun, "m s")
        for column in columns:
            self._bar(measure, column, base, BAR / most)
        takers = [measure.after(column) for column in columns if not column.idle]
        if takers:
            self.sheet.write(EDGE, base + 10, _range(takers), "m s")
            even = base - BAR / most * sum(takers) / len(takers)
            self.sheet.line(EDGE + LABELS, even, self.grid.right, even, "even")
        for rack, (x, width) in zip(self.matrix.racks, self.grid.panels, strict=True):
            says = measure.shift(rack, new=self.matrix.first_new == 0)
            self.sheet.write(x + width / 2, base + 28, says, "c m s")
        self.sheet.write(EDGE, base + 28, "by rack", "m s")
        self.y += BARS

    def _bar(self, measure: Measure, column: Column, base: float, unit: float) -> None:
        gap = max(1.0, self.grid.cell / 5)
        x, width = self.grid.left[column.broker] + gap, self.grid.cell - 2 * gap
        before, after = measure.before(column), measure.after(column)
        kept = unit * min(before, after)
        if kept:
            self.sheet.box(x, base - kept, width, kept, "old")
        if after > before:
            self.sheet.box(x, base - unit * after, width, unit * after - kept, "add")
        if self.grid.cell >= UPRIGHT:
            self.sheet.write(x + width / 2, base + 13, f"{after:,}", "c s")

    def _odds(self, odds: Odds) -> None:
        """Draw the planned max − min above Kafka's: its mean as a bar, its worst as a line."""
        says = "max − min over the brokers, next to what Kafka would have risked"
        for line in self._wrap(says):
            self.sheet.write(EDGE, self.y + 14, line, "m s")
            self.y += LINE
        compared = compare(self.matrix, odds)
        most = max([1, *(max(skew, risked.worst) for _, skew, risked in compared)])
        unit = (self.grid.width - 2 * EDGE - LABELS - 190) / most
        x = EDGE + LABELS
        for noun, skew, risked in compared:
            self.sheet.write(EDGE, self.y + 22, noun, "m s")
            planned = max(unit * skew, 2)
            self.sheet.box(x, self.y + 5, planned, 8, "add")
            self.sheet.write(x + planned + 8, self.y + 13, f"planned {skew:,}", "s")
            end = x + max(unit * risked.worst, 2)
            self.sheet.box(x, self.y + 21, max(unit * risked.expected, 2), 8, "old")
            self.sheet.line(x, self.y + 25, end, self.y + 25, "whisker")
            self.sheet.line(end, self.y + 21, end, self.y + 29, "whisker")
            says = f"Kafka {risked.expected:,.1f} on average, {risked.worst:,} at worst"
            self.sheet.write(end + 8, self.y + 29, says, "m s")
            self.y += 38
        self.y += PAD

    def _sentences(self) -> None:
        for reason in self.matrix.reasons:
            for line in self._wrap(reason):
                self.sheet.write(EDGE, self.y + 14, line, "s")
                self.y += LINE
            self.y += 4

    def _wrap(self, text: str) -> list[str]:
        return wrap(text, int((self.grid.width - 2 * EDGE) / CHARACTER))
