"""What a code host is told: one comment for each cluster, and one issue where it has drifted.

Belongs here: the comments and issues of GitHub and GitLab, and the plan that a merged request
shows. Forbidden here: Kafka, files but the event a runner hands over, and the token in any text.
"""

from reconciler.forge.approval import find_approved
from reconciler.forge.host import Forge, Request, Run
from reconciler.forge.runs import find_run
from reconciler.forge.tell import tell_drift, tell_no_drift, tell_no_plan, tell_plan

__all__ = [
    "Forge",
    "Request",
    "Run",
    "find_approved",
    "find_run",
    "tell_drift",
    "tell_no_drift",
    "tell_no_plan",
    "tell_plan",
]
