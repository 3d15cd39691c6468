"""The comment on a merged request that reports which of its topics are done on a cluster, and which
are not.

It is not the comment of the plan, which stays as it was approved. Whatever run reads the cluster
last edits it: a run that was killed cannot, and another request, a person or a night may have
brought about what the request asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote

from reconciler.codehost.approvals import Approved, find_approved_seal, find_seen, say_review
from reconciler.codehost.comments import (
    ROWS_LIMIT,
    find_marked,
    link_run,
    quote_reason,
    settle_write,
)
from reconciler.codehost.host import CodeHost, Links, Note, PullRequest, Run
from reconciler.codehost.notices import end_without_apply, notice_apply
from reconciler.codehost.progress import (
    Present,
    Progress,
    measure_progress,
    read_progress,
    write_progress,
)
from reconciler.codehost.seals import Seal, read_seal, select_shown
from reconciler.errors import CodeHostError
from reconciler.model.plan import Plan
from reconciler.planfile.codec import fingerprint_plan
from reconciler.run.ending import Ended, Ending
from reconciler.show.fields import compare_fields, list_fields, unpack_fields
from reconciler.show.markdown.marks import code, prose, tabulate
from reconciler.show.markdown.page import COMMENT_LIMIT
from reconciler.show.view import view_plan
from reconciler.units import approximate_duration, count

NAMED = 50
"""The number of topics to name that are as planned; the journal names all."""
MOST_CELL = 300
"""The limit of a reason or a value in a table. Units: characters."""
MOST_REQUESTS = 20
"""The number of merged requests to look at: each costs a question, and hosts limit these."""
TABLE_LIMIT = COMMENT_LIMIT // 4
"""The limit of a table; a comment has at most two. Units: bytes."""

_AGAIN = (
    "once the reason is gone, run the job again. A new plan leaves out what is done. If it is not "
    "the approved plan, the run says how to approve it"
)
_REASONS = ("Topic", "Result", "Reason")
_LEFT = "run the job again, or run *apply* by hand on the default branch"
_NEXT = {
    Ended.REFUSED: "change the specs as the reasons say, in a new request",
    Ended.OUTDATED: (
        "run apply by hand on the default branch. It plans what that branch asks for now, and the "
        "run says how to approve it"
    ),
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
    present: Present | None = None,
    duration_s: float | None = None,
    knows: Callable[[str], bool] = lambda _: True,
) -> list[str]:
    """Report on merged requests what is done of them on a cluster, after a run of apply or drift.

    The request that became the commit of a push gets the result of its own run. If the run applied
    something, or no push started it, the newest merged requests of which something was left get
    what is left now. `knows` returns whether the specs of this run have those of a commit: a run
    of an earlier commit, which is repeated, judges no later request. `present` is the cluster after
    the run; None if it was not read. `ending` is None if apply did not begin; then `errors` says
    why.
    Errors: CodeHostError if the own request could not be written; others are left as they are.
    """
    said = []
    result = _Result(run, cluster, plan, ending, errors, duration_s)
    merged = run.host.list_merged(run.commit)
    if run.is_push and len(merged) == 1:
        said.append(_report_own(merged[0], result, present))
    elif run.is_push:
        number = count(len(merged), "request")
        said.append(f"{number} became {run.commit[:12]}, so none gets the result")
    may_differ = ending is not None or not run.is_push
    if present is not None and may_differ and not result.is_outdated:
        own = {request.number for request in merged} if run.is_push else set()
        said += _report_others(
            result, present, lambda r: r.number not in own and knows(r.merged_as)
        )
    return said


def report_moves(
    run: Run,
    cluster: str,
    plan: Plan | None,
    ending: Ending | None,
    errors: str,
    *,
    duration_s: float | None = None,
) -> str:
    """Report the result of a run of moves on the request that became the commit of a push.

    Any other run, such as one that continues by hand, reports on the request that showed its plan.
    """
    if run.is_push:
        merged, whose = run.host.list_merged(run.commit), f"became {run.commit[:12]}"
    else:
        recent = islice(run.host.list_recently_merged(), MOST_REQUESTS) if plan else ()
        merged = [request for request in recent if plan and _showed_moves(run, request, plan)]
        whose = "showed these moves"
    if len(merged) != 1:
        return f"{count(len(merged), 'request')} {whose}, so none gets the result"
    result = _Result(run, cluster, plan, ending, errors, duration_s, moves=True)
    return _report_own(merged[0], result, None)


def _showed_moves(run: Run, request: PullRequest, plan: Plan) -> bool:
    """Return whether a request showed a plan of moves, which a later run continues."""
    shown = select_shown(run.host.list_comments(request.number), plan.cluster)
    seals = [read_seal(note.body) for note in shown]
    return fingerprint_plan(plan) in [seal.moves for seal in seals if seal]


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of one run on a cluster, as it was asked to report it."""

    run: Run
    cluster: str
    plan: Plan | None
    reported: Ending | None
    errors: str
    duration_s: float | None = None
    moves: bool = False

    @property
    def ending(self) -> Ending:
        """How the run ended; if apply did not begin, its plan says why."""
        view = view_plan(self.plan) if self.plan else None
        return self.reported or end_without_apply(view, self.errors)

    @property
    def is_outdated(self) -> bool:
        """Return whether the default branch asks for something else than this run."""
        return self.ending.ended is Ended.OUTDATED

    @property
    def mark(self) -> str:
        """The first line of its comment."""
        return mark_result(self.cluster, moves=self.moves)


