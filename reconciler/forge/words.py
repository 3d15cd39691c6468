"""The markdown of comments and issues: a plan with its seal, or why there is none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from reconciler.plan import fingerprint_plan
from reconciler.plan.markdown import COMMENT_LIMIT, mark_cluster, render_markdown
from reconciler.plan.markdown.marks import code, fence
from reconciler.plan.text import count_changes

if TYPE_CHECKING:
    from reconciler.forge.host import Run
    from reconciler.model import Plan

REASON_LIMIT = 20_000
"""Of why there is no plan, so much is told; the run has all of it. Units: characters."""

_SEAL = re.compile(r"<!-- reconciler:planned commit=([0-9a-f]+) fingerprint=([0-9a-f]{64}) -->")


class Seal(NamedTuple):
    """What the last line of a comment, not to be seen, says of the plan above it."""

    commit: str
    fingerprint: str

    def __str__(self) -> str:
        return f"<!-- reconciler:planned commit={self.commit} fingerprint={self.fingerprint} -->"


def read_seal(body: str) -> Seal | None:
    """Read the seal of a comment: its last line, so that no name or value can forge one."""
    found = _SEAL.fullmatch(body.rstrip().rpartition("\n")[2])
    return Seal(found[1], found[2]) if found else None


def mark_drift(cluster: str) -> str:
    """Return the line, not to be seen, that the issue of a cluster begins with."""
    return f"<!-- reconciler:drift cluster={quote(cluster, safe='')} -->"


def write_plan(plan: Plan, saved: str | None, run: Run) -> str:
    """Write the comment that shows a plan, ending in its seal."""
    commit = run.request.head if run.request else run.commit
    seal = Seal(commit, fingerprint_plan(plan))
    tail = f"<br>\n<sub>Planned for {commit[:12]} by {_link(run)}</sub>\n\n{seal}\n"
    return render_markdown(plan, saved=saved, limit=_room(tail)).rstrip() + tail


def write_no_plan(cluster: str, reason: str, run: Run) -> str:
    """Write the comment that stands where a plan cannot: it has no seal, so nothing is approved."""
    head = f"{mark_cluster(cluster)}\n### Kafka plan for {code(cluster)}: could not be made"
    return f"{head}\n\n{_quote(reason)}\n\n<sub>From {_link(run)}</sub>\n"


def write_drift(plan: Plan, saved: str | None, run: Run) -> tuple[str, str]:
    """Write title and text of the issue that shows how a cluster differs from its specs."""
    head = (
        f"{mark_drift(plan.cluster)}\n{code(plan.cluster)} is not as specified at "
        f"{run.commit[:12]}. Either it was changed by other means, or what was merged is not "
        "applied. Apply the plan below, or bring the specs in line with the cluster. This text "
        f"is kept up to date, and the issue closes once both agree. Last seen by {_link(run)}."
        "\n\n"
    )
    counts = ", ".join(count_changes(plan))
    text = head + render_markdown(plan, saved=saved, limit=_room(head))
    return f"Kafka drift on {plan.cluster}: {counts}", text


def write_no_drift(cluster: str, reason: str, run: Run) -> tuple[str, str]:
    """Write title and text of the issue that says why drift could not be looked for."""
    head = (
        f"{mark_drift(cluster)}\nNobody knows whether {code(cluster)} is as specified at "
        f"{run.commit[:12]}: it could not be looked at by {_link(run)}."
    )
    return f"Kafka drift on {cluster}: could not be looked for", f"{head}\n\n{_quote(reason)}\n"


def write_agreement(cluster: str, run: Run) -> str:
    """Write why an issue is closed."""
    return f"{code(cluster)} is as specified at {run.commit[:12]} again, says {_link(run)}."


def _room(beside: str) -> int:
    return COMMENT_LIMIT - len(beside.encode())


def _link(run: Run) -> str:
    return f"[this run]({run.url})"


def _quote(reason: str) -> str:
    """Set what a run said as code, so that nothing in it is interpreted."""
    reason = reason.strip() or "The run said nothing; its log may."
    if len(reason) > REASON_LIMIT:
        whole, _, _ = reason[:REASON_LIMIT].rpartition("\n")
        left = reason.count("\n") - whole.count("\n")
        reason = f"{whole}\n… {left:,} more lines in the log of the run"
    return fence(reason, "text")
