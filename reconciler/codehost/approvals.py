"""Which plan of a merged request is approved: the one that it showed when it was reviewed.

A comment with a plan is not edited after a review that approved it (see `comments`), so it keeps
what the reviewer saw. All times are those of the code host. If the comment was edited after all,
by a run that raced with the review or by a person, nobody knows any more what the reviewer saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from reconciler.codehost.host import CodeHost, Note, PullRequest, Review, Run
from reconciler.codehost.seals import Seal, read_seal, select_shown
from reconciler.errors import CodeHostError, Finding
from reconciler.planfile.approval import Approval, unpack_moved, unpack_rows
from reconciler.rulebook import spell_page

_WAY_OUT = (
    "read the plan of this run, and approve it by its fingerprint: "
    f"{spell_page('explanation/approval')}"
)


class Approved(NamedTuple):
    """The seal of the approved plans of a merged request, and who approved them.

    `review` is None if nobody reviewed the request: then its merge approved what it showed. `later`
    is the seal of a different plan that the request showed after the review.
    """

    request: PullRequest
    seal: Seal
    review: Review | None
    later: Seal | None = None


def find_newest(reviews: Iterable[Review]) -> Review | None:
    """Return the newest review that approves."""
    return max((r for r in reviews if r.approves), key=lambda review: review.at, default=None)


def find_seen(shown: Iterable[Note], at: datetime) -> Note | None:
    """Return the comment that was the newest at a time, as it was then; None if it was edited."""
    written = [note for note in shown if note.written_at < at]
    last = max(written, key=lambda note: note.written_at, default=None)
    return last if last and last.edited_at < at else None


def find_approved(run: Run, cluster: str, *, moves: bool = False) -> Approval:
    """Return the approval of the plan that the merged request showed: of changes, or of moves.

    The host knows which request became the commit of this run: merged, squashed or rebased.
    Errors: CodeHostError if there is no such request, or if nobody approved a plan of what was
    merged.
    """
    merged = run.host.list_merged(run.commit)
    if len(merged) != 1:
        number = "no request" if not merged else f"{len(merged)} requests"
        raise _refuse(f"{number} became {run.commit[:12]}, so no plan for {cluster} was approved")
    found = find_approved_seal(run.host, merged[0], cluster, moves=moves)
    if not moves:
        return Approval(found.seal.fingerprint, unpack_rows(found.seal.rows))
    if not found.seal.moves:
        raise _refuse(f"request {found.request.number} shows no moves for {cluster}")
    return Approval(found.seal.moves, moved=unpack_moved(found.seal.moved))


def find_shown_moves(host: CodeHost, branch: str, cluster: str) -> Approval | None:
    """Return the newest plan of moves that the open request of a branch shows; None without one."""
    proposal = host.find_proposal(branch)
    if proposal is None or not proposal.is_open:
        return None
    shown = select_shown(host.list_comments(proposal.number), cluster)
    seal = read_seal(shown[-1].body) if shown else None
    return Approval(seal.moves, moved=unpack_moved(seal.moved)) if seal and seal.moves else None


def find_approved_seal(
    host: CodeHost, request: PullRequest, cluster: str, *, moves: bool = False
) -> Approved:
    """Return the seal of the approved plans of a merged request.

    `moves` says which of the two has to be approved. Errors: CodeHostError.
    """
    shown = select_shown(host.list_comments(request.number), cluster)
    if not shown:
        raise _refuse(f"request {request.number} shows no plan for {cluster}")
    reviews = host.list_reviews(request.number)
    review = find_newest(reviews)
    if reviews and review is None:
        names = ", ".join(sorted(one.author for one in reviews))
        raise _refuse_unreviewed(
            f"request {request.number} has no approval: {names} requested changes, or the review "
            "was dismissed"
        )
    seal = _read_seen(request, review, shown, cluster)
    later = read_seal(shown[-1].body)
    if seal.commit == request.head:
        return Approved(
            request, seal, review, later if later and later.plans != seal.plans else None
        )
    # The review is of an earlier commit: it counts if the last commit has the same plan, and the
    # same warnings above it, such as a guard that it loosens.
    at_merge = find_seen(shown, request.merged_at)
    last = read_seal(at_merge.body) if at_merge else None
    if review is None or last is None or last.commit != request.head:
        # A push after the last plan would merge commits whose plan no one saw.
        raise _refuse(
            f"request {request.number} shows a plan for {(last or seal).commit[:12]}, "
            f"but was merged at {request.head[:12]}"
        )
    if last.plans[moves] != seal.plans[moves]:
        raise _refuse_unreviewed(
            f"{say_review(review, request)} when it showed the plan for {seal.commit[:12]}; "
            f"the plan for {request.head[:12]} is a different one"
        )
    if last.alerts != seal.alerts:
        raise _refuse_unreviewed(
            f"{say_review(review, request)} when it showed the plan for {seal.commit[:12]}; "
            f"the one for {request.head[:12]} has other warnings above it"
        )
    return Approved(request, last, review)


def _read_seen(
    request: PullRequest, review: Review | None, shown: Sequence[Note], cluster: str
) -> Seal:
    """Read the seal of what the request showed when it was reviewed, or else when it was merged."""
    at = review.at if review else request.merged_at
    seen = find_seen(shown, at)
    seal = read_seal(seen.body) if seen else None
    if seal:
        return seal
    approval = say_review(review, request) if review else f"request {request.number} was merged"
    if not seen and any(note.written_at < at for note in shown):
        raise _refuse_unreviewed(f"{approval} before its comment for {cluster} was edited")
    if seen and not review:
        raise _refuse(f"request {request.number} shows no plan for {cluster}")
    raise _refuse_unreviewed(f"{approval} when it showed no plan for {cluster}")


def say_review(review: Review, request: PullRequest) -> str:
    """Say who approved a request, and when."""
    at = review.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"{review.author} approved request {request.number} at {at},"


def _refuse(what: str) -> CodeHostError:
    return CodeHostError([Finding("plan-unapproved", what, _WAY_OUT)])


def _refuse_unreviewed(what: str) -> CodeHostError:
    return CodeHostError([Finding("plan-unreviewed", what, _WAY_OUT)])
