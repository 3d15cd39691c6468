"""The pictures of the page as SVG, each a pure function: same values, same bytes.

The page's style sheet gives their looks. Lengths are pixels, or shares of the width such as
"37.5%": so a figure is as wide as its place, and its letters have the size of the page's text. Each
figure has a text for screen readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log1p, sqrt

from reconciler.fleet.health import Health
from reconciler.fleet.page.contents import (
    BrokerLoad,
    ClusterLine,
    DriftPoint,
    LoadShare,
    Standing,
    say_when,
)
from reconciler.svg import Drawing, Length, spell, spell_attribute
from reconciler.units import AMOUNTS, count

MARKS: Mapping[Health | Standing, str] = {
    Health.UNREAD: "!",
    Health.OFFLINE: "‼",
    Health.UNWRITABLE: "↓",
    Health.DEGRADED: "−",
    Health.HEALTHY: "+",
    Standing.UNREADABLE: "!",
    Standing.UNPLANNED: "?",
    Standing.REFUSED: "×",
    Standing.PENDING: "~",
    Standing.SETTLED: "✓",
}
"""The sign of a health or a standing, next to its colour."""

STYLES = {state: state.name.lower() for state in (*Health, *Standing)}

LEAST_TILE = 26.0
LARGEST_TILES = ((24, 112.0), (72, 76.0))
"""The size of the largest tile, by the number of tiles. Units: pixels."""

CROWDED_TILE = 52.0
"""The size of the largest tile among more, so that a fleet fits on a screen. Units: pixels."""

ROW = 22.0
CHART = 210.0
CHART_TOP, CHART_FOOT = 22.0, 24.0
WIDEST_BAR = 0.08

LOAD_CHART, LOAD_FOOT, RACK_GAP = 118.0, 30.0, 0.6
"""The height of a chart of loads, and of its names; the gap between racks, in brokers."""

MOST_DIGITS = 48
"""The letters of broker ids that fit below a chart on a narrow screen."""

MOST_NAMED = 12
MOST_DATES = 4
SPARK_WIDTH, SPARK_HEIGHT = 88.0, 20.0
COLUMN, BARS = 34.0, 64.0


def draw_tile(cluster: ClusterLine, most_partitions: int, clusters: int) -> str:
    """Draw one of N clusters as a square, whose area grows with the number of its partitions."""
    largest = next((size for most, size in LARGEST_TILES if clusters <= most), CROWDED_TILE)
    # By the root, so that the area and not the side of a tile shows the size.
    share = sqrt(cluster.partitions / most_partitions) if most_partitions else 0
    side = LEAST_TILE + (largest - LEAST_TILE) * share
    figure = Figure(side, side)
    made_up = " synthetic" if cluster.synthetic else ""
    style = f"tile {STYLES[cluster.state]}{made_up}"
    figure.box(1, 1, side - 2, side - 2, style, round_px=5)
    figure.write(side / 2, side / 2 + 5, MARKS[cluster.state], "mark")
    return figure.finish()


def draw_mark(standing: Health | Standing) -> str:
    """Draw the sign of a health or a standing, as small as text."""
    figure = Figure(18, 18)
    figure.box(1, 1, 16, 16, f"tile {STYLES[standing]}", round_px=4)
    figure.write(9, 13.5, MARKS[standing], "mark small")
    return figure.finish()


def draw_dumbbell(before: int, after: int, scale: Axis) -> str:
    """Draw a number before, as a ring, and after, as a dot."""
    figure = Figure("100%", ROW)
    middle = ROW / 2
    figure.line("0%", middle, "100%", middle, "rail")
    start, end = spell_width(scale.place(before)), spell_width(scale.place(after))
    style = "better" if after < before else "worse" if after > before else "same"
    figure.line(start, middle, end, middle, f"way {style}")
    figure.dot(start, middle, 5, f"ring {style}")
    figure.dot(end, middle, 5, f"dot {style}")
    return figure.finish(f"{before:,} before, {after:,} after")


def draw_axis(scale: Axis) -> str:
    """Draw the axis above a column of dumbbells."""
    figure = Figure("100%", 16)
    for tick in scale.ticks():
        place = spell_width(scale.place(tick))
        figure.line(place, 12, place, 16, "grid")
        figure.write(place, 10, f"{tick:,}", "middle small")
    return figure.finish()


def draw_bar(number: int, most: int) -> str:
    """Draw a number as a bar next to it."""
    figure = Figure("100%", 10)
    figure.box(0, 1, spell_width(number / max(most, 1)), 8, "bar", round_px=2)
    return figure.finish()


def draw_sparkline(numbers: Sequence[int | None], noun: str = "drift") -> str:
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
    missing = "not planned" if noun == "drift" else "unknown"
    said = ", ".join(missing if n is None else f"{n:,}" for n in numbers[-12:])
    return figure.finish(f"{noun} so far: {said}")


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
    """Draw the pending and the refused changes of each collection, as stacked bars."""
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
    # A few dates have room, evenly spaced: 11-21, or 11-21 03:00 if two points share a day.
    few = min(len(points), MOST_DATES)
    dated = {(2 * number + 1) * len(points) // (2 * few) for number in range(few)}
    days = {say_when(point.collection)[5:10] for point in points}
    letters = slice(5, 10 if len(days) == len(points) else 16)
    for place, point in enumerate(points):
        middle = room * (place + 0.5)
        _draw_point(figure, point, middle, min(0.76 * room, WIDEST_BAR), floor, unit)
        if place in dated:
            date = say_when(point.collection)[letters]
            figure.write(spell_width(middle), CHART - 7, date, "middle small")
    return figure.finish(describe_drift(points))


def describe_drift(points: Sequence[DriftPoint]) -> str:
    """Return a text description of the chart."""
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


def _draw_point(
    figure: Figure, point: DriftPoint, middle: float, width: float, floor: float, unit: float
) -> None:
    """Draw one collection; `unit` is how high a topic is."""
    x, wide = spell_width(middle - width / 2), spell_width(width)
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
        figure.write(spell_width(middle), floor - changed - refused - 5, "!", "middle warn")


def draw_broker(broker: BrokerLoad, most: int, even: float) -> str:
    """Draw a broker's replicas as a bar, its leaders as the dark part, and the even share."""
    figure = Figure(COLUMN, BARS)
    unit = (BARS - 4) / max(most, 1)
    for style, held in (("followers", broker.replicas), ("leaders", broker.leaders)):
        if held:
            figure.box(6, BARS - unit * held, COLUMN - 12, unit * held, style)
    figure.line(0, BARS - unit * even, COLUMN, BARS - unit * even, "even")
    return figure.finish()


