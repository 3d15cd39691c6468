"""The first thing a reviewer sees: which topics go for good, and what goes with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.plan.markdown.dangers import EXAMPLES, list_names
from reconciler.plan.markdown.folding import Section, Telling
from reconciler.plan.markdown.marks import code, folded, prose
from reconciler.plan.steps import is_deletion
from reconciler.plan.text import describe_records, describe_size
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.model import Plan, PlannedTopic


def tell_deletions(plan: Plan) -> Section:
    """Tell what is deleted: each topic with its size and records, or by name, or the number."""
    going = [topic for topic in plan.topics if is_deletion(topic)]
    if not going:
        return Section(Telling(""))
    names = [topic.name for topic in going]
    alarm, topics = _alarm(going), count(len(going), "topic")
    few, table = f"{alarm} {list_names(names, EXAMPLES)}", _table(going)
    short = len(names) <= EXAMPLES
    return Section(
        Telling(few, "" if short else f"most names of {topics} to delete"),
        (
            lambda: Telling(f"{alarm}\n\n{table if short else folded(topics, table)}"),
            lambda: Telling(f"{alarm} {list_names(names)}", f"the sizes of {topics} to delete"),
        ),
    )


def _alarm(going: Sequence[PlannedTopic]) -> str:
    are, they = ("is", "it holds") if len(going) == 1 else ("are", "they hold")
    topics = count(len(going), "topic")
    return f"> [!CAUTION]\n> **{topics} {are} deleted for good**, with every record {they}."


def _table(going: Sequence[PlannedTopic]) -> str:
    lines = ["| Deleted | Size | Records | Spec |", "|:--|:--|:--|:--|"]
    for topic in going:
        place = code(f"{topic.location.file}:{topic.location.line}")
        records = prose(describe_records(topic))
        lines.append(f"| {code(topic.name)} | {describe_size(topic)} | {records} | {place} |")
    return "\n".join(lines)
