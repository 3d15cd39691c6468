"""Moves of replicas: a plan of moves becomes outcomes, a few partitions at a time, throttled.

Belongs here: which rows begin, their throttles, the watch over the cluster, and what is taken back
at the end. Forbidden here: what the rest of `apply` must not do, a cancel, and a second target for
a partition in flight.
"""

from reconciler.apply.moving.events import MovesNote, MovesNoted, MovesSummary, MovesWatched
from reconciler.apply.moving.run import run_moves

__all__ = ["MovesNote", "MovesNoted", "MovesSummary", "MovesWatched", "run_moves"]