def draw_bands(racks: Sequence[tuple[str, Sequence[BrokerLoad]]], load: str) -> str:
    """Draw the brokers of each rack side by side: their loads, and the bands around their shares.

    A bar outside a band that the cluster aims at is hatched. Some brokers may not have the load.
    """
    figure = Figure("100%", LOAD_CHART)
    brokers = [broker for _, of in racks for broker in of]
    room = 1 / (len(brokers) + RACK_GAP * (len(racks) - 1))
    held = [broker.bands[load] for broker in brokers if load in broker.bands]
    top = max((max(band.amount, band.most or 0) for band in held), default=0) or 1
    floor = LOAD_CHART - LOAD_FOOT
    unit = (floor - 4) / top
    named = sum(len(str(broker.id)) + 1 for broker in brokers) <= MOST_DIGITS
    start = 0.0
    for rack, of in racks:
        for place, broker in enumerate(of):
            if load in broker.bands:
                _draw_load(figure, broker, load, start + room * place, room, floor, unit)
            if named:
                middle = spell_width(start + room * (place + 0.5))
                figure.write(middle, floor + 12, str(broker.id), "middle small")
        width = room * len(of)
        for first, number, band in _join_bands(of, load):
            _draw_share(figure, band, start + room * first, room * number, floor, unit)
        figure.line(spell_width(start), floor, spell_width(start + width), floor, "floor")
        figure.write(
            spell_width(start + width / 2), floor + (27 if named else 14), rack, "middle small"
        )
        start += width + RACK_GAP * room
    return figure.finish(describe_bands(racks, load))


