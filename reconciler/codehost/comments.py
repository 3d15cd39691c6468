"""The comment or issue of a cluster: its markdown, and how it is replaced.

A comment shows up to two plans: of changes, and of moves. It ends in an invisible seal: the commit
and the fingerprints of the plans above it, and the rows that are added. It is kept up to date until
a review approves it. From then on it stays as it is, and another plan gets another comment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from urllib.parse import quote

from reconciler.codehost.approvals import find_newest, find_seen, say_review
from reconciler.codehost.host import Note, PullRequest, Review, Run
from reconciler.codehost.overlaps import warn_of_overlaps
from reconciler.codehost.rest import UnansweredError
from reconciler.codehost.seals import Seal, digest_alerts, read_seal, select_shown
from reconciler.errors import UsageError
from reconciler.model.plan import Plan
from reconciler.planfile.accepted import Accepted
from reconciler.planfile.approval import (
    list_moved_rows,
    list_new_rows,
    pack_moved,
    pack_rows,
)
from reconciler.planfile.codec import fingerprint_plan
from reconciler.show.fields import keep_fields, pack_fields
from reconciler.show.markdown.marks import code, fence, prose, tabulate
from reconciler.show.markdown.page import COMMENT_LIMIT, mark_cluster, render_markdown
from reconciler.show.view import view_plan

REASON_LIMIT = 20_000
"""The limit of the reason for a missing plan; the run's log has all of it. Units: characters."""

ROWS_LIMIT = COMMENT_LIMIT // 4
FIELDS_LIMIT = COMMENT_LIMIT // 8
"""The limits of packed rows and fields: the comment is for people first. Units: characters."""


def mark_drift(cluster: str) -> str:
    """Return the invisible first line of the issue of a cluster."""
    return f"<!-- reconciler:drift cluster={quote(cluster, safe='')} -->"


def write_plan(plan: Plan, run: Run, moves: Plan | None = None, warning: str = "") -> str:
    """Write the comment that shows a plan, and one of moves below it, ending in their seal.

    `warning` is shown below the title. It is no part of the seal, so nobody approves it.
    """
    seal = _seal(plan, run, moves)
    # The least text of a very large plan may need the room of its fields, and of its rows.
    for less in (seal, seal._replace(fields=""), seal._replace(fields="", rows="", moved="")):
        text = _write_sealed(plan, run, less, moves, warning)
        if len(text.encode()) <= COMMENT_LIMIT:
            break
    return text


def _seal(plan: Plan, run: Run, moves: Plan | None) -> Seal:
    rows = pack_rows(list_new_rows(plan))
    moved = pack_moved(list_moved_rows(moves)) if moves else ""
    fields = pack_fields(keep_fields(plan, moves))
    return Seal(
        run.request.head if run.request else run.commit,
        fingerprint_plan(plan),
        rows if len(rows) <= ROWS_LIMIT else "",
        fingerprint_plan(moves) if moves else "",
        fields if len(fields) <= FIELDS_LIMIT else "",
        digest_alerts(plan.alerts),
        _changes_settings(plan),
        moved if len(moved) <= ROWS_LIMIT else "",
    )


def _changes_settings(plan: Plan) -> bool:
    return any(note.rule == "settings-changed" for note in plan.notes)


def _needs_review(plan: Plan) -> bool:
    """Return whether a request means something on a cluster, even without a change of it.

    It may remove specs, bring specs of topics as they are, or change settings: others know from the
    comment that it does.
    """
    means = ("settings-changed", "topics-left")
    noted = any(note.rule in means for note in plan.notes)
    return bool(view_plan(plan).to_do or plan.alerts or plan.agreed or noted)


def _write_sealed(plan: Plan, run: Run, seal: Seal, moves: Plan | None, warning: str) -> str:
    plan = replace(plan, commit=None)  # the seal has the one commit that readers know
    tail = f"<br>\nPlanned for {seal.commit[:12]} by {link_run(run)}\n\n{seal}\n"
    if moves is not None:
        half = _room(tail) // 2
        # Without its marker, which belongs to the first line of a comment, and alerts shown above.
        alone = replace(moves, alerts=(), commit=None)
        shown = render_markdown(alone, limit=half).partition("\n")[2]
        tail = f"\n\n{shown.rstrip()}{tail}"
    warning = f"{warning}\n\n" if warning else ""
    text = render_markdown(plan, limit=_room(warning + tail)).rstrip() + tail
    title, gap, rest = text.partition("\n\n")
    return f"{title}{gap}{warning}{rest}"


