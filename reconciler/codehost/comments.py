"""The one comment or issue of a cluster: its markdown, how it is replaced, and what it approves.

A comment shows up to two plans: of changes, and of moves. It ends in an invisible seal: the commit
and the fingerprints of the plans above it, and the rows that are added. A merge approves the plans
that the comment's seal names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from reconciler.codehost.rest import UnansweredError
from reconciler.errors import CodeHostError, Finding, UsageError
from reconciler.plan import (
    COMMENT_LIMIT,
    Approval,
    code,
    fence,
    fingerprint_plan,
    list_new_rows,
    mark_cluster,
    pack_rows,
    render_markdown,
    unpack_rows,
    view_plan,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reconciler.codehost.host import Note, Run
    from reconciler.model import Plan

REASON_LIMIT = 20_000
"""The limit of the reason for a missing plan; the run's log has all of it. Units: characters."""

ROWS_LIMIT = COMMENT_LIMIT // 4
"""The limit of packed rows: the comment is for people first. Units: characters."""

_SEAL = re.compile(
    r"<!-- reconciler:planned commit=([0-9a-f]+) fingerprint=([0-9a-f]{64})"
    r"(?: moves=([0-9a-f]{64}))?(?: rows=([A-Za-z0-9+/]+=*))? -->"
)


class Seal(NamedTuple):
    """The content of the invisible last line of a comment: what identifies the plans above it.

    `moves` is the fingerprint of the plan of moves, empty if there is none. `rows` are the packed
    rows that the other plan adds; empty if there are none, or too many.
    """

    commit: str
    fingerprint: str
    rows: str = ""
    moves: str = ""

    def __str__(self) -> str:
        rows = f" rows={self.rows}" if self.rows else ""
        moves = f" moves={self.moves}" if self.moves else ""
        names = f"commit={self.commit} fingerprint={self.fingerprint}"
        return f"<!-- reconciler:planned {names}{moves}{rows} -->"


class Moves(NamedTuple):
    """A plan of moves, and the path of its file."""

    plan: Plan
    saved: str | None = None


def read_seal(body: str) -> Seal | None:
    """Read the seal in the last line of a comment: there, no name of a plan can forge it."""
    found = _SEAL.fullmatch(body.rstrip().rpartition("\n")[2])
    return Seal(found[1], found[2], found[4] or "", found[3] or "") if found else None


def mark_drift(cluster: str) -> str:
    """Return the invisible first line of the issue of a cluster."""
    return f"<!-- reconciler:drift cluster={quote(cluster, safe='')} -->"


def write_plan(plan: Plan, saved: str | None, run: Run, moves: Moves | None = None) -> str:
    """Write the comment that shows a plan, and one of moves below it, ending in their seal."""
    commit = run.request.head if run.request else run.commit
    packed = pack_rows(list_new_rows(plan))
    seal = Seal(
        commit,
        fingerprint_plan(plan),
        packed if len(packed) <= ROWS_LIMIT else "",
        fingerprint_plan(moves.plan) if moves else "",
    )
    text = _write_sealed(plan, saved, run, seal, moves)
    # The least text of a very large plan may need the room of its rows.
    fits = len(text.encode()) <= COMMENT_LIMIT
    return text if fits else _write_sealed(plan, saved, run, seal._replace(rows=""), moves)


def _write_sealed(plan: Plan, saved: str | None, run: Run, seal: Seal, moves: Moves | None) -> str:
    tail = f"<br>\nPlanned for {seal.commit[:12]} by {_link(run)}\n\n{seal}\n"
    if moves is not None:
        half = _room(tail) // 2
        # Without its marker, which belongs to the first line of a comment.
        shown = render_markdown(moves.plan, saved=moves.saved, limit=half).partition("\n")[2]
        tail = f"\n\n{shown.rstrip()}{tail}"
    return render_markdown(plan, saved=saved, limit=_room(tail)).rstrip() + tail


def write_no_plan(cluster: str, reason: str, run: Run) -> str:
    """Write the comment for a missing plan: it has no seal, so nothing is approved."""
    head = f"{mark_cluster(cluster)}\n### Kafka plan for {code(cluster)}: could not be made"
    return f"{head}\n\n{_quote(reason)}\n\nFrom {_link(run)}\n"


def write_drift(plan: Plan, saved: str | None, run: Run) -> tuple[str, str]:
    """Write title and text of the issue that shows how a cluster differs from its specs."""
    head = (
        f"{mark_drift(plan.cluster)}\n{code(plan.cluster)} is not as specified at "
        f"{run.commit[:12]}. Either it was changed by other means, or what was merged is not "
        "applied. Apply the plan below, or bring the specs in line with the cluster. This text "
        f"is kept up to date, and the issue closes once both agree. Last seen by {_link(run)}."
        "\n\n"
    )
    counts = ", ".join(view_plan(plan).to_do)
    text = head + render_markdown(plan, saved=saved, limit=_room(head))
    return f"Kafka drift on {plan.cluster}: {counts}", text


def write_no_drift(cluster: str, reason: str, run: Run) -> tuple[str, str]:
    """Write title and text of the issue that reports a failed drift check."""
    head = (
        f"{mark_drift(cluster)}\nIt is unknown whether {code(cluster)} is as specified at "
        f"{run.commit[:12]}: it could not be checked by {_link(run)}."
    )
    return f"Kafka drift on {cluster}: could not be checked", f"{head}\n\n{_quote(reason)}\n"


