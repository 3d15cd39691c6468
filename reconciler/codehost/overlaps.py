"""A warning of other open requests whose merge would make the plan of this one stale.

The plans of other requests are known by the seals of their comments. Nothing here is approved, and
a host that does not answer only leaves the warning out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice

from reconciler.codehost.host import Run
from reconciler.codehost.seals import read_seal, select_shown
from reconciler.errors import CodeHostError
from reconciler.model.plan import Plan
from reconciler.show.fields import list_deleted, list_fields, unpack_fields
from reconciler.show.markdown.marks import code

MOST_REQUESTS = 50
"""The number of open requests to read, the newest first: each costs at least one question."""
NAMED = 10


def warn_of_overlaps(run: Run, plan: Plan, moves: Plan | None) -> Iterator[str]:
    """Yield a warning of open requests that change the same; empty if there are none.

    Yields a note after it if the host did not answer.
    """
    changed = list_fields(plan)
    topics = {*changed, *(list_fields(moves) if moves else ())}
    warnings: list[str] = []
    try:
        for number in islice(run.host.list_open(), MOST_REQUESTS):
            if run.request and number != run.request.number:
                warnings += _compare(run, number, plan.cluster, topics, list_deleted(changed))
    except CodeHostError as error:
        yield "\n".join(warnings)
        yield f"not all open requests were compared: {error.findings[0].what}"
        return
    yield "\n".join(warnings)


def _compare(
    run: Run, number: int, cluster: str, topics: Collection[str], deleted: Collection[str]
) -> Iterator[str]:
    """Yield what another request does to the topics of this one, as its newest comment shows it."""
    shown = select_shown(run.host.list_comments(number), cluster)
    seal = read_seal(shown[-1].body) if shown else None
    link = f"request {run.host.link_request(number)}"
    if seal and seal.settings and topics:
        said = f"{link[0].upper()}{link[1:]} changes settings of this cluster in clusters.yaml"
        yield f"- {said}; if it is merged first, this one can need a new review."
    kept = unpack_fields(seal.fields) if seal else None
    if kept is None:
        return
    theirs = list_deleted(kept[0])
    both = sorted({*kept[0], *kept[1]}.intersection(topics))
    for said, found in (
        (f"{link} also changes", [t for t in both if (t in deleted) == (t in theirs)]),
        (f"{link} deletes what this one changes:", [t for t in both if t in theirs - {*deleted}]),
        (f"this one deletes what {link} changes:", [t for t in both if t in {*deleted} - theirs]),
    ):
        if found:
            beyond = f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
            named = f"{', '.join(map(code, found[:NAMED]))}{beyond}"
            then = "whichever is merged second needs a new review"
            yield f"- {said[0].upper()}{said[1:]} {named}; {then}."
