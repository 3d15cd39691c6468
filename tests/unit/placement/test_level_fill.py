"""Water-filling, as lists of heights and what is poured on them."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from reconciler.placement.level_fill import Basin, Region, fill


def pour(
    heights: list[int],
    units: int,
    rooms: list[int] | None = None,
    regions: list[Region] | None = None,
    scales: list[int] | None = None,
) -> list[int]:
    """Fill brokers whose ranks are their numbers."""
    n = len(heights)
    basin = Basin(heights, rooms or [99] * n, list(range(n)), scales or [1] * n)
    return fill(basin, regions or [Region(range(n), 0, units)], units)


def test_the_lowest_are_filled_first() -> None:
    assert pour([3, 1, 0], 3) == [0, 1, 2]


def test_ties_go_to_who_stands_first_in_line() -> None:
    assert pour([0, 0, 0], 2) == [1, 1, 0]


def test_rooms_are_kept() -> None:
    assert pour([0, 0, 5], 6, rooms=[1, 2, 9]) == [1, 2, 3]


def test_a_region_gets_its_least_though_it_stands_high() -> None:
    regions = [Region([0, 1], 0, 9), Region([2], 3, 9)]
    assert pour([0, 0, 9], 5, regions=regions) == [1, 1, 3]


def test_a_region_gets_no_more_than_its_most() -> None:
    regions = [Region([0, 1], 0, 3), Region([2], 0, 9)]
    assert pour([0, 0, 9], 5, regions=regions) == [2, 1, 2]


def test_units_settle_in_inverse_proportion_to_scales() -> None:
    assert pour([0, 0], 8, scales=[1, 3]) == [6, 2]


def test_a_million_units() -> None:
    assert pour([0, 10, 0], 1_000_000, rooms=[10**6] * 3) == [333_337, 333_327, 333_336]


@pytest.mark.parametrize("seed", range(60))
def test_nothing_else_has_a_smaller_sum_of_squares(seed: int) -> None:
    rng = Random(seed)
    heights = [rng.randrange(5) for _ in range(4)]
    rooms = [rng.randrange(1, 4) for _ in range(4)]
    scales = rng.choice([[1] * 4, [rng.randrange(1, 4) for _ in range(4)]])
    regions = [Region([0, 2], rng.randrange(3), 99), Region([1, 3], 0, rng.randrange(2, 6))]
    choices = [
        poured
        for poured in product(*(range(room + 1) for room in rooms))
        if poured[0] + poured[2] >= regions[0].low and poured[1] + poured[3] <= regions[1].high
    ]
    units = sum(rng.choice(choices))
    best = min(_price(heights, p, scales) for p in choices if sum(p) == units)
    found = pour(heights, units, rooms, regions, scales)
    assert tuple(found) in choices
    assert sum(found) == units
    assert _price(heights, found, scales) == best


def _price(heights: list[int], poured: tuple[int, ...] | list[int], scales: list[int]) -> int:
    return sum(s * (h + p) ** 2 for h, p, s in zip(heights, poured, scales, strict=True))