def write_no_plan(cluster: str, reason: str, run: Run) -> str:
    """Write the comment for a missing plan: it has no seal, so nothing is approved."""
    head = f"{mark_cluster(cluster)}\n### Kafka plan for {code(cluster)}: could not be made"
    return f"{head}\n\n{quote_reason(reason)}\n\nFrom {link_run(run)}\n"


def write_drift(plan: Plan, run: Run, accepted: Accepted | None = None) -> tuple[str, str]:
    """Write title and text of the issue that shows how a cluster differs from its specs.

    `accepted` says which topics wait for an approval, and why: those of the plan are listed.
    """
    plan = replace(plan, commit=None, stages=())  # the text has it, and drift has no stages
    head = (
        f"{mark_drift(plan.cluster)}\n{code(plan.cluster)} is not as specified at "
        f"{run.commit[:12]}. Either it was changed by other means, or a merged change is not "
        "applied. Apply the plan below, or bring the specs in line with the cluster. This text "
        f"is kept up to date, and the issue closes once both agree. Last seen by {link_run(run)}."
        "\n\n"
    )
    view = view_plan(plan)
    waiting = accepted.waiting if accepted else {}
    if rows := [
        (topic.name, waiting[topic.name]) for topic in view.changed if topic.name in waiting
    ]:
        by_hand = run.host.say_by_hand("apply", plan.cluster, fingerprint_plan(plan))
        head += (
            f"**Nightly runs do not apply these changes, because nobody approved them.** To apply "
            f"the plan below, {by_hand}.\n\n{_list_waiting(rows)}\n\n"
        )
    counts = ", ".join(view.to_do)
    text = head + render_markdown(plan, limit=_room(head))
    return f"Kafka drift on {plan.cluster}: {counts}", text


def _list_waiting(rows: Sequence[tuple[str, str]]) -> str:
    cells = [(code(topic), prose(why)) for topic, why in rows[:WAITING_SHOWN]]
    table = tabulate(("Topic", "Why it waits"), cells)
    beyond = len(rows) - len(cells)
    return f"{table}\n\n{beyond:,} more in the log of the run" if beyond else table


def write_no_drift(cluster: str, reason: str, run: Run) -> tuple[str, str]:
    """Write title and text of the issue that reports a failed drift check."""
    head = (
        f"{mark_drift(cluster)}\nIt is not known whether {code(cluster)} is as specified at "
        f"{run.commit[:12]}: it could not be checked by {link_run(run)}."
    )
    return f"Kafka drift on {cluster}: could not be checked", f"{head}\n\n{quote_reason(reason)}\n"


def write_agreement(cluster: str, run: Run) -> str:
    """Write why an issue is closed."""
    return f"{code(cluster)} is as specified at {run.commit[:12]} again, says {link_run(run)}."


def _room(beside: str) -> int:
    return COMMENT_LIMIT - len(beside.encode())


def link_run(run: Run) -> str:
    return f"[this run]({run.url})"


def quote_reason(reason: str) -> str:
    """Format the output of a run as code, so that the host interprets no markdown in it."""
    reason = reason.strip() or "The run printed nothing; see its log."
    if len(reason) > REASON_LIMIT:
        whole, _, _ = reason[:REASON_LIMIT].rpartition("\n")
        left = reason.count("\n") - whole.count("\n")
        reason = f"{whole}\n… {left:,} more lines in the log of the run"
    return fence(reason, "text")


WAITING_SHOWN = 50
"""The number of topics to list that wait for an approval."""
LOOKS = 3
"""The number of tries of a write whose effect is unknown. Each of them looks first."""


