"""Which plan was approved: the one that the merged request showed for its last commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.errors import Finding, ForgeError
from reconciler.forge.tell import find_comment
from reconciler.forge.words import read_seal

if TYPE_CHECKING:
    from reconciler.forge.host import Run

_WAY_OUT = "read the plan of this run, and approve it by its fingerprint, as docs/ci.md says"


def find_approved(run: Run, cluster: str) -> str:
    """Return the fingerprint of the plan that people saw when they merged.

    Merged, squashed or rebased: the host knows which request became the commit of this run.
    Errors: ForgeError where no request did, or where it shows no plan for what was merged.
    """
    merged = run.forge.list_merged(run.commit)
    if len(merged) != 1:
        number = "no request" if not merged else f"{len(merged)} requests"
        raise _refuse(f"{number} became {run.commit[:12]}, so nobody approved a plan for {cluster}")
    (request,) = merged
    comment = find_comment(run.forge.list_comments(request.number), cluster)
    seal = read_seal(comment.body) if comment else None
    if seal is None:
        raise _refuse(f"request {request.number} shows no plan for {cluster}")
    if seal.commit != request.head:
        raise _refuse(
            f"request {request.number} shows a plan for {seal.commit[:12]}, "
            f"but was merged at {request.head[:12]}"
        )
    return seal.fingerprint


def _refuse(what: str) -> ForgeError:
    return ForgeError([Finding("plan-unapproved", what, _WAY_OUT)])
