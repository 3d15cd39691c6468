"""A rehearsal as Markdown, for a pull request, next to its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.model import OutcomeKind
from reconciler.plan import code, prose, view_plan
from reconciler.rehearse.text import (
    describe_findings,
    describe_measures,
    describe_setup,
    summarise_rehearsal,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reconciler.model import Outcome
    from reconciler.rehearse.rehearsal import Rehearsal

MOST_ROWS = 100
"""Rows of a table and lines of a list: what is longer is counted, so that a comment takes it."""


def render_rehearsal_comment(rehearsal: Rehearsal) -> str:
    """Render a rehearsal as a comment: the verdict, what went wrong, then every topic."""
    verdict = "succeeded" if rehearsal.succeeded else "found trouble"
    blocks = [
        f"<!-- reconciler:rehearsal cluster={rehearsal.plan.cluster} -->\n"
        f"### Rehearsal for {code(rehearsal.plan.cluster)} {verdict}",
        prose(describe_setup(rehearsal)),
        "\n".join(_shorten([f"- {line}" for line in _list_differences(rehearsal)], "differences")),
        _table(rehearsal),
        "\n".join(f"- {prose(line)}" for line in _list_sentences(rehearsal)),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _list_differences(rehearsal: Rehearsal) -> Iterator[str]:
    for name, differences in rehearsal.differences.items():
        yield from (f"{code(name)}: {prose(difference)}" for difference in differences)


def _list_sentences(rehearsal: Rehearsal) -> list[str]:
    notes = [f"{note.what}; {note.way_out}" for note in rehearsal.notes]
    return [
        *describe_findings(rehearsal),
        *describe_measures(rehearsal),
        *notes,
        summarise_rehearsal(rehearsal),
    ]


def _table(rehearsal: Rehearsal) -> str:
    """Make a table of the topics, failures first."""
    if not rehearsal.outcomes:
        return ""
    changes = {topic.name: topic.words for topic in view_plan(rehearsal.plan).topics}
    ordered = sorted(rehearsal.outcomes, key=lambda outcome: outcome.kind is OutcomeKind.DONE)
    rows = _shorten([_row(outcome, changes.get(outcome.topic, "")) for outcome in ordered], "rows")
    return "\n".join(["| Outcome | Topic | Change | |", "|:--|:--|:--|:--|", *rows])


def _row(outcome: Outcome, change: str) -> str:
    rule = f" {code(outcome.rule)}" if outcome.rule else ""
    said = f"{prose(outcome.text)}{rule}"
    return f"| {outcome.kind} | {code(outcome.topic)} | {prose(change)} | {said} |"


def _shorten(lines: Sequence[str], what: str) -> list[str]:
    more = len(lines) - MOST_ROWS
    return [*lines[:MOST_ROWS], f"\n{more:,} more {what} are not shown."] if more > 0 else [*lines]
