"""A matrix as text: a column for each broker, or for each rack if brokers are too many.

A matrix that is too wide or too long is folded, with totals; nothing is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import wrap

from reconciler.model.plan import LevelResult
from reconciler.show.explain.matrix import Block, Column, Load, Matrix, Rack
from reconciler.show.explain.odds import Odds
from reconciler.show.explain.table import Line, Table
from reconciler.show.explain.words import (
    CLUSTER,
    TOPIC,
    Measure,
    block_name,
    broker_name,
    compare,
    has_racks,
    headline,
    rack_name,
    weighed_by,
)
from reconciler.styling import Paint, set_columns

Totals = Sequence[tuple[str, Sequence[Measure]]]

WIDTH = 120
ROWS = 40
"""The largest number of partitions that each have a line of their own."""

NOTHING = "·"

OWN_TOTALS = (("this topic", TOPIC),)


def render_matrix(matrix: Matrix, *, width: int = WIDTH, colour: bool = False) -> str:
    """Render a matrix for people. Returns: lines that end in a newline.

    Units: width in characters. New replicas have a `+`, with or without colours.
    """
    paint = Paint(colour)
    totals: list[tuple[str, tuple[Measure, ...]]] = [("this topic", TOPIC), ("all topics", CLUSTER)]
    if matrix.by is not None:
        totals.append((f"by {matrix.by}", weighed_by(matrix.by)))
    table = Table((*_broker_lines(matrix, totals), *_if_lost(matrix)))
    fits = table.width <= width
    title = wrap(" · ".join(headline(matrix)), width)
    legend = wrap(_legend(matrix, by_broker=fits), width)
    parts = [[*(paint("bold", line) for line in title), *(paint("dim", line) for line in legend)]]
    if fits:
        parts.append(list(table.render(paint)))
    else:
        parts += [list(part.render(paint)) for part in _rack_tables(matrix, width, totals)]
        parts.append(list(_brokers_by_load(matrix, width)))
    if matrix.odds:
        parts.append(list(_odds(matrix, matrix.odds, width)))
    if matrix.levels:
        parts.append(list(_levels(matrix.levels, width)))
    parts.append([line for reason in matrix.reasons for line in wrap(reason, width)])
    return "\n\n".join("\n".join(map(str.rstrip, part)) for part in parts if part) + "\n"


def render_layout(matrix: Matrix, *, width: int = WIDTH) -> str:
    """Render the placement of the partitions and the load on each broker, and nothing else."""
    table = Table(tuple(_broker_lines(matrix, OWN_TOTALS)))
    fits = table.width <= width
    tables = [table] if fits else _rack_tables(matrix, width, OWN_TOTALS)
    parts = [wrap(_legend(matrix, by_broker=fits), width)]
    parts += [list(part.render(Paint(wanted=False))) for part in tables]
    return "\n\n".join("\n".join(map(str.rstrip, part)) for part in parts) + "\n"


def _legend(matrix: Matrix, *, by_broker: bool) -> str:
    says = ["L leader", "F follower"]
    if matrix.first_new < len(matrix.rows) or matrix.was:
        says.append("+ new")
    if matrix.was:
        says.append("− removed")
    if len(matrix.rows) > ROWS:
        says.append("4L 9F: how many of each in a block of partitions")
    idle = [broker_name(column) for column in matrix.columns if column.idle]
    if by_broker and idle:
        says.append(f"{', '.join(idle)} {'takes' if len(idle) == 1 else 'take'} nothing new")
    return " · ".join(says)


def _broker_lines(matrix: Matrix, totals: Totals) -> Iterator[Line]:
    racks = matrix.racks
    if has_racks(matrix):
        yield _across("", racks, rack_name)
    yield Line("broker", _each(racks, broker_name))
    for number, block in enumerate(matrix.blocks(ROWS)):
        tally = matrix.tally(block)
        cells = [
            tuple(_broker_mark(matrix, block, column.broker, tally) for column in rack.columns)
            for rack in racks
        ]
        yield Line(block_name(block), tuple(cells), rule_above=number == 0)
    for title, measures in totals:
        yield _across(title, racks, lambda _: "", rule_above=True)
        for measure in measures:
            yield from _totals(measure, matrix)


def _if_lost(matrix: Matrix) -> Iterator[Line]:
    """Yield the most leaders of it that one other broker takes over, by broker and by rack."""
    racks = matrix.racks
    yield _across("if lost", racks, lambda _: "", rule_above=True)
    yield Line("  one gets", _each(racks, lambda column: f"{column.taken_over:,}"))
    if has_racks(matrix):
        yield _across("    by rack", racks, lambda rack: f"{rack.taken_over:,}")


def _totals(measure: Measure, matrix: Matrix) -> Iterator[Line]:
    """Yield a number by broker and by rack, and the number before if it differs and is not 0."""
    racks = matrix.racks
    before = _each(racks, lambda column: measure.say(measure.before(column)))
    after = _each(racks, lambda column: measure.say(measure.after(column)))
    new = not any(measure.before(rack) for rack in racks)
    if new or before == after:
        yield Line(f"  {measure.noun}", after)
    else:
        yield Line(f"  {measure.noun} before", before)
        yield Line(f"  {measure.noun} after", after)
    if has_racks(matrix):
        yield _across("    by rack", racks, lambda rack: measure.shift(rack, new=new))


def _each(racks: Iterable[Rack], say: Callable[[Column], str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(say(column) for column in rack.columns) for rack in racks)


def _across(
    label: str, racks: Iterable[Rack], say: Callable[[Rack], str], *, rule_above: bool = False
) -> Line:
    return Line(label, tuple((say(rack),) for rack in racks), rule_above, across=True)


def _broker_mark(matrix: Matrix, block: Block, broker: int, tally: Mapping[int, Load]) -> str:
    """Return the load of a block of partitions on a broker, with what a plan does to it."""
    if broker in matrix.lost(block):
        return "−"
    if broker in matrix.gained(block):
        return "+" + ("L" if tally[broker].leaders else "F")
    return _mark(tally.get(broker), block)


def _mark(load: Load | None, block: Block) -> str:
    """Return the load of a block of partitions on a broker or a rack."""
    if load is None:
        return NOTHING
    new = "+" if block.new else ""
    if len(block) == 1:
        return new + ("L" if load.leaders else "F")
    counted = [(load.leaders, "L"), (load.replicas - load.leaders, "F")]
    return " ".join(f"{new}{number}{letter}" for number, letter in counted if number)


def _rack_tables(matrix: Matrix, width: int, totals: Totals) -> Iterator[Table]:
    """Yield the matrix with a column for each rack, then the racks' totals."""
    racks = matrix.racks
    lines = [_across("", racks, rack_name)]
    for number, block in enumerate(matrix.blocks(ROWS)):
        cells = tuple((_rack_mark(matrix, block, rack),) for rack in racks)
        lines.append(Line(block_name(block), cells, rule_above=number == 0))
    yield from Table(tuple(lines), left=True).split(width)
    for title, measures in totals:
        head = Line(title, (("brokers",), *((measure.noun,) for measure in measures)))
        new = not any(measure.before(rack) for measure in measures for rack in racks)
        lines = [
            Line(rack_name(rack), tuple(_rack_totals(rack, measures, new=new)), number == 0)
            for number, rack in enumerate(racks)
        ]
        yield from Table((head, *lines), left=True).split(width)


