"""Existing rows that must change: which replicas move where, and who leads then.

Belongs here: the problem, the solver, and a checker that shares no code with it. Only what a wish
names moves. Forbidden here: specs, configs and clients.
"""

from reconciler.placement.moving.check import check_moves, count_moves, least_moves
from reconciler.placement.moving.moves import move_replicas
from reconciler.placement.moving.problem import MoveGoal, MoveProblem, MoveWish

__all__ = [
    "MoveGoal",
    "MoveProblem",
    "MoveWish",
    "check_moves",
    "count_moves",
    "least_moves",
    "move_replicas",
]