def _report_own(request: PullRequest, result: _Result, present: Present | None) -> str:
    """Write or replace the comment with the result of the run of a request."""
    host, number = result.run.host, request.number

    def write() -> str:
        comments = list(host.list_comments(number))
        shown = select_shown(comments, result.cluster)
        earlier = find_marked(comments, result.mark)
        before = read_progress(earlier.body) if earlier else None
        progress = None
        if present and not result.is_outdated:  # else, its specs are not those of the branch
            progress = _measure(host, request, result.cluster, shown, present)
        body = _write_own(request, result, progress, before)
        if earlier:
            host.update_comment(number, earlier.id, body)
            return f"comment {earlier.id} on request {number} updated"
        seals = [read_seal(note.body) for note in shown]
        was_shown = any(seal.plans[result.moves] for seal in seals if seal)
        if result.ending.ended is Ended.NOTHING_TO_DO and not was_shown:
            return f"nothing to do, so request {number} gets no comment"
        host.create_comment(number, body)
        return f"comment on request {number} written"

    return settle_write(write)


def _report_others(
    result: _Result, present: Present, concerns: Callable[[PullRequest], bool]
) -> Iterator[str]:
    """Update the results of earlier requests of which something was left.

    A host that does not answer, or a request that cannot be written, does not fail the report.
    """
    try:
        for request in islice(result.run.host.list_recently_merged(), MOST_REQUESTS):
            if concerns(request):
                yield from _report_other(request, result, present)
    except CodeHostError as error:
        yield f"not all merged requests show what is done now: {error.findings[0].what}"


def _report_other(request: PullRequest, result: _Result, present: Present) -> Iterator[str]:
    """Write what is left of an earlier request now, if that is not what its comment says."""
    run, cluster, number = result.run, result.cluster, request.number
    comments = list(run.host.list_comments(number))
    shown = select_shown(comments, cluster)
    earlier = find_marked(comments, result.mark)
    before = read_progress(earlier.body) if earlier else None
    if not shown or (before and not before.left):
        return  # it showed no plan, or its result is final
    progress = _measure(run.host, request, cluster, shown, present)
    if not progress or not progress.total or progress == before:
        return  # nothing of it can be compared, as of one that only removes specs
    # Before its own run, which may still wait for an approval, a request has no result.
    if not (earlier or progress.done):
        return
    reasons = _list_reasons(cluster, result.plan, result.ending, result.errors)
    rows = [row for topic, row in reasons if topic in progress.left]
    parts = [
        f"{result.mark}\n### Kafka apply on {code(cluster)}: {_entitle(progress)}",
        *_say_progress(progress),
        *([fit_table(_REASONS, rows)] if rows else []),
        f"Seen by {link_run(run)}, at {run.commit[:12]}",
        *([f"**Next:** {_LEFT}."] if progress.left else []),
    ]
    body = _close(parts, progress)
    if earlier:
        run.host.update_comment(number, earlier.id, body)
        yield f"comment {earlier.id} on request {number} updated"
    else:
        run.host.create_comment(number, body)
        yield f"comment on request {number} written"