def _rack_mark(matrix: Matrix, block: Block, rack: Rack) -> str:
    """Name the brokers of a partition in a rack; for a block, count the load of the rack."""
    ids = {column.broker for column in rack.columns}
    if len(block) > 1:
        held = [load for broker, load in matrix.tally(block).items() if broker in ids]
        return _mark(sum(held[1:], held[0]) if held else None, block)
    row, gained = matrix.rows[block.first], matrix.gained(block)
    marks = [
        f"{'+' * (broker in gained)}{'LF'[i > 0]}{broker}"
        for i, broker in enumerate(row)
        if broker in ids
    ]
    marks += [f"−{broker}" for broker in sorted(matrix.lost(block) & ids)]
    return " ".join(marks) or NOTHING


def _rack_totals(rack: Rack, measures: Iterable[Measure], *, new: bool) -> Iterator[tuple[str]]:
    yield (str(len(rack.columns)),)
    for measure in measures:
        after = [measure.after(column) for column in rack.columns]
        least, most = min(after), max(after)
        each = measure.say(most)
        if least != most:
            each = f"{measure.say(least)}..{each}"
        yield (f"{measure.shift(rack, new=new)} ({each} each)",)


def _brokers_by_load(matrix: Matrix, width: int) -> Iterator[str]:
    """List all brokers by their load of the topic, so that no total is lost."""

    def load(column: Column) -> list[int]:
        return [-n for m in TOPIC for n in (m.after(column), m.before(column))]

    new = matrix.first_new == 0
    ordered = sorted(matrix.columns, key=lambda column: (load(column), column.broker))
    for _, group in groupby(ordered, key=load):
        same = list(group)
        counts = ", ".join(f"{m.noun} {m.shift(same[0], new=new)}" for m in TOPIC)
        brokers = "broker" if len(same) == 1 else "brokers"
        says = f"{counts}: {brokers} {', '.join(_runs([column.broker for column in same]))}"
        yield from wrap(says, width, subsequent_indent="    ", break_on_hyphens=False)


def _runs(ids: Sequence[int]) -> Iterator[str]:
    """Join neighbours: 1, 2, 3, 7 is 1–3, 7."""
    start = 0
    for end in range(1, len(ids) + 1):
        if end == len(ids) or ids[end] != ids[end - 1] + 1:
            first, last = ids[start], ids[end - 1]
            yield f"{first}" if first == last else f"{first}–{last}"
            start = end


def _levels(levels: Iterable[LevelResult], width: int) -> Iterator[str]:
    """List every level of the plan's placement with its lower bound."""
    said = "Levels of the entire plan: sums of squares, and what no placement can be below"
    yield from wrap(f"{said}. Next leaders: also the most that one broker takes over.", width)
    heads = ("", "reached", "bound", "most", "bound")
    rows = [
        (
            f"  {one.level}",
            f"{one.reached:,}",
            f"{one.bound:,}",
            *("" if n is None else f"{n:,}" for n in (one.skew_bound and one.skew, one.skew_bound)),
        )
        for one in levels
    ]
    table = set_columns([heads, *rows], "<>", between="  ")
    if max(map(len, table)) <= width:
        yield from table
        return
    for one in levels:
        most = f", {one.skew:,} at most (bound {one.skew_bound:,})" if one.skew_bound else ""
        says = f"{one.level}: {one.reached:,} (bound {one.bound:,}){most}"
        yield from wrap(says, width, initial_indent="  ", subsequent_indent="    ")


def _odds(matrix: Matrix, odds: Odds, width: int) -> Iterator[str]:
    """Compare the planned skew with that of Kafka's own placement."""
    said = "Max − min over the brokers, as planned and by Kafka's own placement"
    yield from wrap(f"{said} ({odds.throws} random placements):", width)
    rows = [
        (f"  {noun}", f"{planned:,}", f"{risked.expected:,.1f}", f"{risked.worst:,}")
        for noun, planned, risked in compare(matrix, odds)
    ]
    heads = ("", "planned", "mean", "worst")
    yield from set_columns([heads, *rows], "<>", between=" ", least=(10, 7, 5, 5))
