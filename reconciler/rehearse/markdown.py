"""A rehearsal as Markdown, for a pull request, next to its plan."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.rehearse.rehearsal import Rehearsal
from reconciler.rehearse.text import (
    describe_findings,
    describe_measures,
    describe_setup,
    sort_outcomes,
    summarise_rehearsal,
)
from reconciler.show.markdown.marks import code, prose
from reconciler.show.view import view_plan

MOST_ROWS = 100
"""The most rows of a table and lines of a list; the rest is counted, so that it fits a comment."""


def render_rehearsal_comment(rehearsal: Rehearsal) -> str:
    """Render a rehearsal as a comment: the verdict, what went wrong, then every topic."""
    verdict = "succeeded" if rehearsal.succeeded else "found trouble"
    differences = [
        f"- {code(name)}: {prose(difference)}"
        for name, found in rehearsal.differences.items()
        for difference in found
    ]
    sentences = [
        *describe_findings(rehearsal),
        *describe_measures(rehearsal),
        *(f"{note.what}; {note.way_out}" for note in rehearsal.notes),
        summarise_rehearsal(rehearsal),
    ]
    blocks = [
        f"<!-- reconciler:rehearsal cluster={rehearsal.plan.cluster} -->\n"
        f"### Rehearsal for {code(rehearsal.plan.cluster)} {verdict}",
        prose(describe_setup(rehearsal)),
        "\n".join(_shorten(differences, "differences")),
        _table(rehearsal),
        "\n".join(f"- {prose(line)}" for line in sentences),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _table(rehearsal: Rehearsal) -> str:
    """Make a table of the topics, failures first."""
    if not rehearsal.outcomes:
        return ""
    changes = {topic.name: topic.words for topic in view_plan(rehearsal.plan).topics}
    rows = []
    for one in sort_outcomes(rehearsal):
        change = prose(changes.get(one.topic, ""))
        rule = f" {code(one.rule)}" if one.rule else ""
        rows.append(f"| {one.kind} | {code(one.topic)} | {change} | {prose(one.text)}{rule} |")
    head = ["| Outcome | Topic | Change | |", "|:--|:--|:--|:--|"]
    return "\n".join([*head, *_shorten(rows, "rows")])


def _shorten(lines: Sequence[str], what: str) -> list[str]:
    more = len(lines) - MOST_ROWS
    return [*lines[:MOST_ROWS], f"\n{more:,} more {what} are not shown."] if more > 0 else [*lines]
