"""Stage 5: a Plan becomes outcomes on a cluster, through a reader and a writer.

Belongs here: telling what is stale, done or left, the order and size of requests, looking again
where an answer was lost, and waiting until every broker shows the result. Forbidden here: specs,
placement, clients, and any step that the plan does not hold.
"""

from reconciler.apply.applied import Applied, Ended, Ending, StepAnswered, end_run
from reconciler.apply.engine import PHASES, apply_plan

__all__ = ["PHASES", "Applied", "Ended", "Ending", "StepAnswered", "apply_plan", "end_run"]