def write_agreement(cluster: str, run: Run) -> str:
    """Write why an issue is closed."""
    return f"{code(cluster)} is as specified at {run.commit[:12]} again, says {_link(run)}."


def _room(beside: str) -> int:
    return COMMENT_LIMIT - len(beside.encode())


def _link(run: Run) -> str:
    return f"[this run]({run.url})"


def _quote(reason: str) -> str:
    """Format the output of a run as code, so that the host interprets no markdown in it."""
    reason = reason.strip() or "The run said nothing; its log may."
    if len(reason) > REASON_LIMIT:
        whole, _, _ = reason[:REASON_LIMIT].rpartition("\n")
        left = reason.count("\n") - whole.count("\n")
        reason = f"{whole}\n… {left:,} more lines in the log of the run"
    return fence(reason, "text")


LOOKS = 3
"""The number of tries of a write whose effect is unknown. Each of them looks first."""


def report_plan(run: Run, plan: Plan, saved: str | None = None, moves: Moves | None = None) -> str:
    """Show a plan on the request; one without changes only if there is a comment already.

    `moves` is shown if it moves or refuses anything.
    """
    if moves is not None and not view_plan(moves.plan).to_do:
        moves = None
    # Without changes there is nothing to review, but an outdated comment must not stay.
    create = bool(view_plan(plan).to_do) or moves is not None
    return _comment(run, plan.cluster, write_plan(plan, saved, run, moves), create=create)


def report_no_plan(run: Run, cluster: str, reason: str) -> str:
    """Report on the request that there is no plan, in place of an outdated one."""
    return _comment(run, cluster, write_no_plan(cluster, reason, run), create=True)


def _comment(run: Run, cluster: str, body: str, *, create: bool) -> str:
    if run.request is None:
        raise UsageError("this run has no pull request or merge request to comment on")
    number, host = run.request.number, run.host

    def write() -> str:
        found = find_comment(host.list_comments(number), cluster)
        if found:
            host.update_comment(number, found.id, body)
            return f"comment {found.id} on request {number} updated"
        if not create:
            return f"no changes, so request {number} gets no comment"
        host.create_comment(number, body)
        return f"comment on request {number} written"

    return _settle(write)


def find_comment(comments: Iterable[Note], cluster: str) -> Note | None:
    """Return the comment that shows the plan of a cluster, the oldest if there are several."""
    return _find(comments, mark_cluster(cluster))


def report_drift(run: Run, plan: Plan, saved: str | None = None) -> str:
    """Open or update the issue of a cluster that has drifted; close it if the cluster agrees."""
    if view_plan(plan).to_do:
        return _open(run, plan.cluster, *write_drift(plan, saved, run))

    def close() -> str:
        if found := _find(run.host.list_issues(), mark_drift(plan.cluster)):
            run.host.close_issue(found.id, write_agreement(plan.cluster, run))
            return f"issue {found.id} closed"
        return f"{plan.cluster} is as specified"

    return _settle(close)


def report_no_drift(run: Run, cluster: str, reason: str) -> str:
    """Report in the issue of a cluster that it could not be checked."""
    return _open(run, cluster, *write_no_drift(cluster, reason, run))


def _open(run: Run, cluster: str, title: str, body: str) -> str:
    def write() -> str:
        if found := _find(run.host.list_issues(), mark_drift(cluster)):
            run.host.update_issue(found.id, title, body)
            return f"issue {found.id} updated"
        run.host.create_issue(title, body)
        return f"issue opened: {title}"

    return _settle(write)


def _find(notes: Iterable[Note], mark: str) -> Note | None:
    return next((note for note in notes if note.body.startswith(mark)), None)


def _settle(write: Callable[[], str]) -> str:
    """Write; if its effect is unknown, look and write again.

    `write` looks for the comment or issue first, so that a lost answer leads to no second one.
    """
    for _ in range(LOOKS - 1):
        try:
            return write()
        except UnansweredError:
            continue
    return write()


_WAY_OUT = "read the plan of this run, and approve it by its fingerprint, as docs/ci.md says"


def find_approved(run: Run, cluster: str, *, moves: bool = False) -> Approval:
    """Return the approval of the plan that the merged request showed: of changes, or of moves.

    The host knows which request became the commit of this run: merged, squashed or rebased.
    Errors: CodeHostError if there is no such request, or if it shows no plan of what was merged.
    """
    merged = run.host.list_merged(run.commit)
    if len(merged) != 1:
        number = "no request" if not merged else f"{len(merged)} requests"
        raise _refuse_approval(
            f"{number} became {run.commit[:12]}, so no plan for {cluster} was approved"
        )
    (request,) = merged
    comment = find_comment(run.host.list_comments(request.number), cluster)
    seal = read_seal(comment.body) if comment else None
    if seal is None:
        raise _refuse_approval(f"request {request.number} shows no plan for {cluster}")
    # A push after the last plan would merge commits whose plan no one saw.
    if seal.commit != request.head:
        raise _refuse_approval(
            f"request {request.number} shows a plan for {seal.commit[:12]}, "
            f"but was merged at {request.head[:12]}"
        )
    if not moves:
        return Approval(seal.fingerprint, unpack_rows(seal.rows))
    if not seal.moves:
        raise _refuse_approval(f"request {request.number} shows no moves for {cluster}")
    return Approval(seal.moves)


def _refuse_approval(what: str) -> CodeHostError:
    return CodeHostError([Finding("plan-unapproved", what, _WAY_OUT)])