def report_plan(run: Run, plan: Plan, moves: Plan | None = None) -> str:
    """Show a plan on the request; one without changes only if there is a comment already.

    `moves` is shown if it moves or refuses anything.
    """
    if moves is not None and not view_plan(moves).to_do:
        moves = None
    # Without them there is nothing to review, but an outdated comment must not stay.
    has_changes = _needs_review(plan) or moves is not None

    notes: list[str] = []

    def write(warning: str) -> str:
        if not has_changes:
            return write_plan(plan, run, moves)
        overlaps, *notes[:] = warn_of_overlaps(run, plan, moves)
        return write_plan(plan, run, moves, "\n\n".join(filter(None, [warning, overlaps])))

    said = _comment(run, plan.cluster, write, _seal(plan, run, moves), create=has_changes)
    return "; ".join([said, *notes])


def report_no_plan(run: Run, cluster: str, reason: str) -> str:
    """Report on the request that there is no plan, in place of an outdated one."""
    text = write_no_plan(cluster, reason, run)
    return _comment(run, cluster, lambda _: text, None, create=True)


def _comment(
    run: Run, cluster: str, write: Callable[[str], str], seal: Seal | None, *, create: bool
) -> str:
    """Write or replace the comment of a cluster; one that was approved stays as it is.

    `write` takes a warning, empty if the newest approval is of the same plans.
    """
    if run.request is None:
        raise UsageError("this run has no pull request or merge request to comment on")
    request, host = run.request, run.host
    number = request.number

    def settle() -> str:
        if host.is_merged(number):
            return f"request {number} is merged, so its comments stay as they are"
        shown = select_shown(host.list_comments(number), cluster)
        if not (shown or create):
            return f"no changes, so request {number} gets no comment"
        review = find_newest(host.list_reviews(number))
        last = shown[-1] if shown else None
        is_approved = last is not None and review is not None and last.edited_at < review.at
        if last and is_approved and seal and seal.is_same(read_seal(last.body)):
            return f"comment {last.id} on request {number} shows this plan, and is approved"
        body = write(_warn(request, review, shown, seal))
        if last and not is_approved:
            host.update_comment(number, last.id, body)
            return f"comment {last.id} on request {number} updated"
        host.create_comment(number, body)
        return f"comment on request {number} written"

    return settle_write(settle)


def _warn(
    request: PullRequest, review: Review | None, shown: Sequence[Note], seal: Seal | None
) -> str:
    """Say that the newest approval is not of these plans; empty if it is, or if there is none."""
    seen = find_seen(shown, review.at) if review else None
    approved = read_seal(seen.body) if seen else None
    if review is None or seal is None or (approved and approved.says_the_same(seal)):
        return ""
    said = prose(say_review(review, request))
    return (
        f"**This plan needs a new review.** {said} before it showed this plan. After the merge, "
        "only a plan that was reviewed is applied. `plan-unreviewed`"
    )


def report_drift(run: Run, plan: Plan, accepted: Accepted | None = None) -> str:
    """Open or update the issue of a cluster that has drifted; close it if the cluster agrees.

    `accepted` says which topics wait for an approval.
    """
    if view_plan(plan).to_do:
        return open_issue(run, mark_drift(plan.cluster), *write_drift(plan, run, accepted))

    def close() -> str:
        if found := find_marked(run.host.list_issues(), mark_drift(plan.cluster)):
            run.host.close_issue(found.id, write_agreement(plan.cluster, run))
            return f"issue {found.id} closed"
        return f"{plan.cluster} is as specified"

    return settle_write(close)


def report_no_drift(run: Run, cluster: str, reason: str) -> str:
    """Report in the issue of a cluster that it could not be checked."""
    return open_issue(run, mark_drift(cluster), *write_no_drift(cluster, reason, run))


def open_issue(run: Run, mark: str, title: str, body: str) -> str:
    """Open the issue whose text begins with a mark, or replace its words."""

    def write() -> str:
        if found := find_marked(run.host.list_issues(), mark):
            run.host.update_issue(found.id, title, body)
            return f"issue {found.id} updated"
        run.host.create_issue(title, body)
        return f"issue opened: {title}"

    return settle_write(write)


def find_marked(notes: Iterable[Note], mark: str) -> Note | None:
    return next((note for note in notes if note.body.startswith(mark)), None)


def settle_write(write: Callable[[], str]) -> str:
    """Write; if its effect is unknown, look and write again.

    `write` looks for the comment or issue first, so that a lost answer leads to no second one.
    """
    for _ in range(LOOKS - 1):
        try:
            return write()
        except UnansweredError:
            continue
    return write()