def _entitle(progress: Progress) -> str:
    if progress.left:
        return "not finished" if progress.done else "not applied"
    return "done" if progress.done else "replaced"


def _measure(
    host: CodeHost, request: PullRequest, cluster: str, shown: Sequence[Note], present: Present
) -> Progress | None:
    """Measure the progress of what was approved, or else of the plan shown last before the merge.

    Returns None if there is no such plan, or if it is too large to be known.
    """
    try:
        seal: Seal | None = find_approved_seal(host, request, cluster).seal
        approved = True
    except CodeHostError:
        seen = find_seen(shown, request.merged_at)
        seal = read_seal(seen.body) if seen else None
        approved = False
    kept = unpack_fields(seal.fields) if seal else None
    return measure_progress(kept, present, approved=approved) if kept else None


def mark_result(cluster: str, *, moves: bool = False) -> str:
    """Return the invisible first line of the result of a cluster; moves have one of their own."""
    kind = "moved" if moves else "applied"
    return f"<!-- reconciler:{kind} cluster={quote(cluster, safe='')} -->"


def _write_own(
    request: PullRequest, result: _Result, progress: Progress | None, before: Progress | None
) -> str:
    """Write the comment with the result of a run.

    `progress` is that of the request after the run; `before` the one that its comment held.
    """
    run, cluster, plan, ending = result.run, result.cluster, result.plan, result.ending
    heading, verb = ("Kafka moves", "moves") if result.moves else ("Kafka apply", "apply")
    parts: list[str] = []
    by_hand = ""
    said = str(ending.ended)
    if plan and not ending.outcomes and ending.ended in (Ended.NOT_APPROVED, Ended.ERROR):
        unapproved = _explain_unapproved(run, request, plan, moves=result.moves)
        if unapproved:
            said, parts = "not applied", unapproved
            if result.reported and ending.error:
                parts.append(quote_reason(ending.error))
            by_hand = run.host.say_by_hand(verb, cluster, fingerprint_plan(plan))
    if not parts:
        done = _list_done(ending, result.duration_s)
        parts = [*done, *_list_trouble(cluster, plan, ending, result.errors)]
    named = {outcome.topic for outcome in ending.outcomes if outcome.kind.is_done}
    if progress and progress.total:
        is_over = not progress.left and ending.ended is not Ended.AUDIT_LOST
        is_partly = progress.left and progress.done and not ending.outcomes
        if is_over or is_partly:
            said = _entitle(progress)
        if progress.left or progress.replaced or not named.issuperset(progress.done):
            parts += _say_progress(progress)
    elif before and before.total and not ending.outcomes:
        parts.append(f"An earlier run found {_count_done(before)}.")
    parts.append(f"From {link_run(run)}")
    if by_hand:
        parts.append(f"**Next:** read the plan that the run shows. To apply it, {by_hand}.")
    elif plan and ending.ended is Ended.UNFINISHED:
        number = run.url.rpartition("/")[2]
        by_hand = run.host.say_by_hand(verb, cluster, fingerprint_plan(plan), number)
        parts.append(f"**Next:** copies in flight go on. To continue, {by_hand}.")
    elif ending.exit_code and said not in ("done", "replaced"):
        parts.append(f"**Next:** {_NEXT.get(ending.ended, _AGAIN)}.")
    title = f"{result.mark}\n### {heading} on {code(cluster)}: {said}"
    return _close([title, *parts], progress or before)


