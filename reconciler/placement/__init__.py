"""Stage 3: where new replicas go. Brokers, load and wishes in; replica lists out.

Belongs here: the problem, the strategies, a checker and a measure that share no code with them.
Forbidden here: specs, configs and clients. Same input, same answer, whatever its order.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.placement.bounds import share_evenly
from reconciler.placement.check import check_placement
from reconciler.placement.given_rows import Judged, prefer_rows
from reconciler.placement.kafka_placement import place_like_kafka
from reconciler.placement.loss import (
    Exposed,
    Loss,
    count_unwritable,
    expose,
    lose_each_broker,
    lose_each_rack,
    measure_losses,
)
from reconciler.placement.measure import Quality, measure_balance, measure_quality
from reconciler.placement.moving import (
    MoveGoal,
    MoveProblem,
    MoveWish,
    check_moves,
    count_moves,
    least_moves,
    move_replicas,
)
from reconciler.placement.optimal import place_optimal
from reconciler.placement.problem import Placed, Problem, Wish, count_load
from reconciler.placement.striped import place_striped
from reconciler.placement.weigh import ReplicaWeights, Weigh, name_estimates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "STRATEGIES",
    "Exposed",
    "Judged",
    "Loss",
    "MoveGoal",
    "MoveProblem",
    "MoveWish",
    "Placed",
    "Problem",
    "Quality",
    "ReplicaWeights",
    "Weigh",
    "Wish",
    "check_moves",
    "check_placement",
    "count_load",
    "count_moves",
    "count_unwritable",
    "expose",
    "least_moves",
    "lose_each_broker",
    "lose_each_rack",
    "measure_balance",
    "measure_losses",
    "measure_quality",
    "move_replicas",
    "name_estimates",
    "place_like_kafka",
    "place_replicas",
    "prefer_rows",
    "share_evenly",
]

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
