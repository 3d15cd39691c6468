"""Water-filling: the least sum of squares under caps of brokers and bounds of racks.

Units go one by one to the broker where they cost least. Caps and rack bounds form a laminar family,
so the counts that obey them are an M-convex set. On it, this greedy is optimal for every symmetric
convex measure at once (Frank and Murota, "Decreasing minimization on M-convex sets", arXiv
2007.09616). The code finds the same result by bisection of the price, so that a million units cost
no more than ten.

Proof of the bisection: docs/explanation/placement-proofs.md, "Water-filling".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_UNBOUND = 2**62


class Region(NamedTuple):
    """Brokers that together take at least `low` and at most `high` units: a rack."""

    members: Sequence[int]
    low: int
    high: int


class Basin(NamedTuple):
    """Where units are poured: heights, room above them, and what a squared height costs.

    All lists run over brokers. `ranks` sorts brokers of equal height, the first one first.
    """

    heights: Sequence[int]
    rooms: Sequence[int]
    ranks: Sequence[tuple[int, ...]] | Sequence[int]
    scales: Sequence[int]


def fill(basin: Basin, regions: Sequence[Region], units: int) -> list[int]:
    """Pour `units` and return how many each broker got.

    Regions are disjoint and cover all brokers; their bounds and the rooms admit `units`.
    Cost: O(brokers), O(kinds of brokers) for each halving of the range of prices, a sort of ties.
    """
    got = [0] * len(basin.heights)
    shapes = [_Shape(basin, region.members) for region in regions]
    price = _level(shapes, regions, units)
    free = []
    for shape, region in zip(shapes, regions, strict=True):
        if shape.poured(price) < region.high and shape.poured(price + 1) >= region.low:
            free.append(region)
            continue
        alone = region.high if shape.poured(price) >= region.high else region.low
        unbound = [Region(region.members, 0, _UNBOUND)]
        _pour(basin, unbound, _level([shape], unbound, alone), alone, got)
        units -= alone
    if free:
        _pour(basin, free, price, units, got)
    return got


class _Shape:
    """A region's brokers by kind: how many there are of each height, room and scale."""

    def __init__(self, basin: Basin, members: Iterable[int]) -> None:
        heights, rooms, scales = basin.heights, basin.rooms, basin.scales
        self._kinds = Counter((heights[b], rooms[b], scales[b]) for b in members).items()

    def poured(self, price: int) -> int:
        """Return how many units are cheaper than `price`."""
        return sum(times * _below(price, *kind) for kind, times in self._kinds)

    def dearest(self) -> int:
        """Return a price above that of every unit that fits."""
        return max((s * (2 * (h + r) + 1) for (h, r, s), _ in self._kinds), default=0)


def _below(price: int, height: int, room: int, scale: int) -> int:
    """Return how many units cheaper than `price` fit on a broker.

    The unit that lifts a broker from height h to h + 1 costs scale * (2 h + 1).
    """
    # The largest n with scale * (2 * (height + n - 1) + 1) <= price - 1, solved for n in integers.
    units = ((price - 1) // scale + 1) // 2 - height
    return 0 if units <= 0 else min(units, room)


def _level(shapes: Sequence[_Shape], regions: Sequence[Region], units: int) -> int:
    """Return the highest price at which all cheaper units together are no more than `units`."""
    # At price `low` no more than `units` fit, at price `high` all that fits at all.
    low, high = 0, max((shape.dearest() for shape in shapes), default=0) + 1
    bounded = [
        (shape, region.low, region.high) for shape, region in zip(shapes, regions, strict=True)
    ]
    while high - low > 1:
        middle = (low + high) // 2
        poured = sum(min(max(shape.poured(middle), least), most) for shape, least, most in bounded)
        if poured <= units:
            low = middle
        else:
            high = middle
    return low


def _pour(basin: Basin, regions: Sequence[Region], price: int, units: int, got: list[int]) -> None:
    """Pour all units below `price`, then those at `price` to whoever stands first in line."""
    heights, rooms, scales = basin.heights, basin.rooms, basin.scales
    needs, spare, ties = [], [], []
    for j, region in enumerate(regions):
        below = 0
        for b in region.members:
            got[b] = n = _below(price, heights[b], rooms[b], scales[b])
            below += n
            if n < rooms[b] and scales[b] * (2 * (heights[b] + n) + 1) == price:
                ties.append((basin.ranks[b], b, j))
        units -= below
        needs.append(max(region.low - below, 0))
        spare.append(region.high - below)
    free = units - sum(needs)
    for _, b, j in sorted(ties):
        if spare[j] and (needs[j] or free):
            got[b] += 1
            spare[j] -= 1
            if needs[j]:
                needs[j] -= 1
            else:
                free -= 1
