"""Reports on a code host: one comment per cluster, and one issue if it has drifted.

Belongs here: the comments and issues of GitHub and GitLab, and the plan that a merged request
shows. Forbidden here: Kafka, files but the event a runner hands over, and the token in any text.
"""

from reconciler.codehost.comments import (
    Moves,
    find_approved,
    report_drift,
    report_no_drift,
    report_no_plan,
    report_plan,
)
from reconciler.codehost.host import CodeHost, PullRequest, Run
from reconciler.codehost.runs import find_run

__all__ = [
    "CodeHost",
    "Moves",
    "PullRequest",
    "Run",
    "find_approved",
    "find_run",
    "report_drift",
    "report_no_drift",
    "report_no_plan",
    "report_plan",
]
