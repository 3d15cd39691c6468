"""Reports of a workflow: comments and issues on a code host, and notifications to a webhook.

Belongs here: the comments and issues of GitHub and GitLab, the plan that a merged request approves,
and what a webhook is sent. Forbidden here: Kafka, files but the event a runner hands over, and
the token or the address of a webhook in any text.
"""

from reconciler.codehost.approvals import find_approved
from reconciler.codehost.comments import (
    report_drift,
    report_no_drift,
    report_no_plan,
    report_plan,
)
from reconciler.codehost.gradual import report_gradual
from reconciler.codehost.host import CodeHost, PullRequest, Run
from reconciler.codehost.notices import notice_apply, notice_drift
from reconciler.codehost.progress import Present, read_present
from reconciler.codehost.results import report_moves, report_result
from reconciler.codehost.runs import find_links, find_run
from reconciler.codehost.targets import judge_targets
from reconciler.codehost.webhook import Webhook, render_json, render_slack

__all__ = [
    "CodeHost",
    "Present",
    "PullRequest",
    "Run",
    "Webhook",
    "find_approved",
    "find_links",
    "find_run",
    "judge_targets",
    "notice_apply",
    "notice_drift",
    "read_present",
    "render_json",
    "render_slack",
    "report_drift",
    "report_gradual",
    "report_moves",
    "report_no_drift",
    "report_no_plan",
    "report_plan",
    "report_result",
]
