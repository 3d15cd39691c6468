"""The pictures of a report, each a pure function: same values, same bytes."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from reconciler.fleet.report.contents import Standing
from reconciler.fleet.report.figure import Figure, percent
from reconciler.fleet.report.scale import round_step
from reconciler.fleet.report.words import say_when
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.fleet.report.contents import BrokerLoad, ClusterLine, DriftPoint
    from reconciler.fleet.report.scale import Scale

MARKS = {
    Standing.UNREADABLE: "!",
    Standing.UNPLANNED: "?",
    Standing.REFUSED: "×",
    Standing.PENDING: "~",
    Standing.SETTLED: "✓",
}
"""What stands for a standing beside its colour."""

STYLES = {standing: standing.name.lower() for standing in Standing}

LEAST_TILE = 26.0
LARGEST_TILES = ((24, 112.0), (72, 76.0))
"""How large the largest tile is among so many; smaller still among more,"""

CROWDED_TILE = 52.0
"""so that a fleet fits on a screen."""

ROW = 22.0
CHART = 210.0
CHART_TOP, CHART_FOOT = 22.0, 24.0
WIDEST_BAR = 0.08

MOST_DATES = 4
SPARK_WIDTH, SPARK_HEIGHT = 88.0, 20.0
COLUMN, BARS = 34.0, 64.0


def draw_tile(cluster: ClusterLine, most_partitions: int, clusters: int) -> str:
    """Draw one of so many clusters: a square that grows with the root of its partitions."""
    largest = next((size for most, size in LARGEST_TILES if clusters <= most), CROWDED_TILE)
    share = sqrt(cluster.partitions / most_partitions) if most_partitions else 0
    side = LEAST_TILE + (largest - LEAST_TILE) * share
    figure = Figure(side, side)
    made_up = " synthetic" if cluster.synthetic else ""
    style = f"tile {STYLES[cluster.standing]}{made_up}"
    figure.box(1, 1, side - 2, side - 2, style, round_px=5)
    figure.write(side / 2, side / 2 + 5, MARKS[cluster.standing], "mark")
    return figure.finish()


def draw_mark(standing: Standing) -> str:
    """Draw what stands for a standing, as small as a word."""
    figure = Figure(18, 18)
    figure.box(1, 1, 16, 16, f"tile {STYLES[standing]}", round_px=4)
    figure.write(9, 13.5, MARKS[standing], "mark small")
    return figure.finish()


def draw_dumbbell(before: int, after: int, scale: Scale) -> str:
    """Draw a number before, as a ring, and after, as a dot."""
    figure = Figure("100%", ROW)
    middle = ROW / 2
    figure.line("0%", middle, "100%", middle, "rail")
    start, end = percent(scale.place(before)), percent(scale.place(after))
    style = "better" if after < before else "worse" if after > before else "same"
    figure.line(start, middle, end, middle, f"way {style}")
    figure.dot(start, middle, 5, f"ring {style}")
    figure.dot(end, middle, 5, f"dot {style}")
    return figure.finish(f"{before:,} before, {after:,} after")


def draw_axis(scale: Scale) -> str:
    """Draw the axis that stands above a column of dumbbells."""
    figure = Figure("100%", 16)
    for tick in scale.ticks():
        place = percent(scale.place(tick))
        figure.line(place, 12, place, 16, "grid")
        figure.write(place, 10, f"{tick:,}", "middle small")
    return figure.finish()


def draw_bar(number: int, most: int) -> str:
    """Draw a number as a bar that stands beside it."""
    figure = Figure("100%", 10)
    figure.box(0, 1, percent(number / max(most, 1)), 8, "bar", round_px=2)
    return figure.finish()


def draw_sparkline(numbers: Sequence[int | None]) -> str:
    """Draw numbers over time as a line with gaps, its last one as a dot."""
    figure = Figure(SPARK_WIDTH, SPARK_HEIGHT)
    most = max((n for n in numbers if n is not None), default=0) or 1
    step = (SPARK_WIDTH - 8) / max(len(numbers) - 1, 1)
    points = [
        None if n is None else (4 + step * place, SPARK_HEIGHT - 4 - (SPARK_HEIGHT - 8) * n / most)
        for place, n in enumerate(numbers)
    ]
    for run in _split_runs(points):
        figure.trace(run, "spark")
    if points and points[-1] is not None:
        figure.dot(*points[-1], 2.5, "bar")
    said = ", ".join("not planned" if n is None else f"{n:,}" for n in numbers[-12:])
    return figure.finish(f"drift so far: {said}")


def _split_runs(
    points: Sequence[tuple[float, float] | None],
) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if len(run) > 1]


def draw_drift(points: Sequence[DriftPoint]) -> str:
    """Draw what was pending and what was refused in each collection, as bars upon each other."""
    figure = Figure("100%", CHART)
    most = max((point.changed + point.refused for point in points), default=0) or 1
    step = round_step(most, 4)
    top = -(-most // step) * step
    floor, unit = CHART - CHART_FOOT, (CHART - CHART_FOOT - CHART_TOP) / top
    for tick in range(0, top + 1, step):
        y = floor - unit * tick
        figure.line("0%", y, "100%", y, "grid" if tick else "floor")
        figure.write(-8, y + 4, f"{tick:,}", "end small")
    room = 1 / len(points)
    dated, dates = _choose_dated(len(points)), _name_dates(points)
    for place, point in enumerate(points):
        middle = room * (place + 0.5)
        _draw_point(figure, point, middle, min(0.76 * room, WIDEST_BAR), floor, unit)
        if place in dated:
            figure.write(percent(middle), CHART - 7, dates[place], "middle small")
    return figure.finish(describe_drift(points))


def _name_dates(points: Sequence[DriftPoint]) -> list[str]:
    """Say when each collection was made, as 11-21; as 11-21 03:00 where two share a day."""
    days = [say_when(point.collection)[5:10] for point in points]
    if len(set(days)) == len(days):
        return days
    return [say_when(point.collection)[5:16] for point in points]


def describe_drift(points: Sequence[DriftPoint]) -> str:
    """Say in words what the chart shows."""
    first, last = points[0], points[-1]
    says = f"{count(last.changed + last.refused, 'topic')} not as specified at the last of "
    says += f"{count(len(points), 'collection')}"
    if len(points) == 1:
        return says
    worst = max(points, key=lambda point: point.changed + point.refused)
    return (
        f"{says}; {first.changed + first.refused:,} at the first,"
        f" {worst.changed + worst.refused:,} at most ({say_when(worst.collection)})"
    )


def _choose_dated(points: int) -> set[int]:
    """Choose the few bars below which a date has room, evenly."""
    dates = min(points, MOST_DATES)
    return {(2 * number + 1) * points // (2 * dates) for number in range(dates)}


def _draw_point(
    figure: Figure, point: DriftPoint, middle: float, width: float, floor: float, unit: float
) -> None:
    """Draw one collection; `unit` is how high a topic is."""
    x, wide = percent(middle - width / 2), percent(width)
    title = (
        f"{say_when(point.collection)}: {point.changed:,} to change, {point.refused:,} refused,"
        f" {point.unchanged:,} as specified"
    )
    if point.unplanned:
        title += f"; {count(point.unplanned, 'cluster')} not planned"
    changed, refused = unit * point.changed, unit * point.refused
    figure.box(x, floor - changed, wide, changed, "bar", title)
    figure.box(x, floor - changed - refused, wide, refused, "bar no", title)
    if point.unplanned:
        figure.write(percent(middle), floor - changed - refused - 5, "!", "middle warn")


def draw_broker(broker: BrokerLoad, most: int, even: float) -> str:
    """Draw a broker's replicas as a bar, its leaders as the dark part, and the even share."""
    figure = Figure(COLUMN, BARS)
    unit = (BARS - 4) / max(most, 1)
    for style, held in (("followers", broker.replicas), ("leaders", broker.leaders)):
        if held:
            figure.box(6, BARS - unit * held, COLUMN - 12, unit * held, style)
    figure.line(0, BARS - unit * even, COLUMN, BARS - unit * even, "even")
    return figure.finish()
