"""Telling: the one comment or issue of a cluster is written, replaced, or closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.errors import UsageError
from reconciler.forge.rest import UnansweredError
from reconciler.forge.words import (
    mark_drift,
    write_agreement,
    write_drift,
    write_no_drift,
    write_no_plan,
    write_plan,
)
from reconciler.plan.markdown import mark_cluster
from reconciler.plan.text import count_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reconciler.forge.host import Note, Request, Run
    from reconciler.model import Plan

LOOKS = 3


def tell_plan(run: Run, plan: Plan, saved: str | None = None) -> str:
    """Show a plan on the request; one without changes only where a comment stands already."""
    return _comment(
        run, plan.cluster, write_plan(plan, saved, run), create=bool(count_changes(plan))
    )


def tell_no_plan(run: Run, cluster: str, reason: str) -> str:
    """Say on the request that there is no plan, in place of one that holds no longer."""
    return _comment(run, cluster, write_no_plan(cluster, reason, run), create=True)


def _comment(run: Run, cluster: str, body: str, *, create: bool) -> str:
    number, forge = _request(run).number, run.forge

    def write() -> str:
        found = find_comment(forge.list_comments(number), cluster)
        if found:
            forge.update_comment(number, found.id, body)
            return f"comment {found.id} on request {number} updated"
        if not create:
            return f"no changes, so request {number} gets no comment"
        forge.create_comment(number, body)
        return f"comment on request {number} written"

    return _settle(write)


def find_comment(comments: Iterable[Note], cluster: str) -> Note | None:
    """Return the comment that a cluster's plan is shown in, the oldest if there are several."""
    return _find(comments, mark_cluster(cluster))


def tell_drift(run: Run, plan: Plan, saved: str | None = None) -> str:
    """Open or update the issue of a cluster that differs, and close that of one that agrees."""
    if not count_changes(plan):
        return _settle(lambda: _close(run, plan.cluster))
    return _open(run, plan.cluster, *write_drift(plan, saved, run))


def tell_no_drift(run: Run, cluster: str, reason: str) -> str:
    """Say in the issue of a cluster that it could not be looked at."""
    return _open(run, cluster, *write_no_drift(cluster, reason, run))


def _open(run: Run, cluster: str, title: str, body: str) -> str:
    def write() -> str:
        if found := _find(run.forge.list_issues(), mark_drift(cluster)):
            run.forge.update_issue(found.id, title, body)
            return f"issue {found.id} updated"
        run.forge.create_issue(title, body)
        return f"issue opened: {title}"

    return _settle(write)


def _close(run: Run, cluster: str) -> str:
    if found := _find(run.forge.list_issues(), mark_drift(cluster)):
        run.forge.close_issue(found.id, write_agreement(cluster, run))
        return f"issue {found.id} closed"
    return f"{cluster} is as specified"


def _find(notes: Iterable[Note], mark: str) -> Note | None:
    return next((note for note in notes if note.body.startswith(mark)), None)


def _settle(write: Callable[[], str]) -> str:
    """Write; where nobody knows whether that took effect, look and write again."""
    for _ in range(LOOKS - 1):
        try:
            return write()
        except UnansweredError:
            continue
    return write()


def _request(run: Run) -> Request:
    if run.request is None:
        raise UsageError("this run is for no pull request or merge request, so there is no comment")
    return run.request
