"""Cycles of negative price in a residual network: without one, a flow is cheapest (Klein 1967).

docs/explanation/placement-proofs.md, "One topic is a flow".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

A = TypeVar("A", bound=tuple[int, ...])
"""An arc: its source, its target, its price, and whatever else its network keeps."""


def find_negative_cycle(nodes: int, arcs: Sequence[A]) -> list[A] | None:
    """Find a cycle of negative price by Bellman-Ford from everywhere at once.

    Returns the arcs in order, each from where the one before it ends; None if there is no cycle.
    """
    distance = [0] * nodes
    via: list[A | None] = [None] * nodes
    # All distances start at 0, as if one more node had a free arc to every node. Without a
    # negative cycle, they are final within `nodes` rounds.
    for _ in range(nodes + 1):
        improved = False
        for arc in arcs:
            reach = distance[arc[0]] + arc[2]
            if reach < distance[arc[1]]:
                distance[arc[1]] = reach
                via[arc[1]] = arc
                improved = True
        if not improved:
            return None
        if cycle := _cycle_of(via):
            return cycle
    raise AssertionError("prices fell without a cycle")


def _cycle_of(via: Sequence[A | None]) -> list[A] | None:
    """Return a cycle of the search's parents, which is of negative price if there is one."""
    walked = [-1] * len(via)  # the start of the walk that passed each node
    for start in range(len(via)):
        node = start
        while walked[node] < 0 and (arc := via[node]):
            walked[node] = start
            node = arc[0]
        if walked[node] == start:  # not an older walk, which found no cycle behind this node
            cycle: list[A] = []
            while (arc := via[node]) and arc not in cycle:
                cycle.append(arc)
                node = arc[0]
            return cycle[::-1]
    return None