def _close(parts: Iterable[str], progress: Progress | None) -> str:
    """Join the parts of a comment, and add the hidden line for later runs."""
    hidden = write_progress(progress, ROWS_LIMIT) if progress and progress.total else ""
    return "\n\n".join([*parts, *filter(None, [hidden])]) + "\n"


def _say_progress(progress: Progress) -> Iterator[str]:
    """Say which topics of a request are as it asked, and which are not."""
    if progress.done:
        yield f"{_count_done(progress)}: {_name_topics(progress.done)}"
    if progress.left:
        are = "is" if len(progress.left) == 1 else "are"
        yield f"{count(len(progress.left), 'topic')} {are} not: {_name_topics(progress.left)}"
    if progress.replaced:
        named = _name_topics(progress.replaced)
        yield f"The specs ask for something else by now, or are gone: {named}"


def _count_done(progress: Progress) -> str:
    """Count the topics of a request that are as it asked."""
    are = "is" if len(progress.done) == 1 else "are"
    of = f"{len(progress.done):,} of {count(progress.total, 'topic')} of this request"
    return f"{of} {are} as specified"


def _name_topics(topics: Sequence[str]) -> str:
    beyond = f" and {len(topics) - NAMED:,} more" if len(topics) > NAMED else ""
    return f"{', '.join(map(code, topics[:NAMED]))}{beyond}"


def _list_done(ending: Ending, duration_s: float | None) -> Iterator[str]:
    """Say which topics are as planned."""
    if ending.ended is Ended.NOTHING_TO_DO:
        yield "The cluster is as specified."
    done = sorted(outcome.topic for outcome in ending.outcomes if outcome.kind.is_done)
    took = f" after {approximate_duration(duration_s)}" if duration_s is not None else ""
    if done:
        are = "is" if len(done) == 1 else "are"
        yield f"{count(len(done), 'topic')} {are} as planned{took}: {_name_topics(done)}"
    cordoned = ending.moves.cordoned if ending.moves else ()
    if cordoned:
        yield f"{count(len(cordoned), 'broker')} cordoned: {', '.join(map(str, cordoned))}"


def _list_trouble(cluster: str, plan: Plan | None, ending: Ending, errors: str) -> Iterator[str]:
    """Say what is not as planned, and why: topics with their reasons, and what ended the run."""
    rows = [row for _, row in _list_reasons(cluster, plan, ending, errors)]
    if rows:
        yield fit_table(_REASONS, rows)
    notice = notice_apply(cluster, plan, ending, errors, Links())
    if notice and notice.reason:
        yield quote_reason(notice.reason)


def _list_reasons(
    cluster: str, plan: Plan | None, ending: Ending, errors: str
) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield the topics that are not as planned, the worst first, each with its row of a table."""
    notice = notice_apply(cluster, plan, ending, errors, Links())
    for one in notice.topics if notice else ():
        reason = " ".join(filter(None, [cut(one.reason), code(one.rule) if one.rule else ""]))
        yield one.topic, (code(one.topic) if one.topic else "the plan", one.result, reason)


def _explain_unapproved(run: Run, request: PullRequest, plan: Plan, *, moves: bool) -> list[str]:
    """Say why the plan of this run is not approved; empty if it is."""
    nothing = "This run changed nothing"
    try:
        approved = find_approved_seal(run.host, request, plan.cluster, moves=moves)
    except CodeHostError as error:
        return [f"{nothing}, because no plan was approved: {prose(str(error))}"]
    fingerprint = approved.seal.plans[moves]
    now = fingerprint_plan(plan)
    if fingerprint == now:
        return []
    if not fingerprint:
        number = approved.request.number
        return [f"{nothing}: request {number} showed no plan of this kind."]
    by = (
        say_review(approved.review, approved.request)
        if approved.review
        else f"Request {approved.request.number} was merged"
    )
    parts = [
        f"{nothing}, because the plan is not the approved one. {prose(by)} when it "
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
        for d in compare_fields(kept.moves if moves else kept.changes, list_fields(plan))
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
