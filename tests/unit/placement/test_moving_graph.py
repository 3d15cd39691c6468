"""Cheapest paths and cycles of graphs that are small enough to check by hand."""

from __future__ import annotations

import pytest

from reconciler.placement.moving.graph import find_cheapest, find_negative_cycle, find_prices

EVERYTHING = 0b1111


def mask(*brokers: int) -> int:
    return sum(1 << b for b in brokers)


def test_a_longer_path_that_costs_less_is_found() -> None:
    arcs = {-1: [0, mask(2), 0, 0], 0: [mask(1), 0, mask(3), 0], 1: [mask(2, 3), 0, 0, 0]}
    found = find_prices(arcs, mask(0), EVERYTHING)
    assert {price: brokers for price, brokers in found.items() if brokers} == {
        0: mask(0, 1),
        -1: mask(2, 3),
    }
    path = find_cheapest(arcs, mask(0), mask(3), found)
    assert path == [(0, 1, 0), (1, 2, -1), (2, 3, 0)]


def test_of_the_cheapest_paths_the_one_with_the_fewest_arcs_is_found() -> None:
    arcs = {0: [mask(1), mask(2), mask(3), 0], 1: [mask(2), 0, 0, 0], -1: [0, 0, mask(3), 0]}
    found = find_prices(arcs, mask(0), EVERYTHING)
    assert find_cheapest(arcs, mask(0), mask(3), found) == [(0, 1, 0), (1, 2, 0), (2, 3, -1)]
    arcs[0][0] |= mask(2)
    assert find_cheapest(arcs, mask(0), mask(3), found) == [(0, 2, 0), (2, 3, -1)]


def test_a_cycle_of_negative_price_ends_the_search() -> None:
    arcs = {-1: [mask(1), 0, 0, 0], 0: [0, mask(0), 0, 0]}
    with pytest.raises(AssertionError, match="a cycle costs less than 0"):
        find_prices(arcs, mask(0), EVERYTHING)


def test_a_path_stays_within_its_brokers() -> None:
    arcs = {0: [mask(1), mask(3), 0, 0]}
    found = find_prices(arcs, mask(0), mask(0, 3))
    assert find_cheapest(arcs, mask(0), mask(3), found) is None


def test_a_cycle_through_the_sink_is_found_without_its_arcs() -> None:
    arcs = {-1: [mask(1), 0, 0, 0], 1: [0, mask(0), 0, 0]}
    groups = [EVERYTHING] * 4
    assert find_negative_cycle(arcs, groups, mask(3), mask(1)) is None
    assert find_negative_cycle(arcs, groups, mask(0), mask(1)) == [(0, 1, -1)]


def test_a_cycle_stays_within_a_group() -> None:
    arcs = {-1: [mask(1), 0, 0, 0], 0: [0, mask(0), 0, 0]}
    assert find_negative_cycle(arcs, [mask(0), mask(1), 0, 0], 0, 0) is None
    assert find_negative_cycle(arcs, [mask(0, 1)] * 2 + [0, 0], 0, 0) == [(0, 1, -1), (1, 0, 0)]
