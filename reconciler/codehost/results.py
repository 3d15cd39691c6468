"""The comment that reports on the merged request what its apply did, or why nothing was applied.

It is not the comment of the plan, which stays as it was approved. A later run for the same request
edits it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from reconciler.apply import Ended
from reconciler.codehost.approvals import find_approved_seal, say_review
from reconciler.codehost.comments import find_marked, link_run, quote_reason, settle_write
from reconciler.codehost.host import Links
from reconciler.codehost.notices import end_without_apply, notice_apply
from reconciler.codehost.seals import read_seal, select_shown
from reconciler.errors import CodeHostError
from reconciler.plan import (
    COMMENT_LIMIT,
    code,
    compare_fields,
    fingerprint_plan,
    list_fields,
    prose,
    tabulate,
    unpack_fields,
    view_plan,
)
from reconciler.units import approximate_duration, count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reconciler.apply import Ending
    from reconciler.codehost.approvals import Approved
    from reconciler.codehost.host import Run
    from reconciler.model import Plan

NAMED = 50
"""The number of topics to name that are as planned; the journal names all."""
MOST_CELL = 300
"""The limit of a reason or a value in a table. Units: characters."""
TABLE_LIMIT = COMMENT_LIMIT // 4
"""The limit of a table; a comment has at most two. Units: bytes."""

_AGAIN = (
    "once the reason is gone, run the job again. A new plan leaves out what is done. If it is not "
    "the approved plan, the run says how to approve it"
)
_NEXT = {
    Ended.REFUSED: "change the specs as the reasons say, in a new request",
    Ended.AUDIT_LOST: "keep the record in the log of the run. The audit topic does not have it",
    Ended.UNKNOWN: "run the job again. It checks first what was done",
}


def report_result(
    run: Run,
    cluster: str,
    plan: Plan | None,
    ending: Ending | None,
    errors: str,
    *,
    duration_s: float | None = None,
    moves: bool = False,
) -> str:
    """Report the result of an apply on the request that became the commit of this run.

    `ending` is None if apply did not begin; then `errors` says why. Without a request there is no
    comment, and none if there was nothing to do and the request showed no plan.
    """
    merged = run.host.list_merged(run.commit)
    if len(merged) != 1:
        return f"{count(len(merged), 'request')} became {run.commit[:12]}, so none gets the result"
    number = merged[0].number
    began = ending is not None
    ending = ending or end_without_apply(view_plan(plan) if plan else None, errors)
    body = _write_result(run, cluster, plan, ending, errors, duration_s, began=began, moves=moves)

    def write() -> str:
        comments = list(run.host.list_comments(number))
        if found := find_marked(comments, mark_result(cluster, moves=moves)):
            run.host.update_comment(number, found.id, body)
            return f"comment {found.id} on request {number} updated"
        seals = [read_seal(note.body) for note in select_shown(comments, cluster)]
        was_shown = any(seal.plans[moves] for seal in seals if seal)
        if ending.ended is Ended.NOTHING_TO_DO and not was_shown:
            return f"nothing to do, so request {number} gets no comment"
        run.host.create_comment(number, body)
        return f"comment on request {number} written"

    return settle_write(write)


def mark_result(cluster: str, *, moves: bool = False) -> str:
    """Return the invisible first line of the result of a cluster; moves have one of their own."""
    kind = "moved" if moves else "applied"
    return f"<!-- reconciler:{kind} cluster={quote(cluster, safe='')} -->"


def _write_result(
    run: Run,
    cluster: str,
    plan: Plan | None,
    ending: Ending,
    errors: str,
    duration_s: float | None,
    *,
    began: bool,
    moves: bool,
) -> str:
    title, verb = ("Kafka moves", "moves") if moves else ("Kafka apply", "apply")
    parts: list[str] = []
    by_hand = ""
    said = str(ending.ended)
    if plan and not ending.outcomes and ending.ended in (Ended.NOT_APPROVED, Ended.ERROR):
        unapproved = _explain_unapproved(run, plan, moves=moves)
        if unapproved:
            said, parts = "not applied", unapproved
            if began and ending.error:
                parts.append(quote_reason(ending.error))
            by_hand = run.host.say_by_hand(verb, cluster, fingerprint_plan(plan))
    if not parts:
        parts = [*_list_done(ending, duration_s), *_list_trouble(cluster, plan, ending, errors)]
    parts.append(f"From {link_run(run)}")
    if by_hand:
        parts.append(f"**Next:** read the plan that the run shows. To apply it, {by_hand}.")
    elif plan and ending.ended is Ended.UNFINISHED:
        number = run.url.rpartition("/")[2]
        by_hand = run.host.say_by_hand(verb, cluster, fingerprint_plan(plan), number)
        parts.append(f"**Next:** copies in flight go on. To continue, {by_hand}.")
    elif ending.exit_code:
        parts.append(f"**Next:** {_NEXT.get(ending.ended, _AGAIN)}.")
    mark = mark_result(cluster, moves=moves)
    return "\n\n".join([f"{mark}\n### {title} on {code(cluster)}: {said}", *parts]) + "\n"


def _list_done(ending: Ending, duration_s: float | None) -> Iterator[str]:
    """Say which topics are as planned."""
    if ending.ended is Ended.NOTHING_TO_DO:
        yield "The cluster is as specified."
    done = sorted(outcome.topic for outcome in ending.outcomes if outcome.kind.is_done)
    took = f" after {approximate_duration(duration_s)}" if duration_s is not None else ""
    if done:
        are = "is" if len(done) == 1 else "are"
        named = ", ".join(map(code, done[:NAMED]))
        beyond = f" and {len(done) - NAMED:,} more" if len(done) > NAMED else ""
        yield f"{count(len(done), 'topic')} {are} as planned{took}: {named}{beyond}"
    cordoned = ending.moves.cordoned if ending.moves else ()
    if cordoned:
        yield f"{count(len(cordoned), 'broker')} cordoned: {', '.join(map(str, cordoned))}"


def _list_trouble(cluster: str, plan: Plan | None, ending: Ending, errors: str) -> Iterator[str]:
    """Say what is not as planned, and why: topics with their reasons, and what ended the run."""
    notice = notice_apply(cluster, plan, ending, errors, Links())
    if notice is None:
        return
    rows = [
        (
            code(one.topic) if one.topic else "the plan",
            one.result,
            " ".join(filter(None, [cut(one.reason), code(one.rule) if one.rule else ""])),
        )
        for one in notice.topics
    ]
    if rows:
        yield fit_table(("Topic", "Result", "Reason"), rows)
    if notice.reason:
        yield quote_reason(notice.reason)


def _explain_unapproved(run: Run, plan: Plan, *, moves: bool) -> list[str]:
    """Say why the plan of this run is not approved; empty if it is."""
    try:
        approved = find_approved_seal(run, plan.cluster, moves=moves)
    except CodeHostError as error:
        return [f"Nothing was changed, because no plan was approved: {prose(str(error))}"]
    fingerprint = approved.seal.plans[moves]
    now = fingerprint_plan(plan)
    if fingerprint == now:
        return []
    if not fingerprint:
        number = approved.request.number
        return [f"Nothing was changed: request {number} showed no plan of this kind."]
    by = (
        say_review(approved.review, approved.request)
        if approved.review
        else f"Request {approved.request.number} was merged"
    )
    parts = [
        f"Nothing was changed, because the plan is not the approved one. {prose(by)} when it "
        f"showed the plan {code(fingerprint)}. The plan is {code(now)} now.",
        *_compare(approved, plan, moves=moves),
    ]
    if approved.later:
        parts.append("The request also showed a different plan later, which nobody reviewed.")
    parts += [prose(note.what) for note in plan.notes if note.rule == "approved-rows"]
    return parts


def _compare(approved: Approved, plan: Plan, *, moves: bool) -> Iterator[str]:
    """Show in which fields the plan differs from the approved one."""
    kept = unpack_fields(approved.seal.fields)
    if kept is None:
        yield "The approved plan was too large to be compared field by field: see its comment."
        return
    rows = [
        (code(d.topic), code(d.field), cut(d.approved), cut(d.now), d.why)
        for d in compare_fields(kept[moves], list_fields(plan))
    ]
    if rows:
        yield fit_table(("Topic", "Field", "Approved", "Now", "Why"), rows)
    else:
        yield "Every field is the same: replicas are on other brokers, or a topic has another id."


def fit_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Set as many rows of a table as there is room for, and count the others."""
    room, shown = TABLE_LIMIT, 0
    for row in rows:
        room -= len(" | ".join(row).encode()) + 5
        if room < 0:
            break
        shown += 1
    beyond = len(rows) - shown
    table = tabulate(heads, rows[:shown])
    return f"{table}\n\n{beyond:,} more in the log of the run" if beyond else table


def cut(text: str) -> str:
    """Escape a text for a cell of a table, and cut a long one."""
    return prose(text if len(text) <= MOST_CELL else f"{text[: MOST_CELL - 1]}…")
