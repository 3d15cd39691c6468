"""Water-filling: the least sum of squares under caps of brokers and bounds of racks.

Units are poured one by one onto whatever is lowest. Caps and rack bounds form a laminar family,
so what can be reached is an M-convex set, on which this greedy is exact, and best for every
symmetric convex measure at once (Frank and Murota, "Decreasing minimization on M-convex sets",
arXiv 2007.09616). Here the level is found by bisection instead, so that a million units cost no
more than ten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


_UNBOUND = 2**62


class Region(NamedTuple):
    """Brokers that together take at least `low` and at most `high` units: a rack."""

    members: Sequence[int]
    low: int
    high: int


class Basin(NamedTuple):
    """Where units are poured: heights, room above them, and what a squared height costs.

    Units: all lists run over brokers. `ranks` sorts brokers of equal height, lowest first.
    """

    heights: Sequence[int]
    rooms: Sequence[int]
    ranks: Sequence[tuple[int, ...]] | Sequence[int]
    scales: Sequence[int] | None = None

    def poured(self, members: Sequence[int], price: int) -> list[int]:
        """Return the units on each member, if all units cheaper than `price` are poured.

        The unit that lifts broker b from height h to h + 1 costs scale[b] * (2 h + 1); without
        scales its price is h itself, which is the same order in smaller numbers.
        """
        heights, rooms, scales = self.heights, self.rooms, self.scales
        if scales is None:
            return [min(max(price - heights[b], 0), rooms[b]) for b in members]
        tops = [((price - 1) // scales[b] + 1) // 2 for b in members]
        return [
            min(max(top - heights[b], 0), rooms[b]) for b, top in zip(members, tops, strict=True)
        ]

    def dearest(self, members: Sequence[int]) -> int:
        """Return a price above that of every unit that fits."""
        tops = [self.heights[b] + self.rooms[b] for b in members]
        if self.scales is None:
            return max(tops, default=0) + 1
        return (
            max(
                (self.scales[b] * (2 * top + 1) for b, top in zip(members, tops, strict=True)),
                default=0,
            )
            + 1
        )


def fill(basin: Basin, regions: Sequence[Region], units: int) -> list[int]:
    """Pour `units` and return how many each broker got.

    Regions are disjoint and cover all brokers; their bounds and the rooms admit `units`.
    Cost: O(brokers) for each halving of the range of heights, and a sort of the ties.
    """
    got = [0] * len(basin.heights)
    price = _level(basin, regions, units)
    free = []
    for region in regions:
        below = sum(basin.poured(region.members, price))
        beyond = sum(basin.poured(region.members, price + 1))
        if below < region.high and beyond >= region.low:
            free.append(region)
            continue
        alone = region.high if below >= region.high else region.low
        unbound = [Region(region.members, 0, _UNBOUND)]
        _pour(basin, unbound, _level(basin, unbound, alone), alone, got)
        units -= alone
    if free:
        _pour(basin, free, price, units, got)
    return got


def _level(basin: Basin, regions: Sequence[Region], units: int) -> int:
    """Return the highest price at which all cheaper units together are no more than `units`."""
    low = min((basin.heights[b] for region in regions for b in region.members), default=0)
    high = max((basin.dearest(region.members) for region in regions), default=0)
    while high - low > 1:
        middle = (low + high) // 2
        poured = sum(
            min(max(sum(basin.poured(region.members, middle)), region.low), region.high)
            for region in regions
        )
        if poured <= units:
            low = middle
        else:
            high = middle
    return low


def _pour(basin: Basin, regions: Sequence[Region], price: int, units: int, got: list[int]) -> None:
    """Pour all units below `price`, then those at `price` to whoever stands first in line."""
    needs, spare, ties = {}, {}, []
    for j, region in enumerate(regions):
        below = basin.poured(region.members, price)
        upto = basin.poured(region.members, price + 1)
        for b, n, more in zip(region.members, below, upto, strict=True):
            got[b] = n
            if more > n:
                ties.append((basin.ranks[b], b, j))
        units -= sum(below)
        needs[j] = max(region.low - sum(below), 0)
        spare[j] = region.high - sum(below)
    free = units - sum(needs.values())
    for _, b, j in sorted(ties):
        if spare[j] and (needs[j] or free):
            got[b] += 1
            spare[j] -= 1
            if needs[j]:
                needs[j] -= 1
            else:
                free -= 1
