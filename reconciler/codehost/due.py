"""The issues on topics that are due: one for each owner and cluster, opened, updated and closed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from reconciler.changes.due import RULES
from reconciler.codehost.comments import link_run, open_issue, settle_write
from reconciler.codehost.host import Run
from reconciler.errors import Finding
from reconciler.model.plan import Plan, PlannedTopic, Scope
from reconciler.show.markdown.marks import code, prose, tabulate
from reconciler.units import count

SHOWN = 100
"""The number of topics in an issue; the others are counted."""

Due = Sequence[tuple[PlannedTopic, Finding]]


def report_due(run: Run, plan: Plan) -> Iterator[str]:
    """Open or update an issue for each owner of topics that are due, and close the others.

    Yields: what was done. A plan of some topics closes none.
    """
    by_owner: defaultdict[str, list[tuple[PlannedTopic, Finding]]] = defaultdict(list)
    for topic in plan.topics:
        for note in topic.notes:
            if note.rule in RULES:
                by_owner[topic.owner or ""].append((topic, note))
    marks = {_mark(plan.cluster, owner) for owner in by_owner}
    for owner, due in sorted(by_owner.items()):
        mark = _mark(plan.cluster, owner)
        yield open_issue(run, mark, *_write(plan.cluster, owner, due, run))
    if plan.scope == Scope():
        yield from settle_all(run, plan.cluster, marks)


def settle_all(run: Run, cluster: str, marks: set[str]) -> list[str]:
    """Close the issues on topics that are due, except those with one of these marks."""
    closed: list[str] = []

    def close() -> str:
        begin = _mark(cluster, "").partition("owner=")[0]
        for note in list(run.host.list_issues()):
            if note.body.startswith(begin) and not note.body.startswith(tuple(marks)):
                reason = f"No topic of this owner is due on {code(cluster)} now: {link_run(run)}."
                run.host.close_issue(note.id, reason)
                closed.append(f"issue {note.id} closed")
        return ""

    settle_write(close)
    return closed


def _mark(cluster: str, owner: str) -> str:
    """Return the invisible first line of an issue."""
    said = (quote(word, safe="") for word in (cluster, owner))
    return "<!-- reconciler:due cluster={} owner={} -->".format(*said)


def _write(cluster: str, owner: str, due: Due, run: Run) -> tuple[str, str]:
    """Write title and text of the issue of an owner."""
    whose = owner or "no owner"
    title = f"Kafka topics of {whose} on {cluster}: {len(due):,} due"
    cells = [
        (code(topic.name), prose(note.what), code(f"{topic.location.file}:{topic.location.line}"))
        for topic, note in due[:SHOWN]
    ]
    table = tabulate(("Topic", "Why", "Spec"), cells)
    beyond = len(due) - len(cells)
    more = f"\n\nand {count(beyond, 'more topic')}, which `reconciler plan` shows" if beyond else ""
    text = (
        f"{_mark(cluster, owner)}\nThe specs of these topics say that they are due: their date has "
        "come, or nobody has used them for long. **Nothing is deleted by this.** For each, ask for "
        "its deletion with `state: absent`, write a later `expires` or a longer `idle_after`, or "
        "exempt it in the policy. The issue closes once none of this owner is due. Last seen by "
        f"{link_run(run)}.\n\n{table}{more}\n"
    )
    return title, text
