"""The cost of a plan of moves: always shown, since it is short. Rows are in the details of
topics."""

from __future__ import annotations

from reconciler.show.markdown.folding import Passage, Section
from reconciler.show.markdown.marks import prose
from reconciler.show.view import PlanView
from reconciler.show.wording import capital


def write_moves(plan: PlanView) -> Section:
    """Return a table of what a plan of moves costs; nothing for another plan."""
    if not plan.moves:
        return Section(Passage(""))
    lines = [f"| **{capital(label)}** | {prose(words)} |" for label, words in plan.moves]
    return Section(Passage("\n".join(["| | |", "|:--|:--|", *lines])))
