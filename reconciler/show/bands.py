"""The loads of brokers before and after a balance: lines with a bar for each, and the band."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.model.cluster import Broker, Replicas
from reconciler.model.moves import (
    BrokerBand,
    DirectoryBand,
    LoadBand,
    LoadKind,
    PlannedBalance,
    PlannedDirectories,
)
from reconciler.units import AMOUNTS, approximate_size, count

Line = tuple[str, str]
Moved = tuple[Replicas, Replicas, int]
"""A row before and after, and the bytes of its partition, -1 if unknown."""

SHOWN = 12
"""The most brokers of a band that are shown; those that were outside come first."""

_PATHS = 3
"""The most log directories that a line names: their paths are long, and the bars name them too."""

PAIRS = 8
"""The most pairs of brokers that a summary of moves names."""

_WIDTH = 24
"""The columns of a bar: twice the share, so that the middle is the share."""


def say_bands(balance: PlannedBalance, brokers: Iterable[Broker]) -> Iterator[Line]:
    """Say of each load which brokers are outside its band, and show their bars."""
    racks = {broker.id: broker.rack for broker in brokers}
    for band in balance.bands:
        yield f"by {_name(band)}", " · ".join(_sum_up(band, balance))
        if band.outside:
            yield from _list_bars(band, racks)


def say_directories(planned: PlannedDirectories) -> Iterator[Line]:
    """Say which log directories are outside their bands, and show their bars by broker."""
    yield "log directories", " · ".join(_sum_up_directories(planned))
    shown = planned.bands[:SHOWN]
    for each in shown:
        yield f"broker {each.broker}", f"{_show(each, LoadKind.DISK)} · {each.path}"
    if len(planned.bands) > len(shown):
        yield "others", f"{len(planned.bands) - len(shown):,} more"


def _sum_up_directories(planned: PlannedDirectories) -> Iterator[str]:
    yield f"{count(planned.examined, 'broker')} with several"
    within, emptied = f"{planned.within_percent:g} %", set(planned.emptied)
    for broker, path in planned.emptied:
        yield f"{path} of broker {broker} is emptied"
    outside = [e for e in planned.bands if e.outside and (e.broker, e.path) not in emptied]
    if outside:
        are = "is" if len(outside) == 1 else "are"
        yield f"{len(outside):,} {are} more than {within} off the share"
    elif not emptied:
        yield f"each is within {within} of its share"
        return
    left = [each for each in planned.bands if not each.low <= each.after <= each.high]
    if left:
        named = ", ".join(f"{each.broker}:{each.path}" for each in left[:_PATHS])
        more = f" and {len(left) - _PATHS:,} more" if len(left) > _PATHS else ""
        yield f"out of reach for {len(left):,}: {named}{more}"
    elif outside:
        most = planned.within_percent
        yield f"all within {_find_limit(planned.bands, most) or most:g} % afterwards"


def say_reason(balance: PlannedBalance, old: Replicas, new: Replicas) -> str:
    """Say from which broker to which one a replica goes, and how far both were from their shares.

    By the first load of which one of them was outside its band; empty if nothing is copied.
    """
    gives, takes = sorted({*old} - {*new}), sorted({*new} - {*old})
    bands = [band for band in balance.bands if not band.of_leaders]
    if not (gives and takes and bands):
        return ""
    band = next((b for b in bands if {*gives, *takes}.intersection(b.outside)), bands[0])
    off = {each.broker: f" {_say_off(each, each.before)}".rstrip() for each in band.brokers}
    sides = (
        ", ".join(f"{broker}{off.get(broker, '')}" for broker in side) for side in (gives, takes)
    )
    by = f" by {_name(band)}" if len(bands) > 1 else ""
    return "from {} to {}".format(*sides) + by


def sum_up_pairs(
    balance: PlannedBalance, moved: Iterable[Moved], brokers: Iterable[Broker]
) -> Iterator[Line]:
    """Say which brokers give most to which ones: replicas, and bytes if all sizes are known."""
    places = {broker.id: (broker.rack or "", broker.id) for broker in brokers}
    replicas: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    unknown = False
    for old, new, size in moved:
        # Of several copies in a row, each stays in its rack if it can.
        gives, takes = (
            sorted(side, key=lambda broker: places.get(broker, ("", broker)))
            for side in ({*old} - {*new}, {*new} - {*old})
        )
        for give, take in zip(gives, takes, strict=False):
            reason = say_reason(balance, (give,), (take,))
            replicas[reason] += 1
            sizes[reason] += size
            unknown |= size < 0
    order = replicas if unknown else sizes
    for reason in sorted(replicas, key=lambda reason: (-order[reason], reason))[:PAIRS]:
        amount = "" if unknown else f", {approximate_size(sizes[reason])}"
        yield reason, f"{count(replicas[reason], 'replica')}{amount}"
    if (more := len(replicas) - PAIRS) > 0:
        yield "others", f"between {count(more, 'more pair')} of brokers"


def _name(band: LoadBand) -> str:
    if band.by is LoadKind.COUNT:
        return "leaders" if band.of_leaders else "replicas"
    return f"{band.by} of leaders" if band.of_leaders else str(band.by)


def _sum_up(band: LoadBand, balance: PlannedBalance) -> Iterator[str]:
    most, over = balance.within_percent, balance.over_percent
    # A share of 3 leaders has 2 and 4 within 10 %: limits of counts are rounded to whole ones.
    counted = band.by is LoadKind.COUNT and over is None
    rest = [each for each in band.brokers if each.broker not in band.outside]
    rounded = counted and not all(_is_near(each, each.before, most) for each in rest)
    if band.outside:
        are = "is" if len(band.outside) == 1 else "are"
        apart = (
            f"more than {most:g} % off the share" if over is None else f"more than {over:g} % full"
        )
        yield f"{count(len(band.outside), 'broker')} {are} {apart}"
        left = [each for each in band.brokers if not each.low <= each.after <= each.high]
        aim = _find_limit(band.brokers, most)
        rounded |= counted and aim is None and not left
        if left:
            listed = ", ".join(str(each.broker) for each in left[:SHOWN])
            more = f" and {len(left) - SHOWN:,} more" if len(left) > SHOWN else ""
            yield f"out of reach for {count(len(left), 'broker')}: {listed}{more}"
        elif over is None:
            yield f"all within {aim or most:g} % afterwards"
        else:
            yield "none afterwards"
    else:
        near = f"within {most:g} % of its share" if over is None else f"at most {over:g} % full"
        yield f"every broker is {near}"
    if rounded:
        yield f"limits are rounded to whole {_name(band)}"


def _find_limit(bands: Sequence[BrokerBand | DirectoryBand], percent: float) -> float | None:
    """Return half of some percent or all of it, the least that a plan keeps; None if neither."""
    limits = (percent / 2, percent)
    return next((n for n in limits if all(_is_near(b, b.after, n) for b in bands)), None)


def _is_near(each: BrokerBand | DirectoryBand, amount: int, percent: float) -> bool:
    """Return whether an amount is within some percent of a share, as both are shown."""
    return abs(amount - each.share) <= each.share * (percent + 0.5) / 100


def _list_bars(band: LoadBand, racks: Mapping[int, str | None]) -> Iterator[Line]:
    outside = [each for each in band.brokers if each.broker in band.outside]
    rest = [each for each in band.brokers if each.broker not in band.outside]
    shown = sorted(
        (outside + rest)[:SHOWN], key=lambda each: (racks.get(each.broker) or "", each.broker)
    )
    for each in shown:
        rack = racks.get(each.broker)
        yield (
            f"broker {each.broker}",
            " ".join([_show(each, band.by), *([f"· rack {rack}"] if rack else [])]),
        )
    if len(band.brokers) > len(shown):
        yield "others", count(len(band.brokers) - len(shown), "more broker")


def _show(each: BrokerBand | DirectoryBand, by: LoadKind) -> str:
    say = AMOUNTS[by]
    before = f"{say(each.before)} {_say_off(each, each.before)}".rstrip()
    return f"{_draw(each)} {before} → {say(each.after)} {_say_off(each, each.after)}".rstrip()


def _draw(each: BrokerBand | DirectoryBand) -> str:
    """Draw the load after the plan, the one before, and the share: `███████░░|·····`.

    Full: what is there before and after. Light: what goes. Medium: what comes. `|`: the share.
    """
    top = max(2 * each.share, each.before, each.after, 1)
    before, after, share = (
        round(_WIDTH * amount / top) for amount in (each.before, each.after, each.share)
    )
    cells = []
    for cell in range(_WIDTH):
        if cell == share:
            cells.append("|")
        elif cell < min(before, after):
            cells.append("█")
        elif cell < after:
            cells.append("▓")
        elif cell < before:
            cells.append("░")
        else:
            cells.append("·")
    return "".join(cells)


def _say_off(each: BrokerBand | DirectoryBand, amount: int) -> str:
    if not each.share:
        return ""
    return f"({round(100 * (amount - each.share) / each.share):+d} %)"
