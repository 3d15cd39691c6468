"""The strategies of placement by name, and the entry: a problem in, checked rows out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from reconciler.placement.check import check_placement
from reconciler.placement.optimal import place_optimal
from reconciler.placement.problem import Placed, Problem
from reconciler.placement.striped import place_striped

STRATEGIES: Mapping[str, Callable[[Problem], Placed]] = MappingProxyType(
    {"optimal": place_optimal, "striped": lambda problem: Placed(place_striped(problem))}
)


def place_replicas(problem: Problem, strategy: str = "optimal") -> Placed:
    """Place all wishes of a problem and return the new rows by topic, and how good they are.

    Errors: ValueError if a wish asks for more replicas than there are brokers (the caller
    refuses that first); AssertionError if the checker finds fault with the strategy's answer.
    """
    for wish in problem.wishes:
        if not 0 < wish.replication <= len(problem.brokers):
            raise ValueError(
                f"{wish.topic}: {wish.replication} replicas, {len(problem.brokers)} brokers"
            )
    placed = STRATEGIES[strategy](problem)
    violations = check_placement(problem, placed.rows)
    if violations:
        raise AssertionError("; ".join(violations))
    return placed