def describe_bands(racks: Sequence[tuple[str, Sequence[BrokerLoad]]], load: str) -> str:
    """Return in words which brokers are outside their bands."""
    brokers = [broker for _, of in racks for broker in of if load in broker.bands]
    outside = sorted(broker.id for broker in brokers if broker.bands[load].outside)
    if not outside:
        return "every broker is inside its band"
    left = len(outside) - MOST_NAMED
    more = f" and {left:,} more" if left > 0 else ""
    named = ", ".join(map(str, outside[:MOST_NAMED])) + more
    are = "is" if len(outside) == 1 else "are"
    return f"{len(outside):,} of {count(len(brokers), 'broker')} {are} outside: {named}"


def _draw_load(
    figure: Figure,
    broker: BrokerLoad,
    load: str,
    x: float,
    room: float,
    floor: float,
    unit: float,
) -> None:
    """Draw the bar of a broker; `unit` is how high a byte is."""
    band = broker.bands[load]
    title = f"{broker.id}: {say_load(load, band.amount)} {band.off}".rstrip()
    width = min(0.7 * room, WIDEST_BAR)
    high = unit * band.amount
    style = "bar no" if band.missed else "bar" if band.share is not None else "followers"
    left = spell_width(x + (room - width) / 2)
    figure.box(left, round(floor - high, 1), spell_width(width), round(high, 1), style, title)


def _draw_share(
    figure: Figure, band: LoadShare, x: float, width: float, floor: float, unit: float
) -> None:
    least, most, share = band.least or 0, band.most or 0, band.share or 0
    start, y = spell_width(x), round(floor - unit * share, 1)
    high = max(round(unit * (most - least), 1), 1)
    figure.box(start, round(floor - unit * most, 1), spell_width(width), high, "band")
    figure.line(start, y, spell_width(x + width), y, "even")


def _join_bands(brokers: Sequence[BrokerLoad], load: str) -> Iterator[tuple[int, int, LoadShare]]:
    """Yield the bands of neighbours as one where they are equal: place, number, band."""
    places = enumerate(broker.bands.get(load) for broker in brokers)
    key = lambda at: at[1] and (at[1].least, at[1].share, at[1].most)  # noqa: E731
    for edges, group in groupby(places, key):
        members = list(group)
        first, band = members[0]
        if edges and band is not None and band.share is not None:
            yield first, len(members), band


def say_load(load: str, amount: int) -> str:
    """Format a load of a broker: 4.1 MiB, or 4.1 MiB/s."""
    return AMOUNTS[load](amount)


def spell_width(share: float) -> str:
    """Format a share of the width, such as 37.5%."""
    return f"{100 * share:.5g}%"


class Figure(Drawing):
    """A picture inside the page, with the style of the page."""

    def __init__(self, width: Length, height: float) -> None:
        super().__init__()
        self._size = f'width="{spell(width)}" height="{spell(height)}"'

    def finish(self, says: str = "") -> str:
        """Return the figure. `says` is its text for screen readers; without it, it is hidden."""
        role = f'role="img" aria-label={spell_attribute(says)}' if says else 'aria-hidden="true"'
        return f"<svg {self._size} {role}>{''.join(self.shapes)}</svg>"


FAR_APART = 60
"""Above this ratio, a linear axis would put all small numbers at its edge."""

_EDGE = 0.03
"""The share of the width that stays free at both ends, so that no dot is cut."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from 0 to `most`."""

    most: int

    @property
    def by_powers(self) -> bool:
        """Whether the axis is logarithmic."""
        return self.most > FAR_APART

    def place(self, number: int) -> float:
        """Return the place of a number, as a share of the width."""
        most = max(self.most, 1)
        share = log1p(number) / log1p(most) if self.by_powers else number / most
        return _EDGE + (1 - 2 * _EDGE) * share

    def ticks(self) -> tuple[int, ...]:
        """Return the numbers to write at the axis: 0, and a few round numbers."""
        if self.by_powers:
            powers = (10**n for n in range(1, len(str(self.most))))
            return (0, *powers)
        step = round_step(self.most, 3)
        return tuple(range(0, self.most + 1, step))


def round_step(most: int, steps: int) -> int:
    """Return the least of 1, 2, 5, 10, 20 … by which `steps` steps reach `most`."""
    power = 1
    while power * 5 * steps < most:
        power *= 10
    return next(power * digit for digit in (1, 2, 5) if power * digit * steps >= most)
