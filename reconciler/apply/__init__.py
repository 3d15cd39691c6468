"""Stage 5: a Plan becomes outcomes on a cluster, through a reader and a writer.

Belongs here: the state of each topic (stale, done or left), the order and size of requests, reading
again if an answer was lost, and waiting until every broker shows the result. Forbidden here: specs,
placement, clients, and any step that the plan does not hold.
"""

from reconciler.apply.ending import Applied, Ended, Ending, QuotaExceeded, StepAnswered, end_run
from reconciler.apply.engine import run_plan
from reconciler.apply.kinds import PHASES
from reconciler.apply.moving import MovesNote, MovesNoted, MovesSummary, MovesWatched, run_moves

__all__ = [
    "PHASES",
    "Applied",
    "Ended",
    "Ending",
    "MovesNote",
    "MovesNoted",
    "MovesSummary",
    "MovesWatched",
    "QuotaExceeded",
    "StepAnswered",
    "end_run",
    "run_moves",
    "run_plan",
]
