"""Moves in flight: readings of a cluster as progress, rates, causes and leftover throttles.

Belongs here: what one or two readings say about moves, what may be done about them, and their
renderings. Forbidden here: clients, clocks, and anything that starts, changes or ends a move.
"""

from typing import TYPE_CHECKING

from reconciler.exports import export_lazily

if TYPE_CHECKING:
    from reconciler.moves.decisions import (
        PlannedRow,
        RateEffect,
        RowState,
        Settlement,
        Unsettled,
        explain_keeping,
        find_effect,
        find_rows,
        find_settlement,
        find_traces,
    )
    from reconciler.moves.document import MovesDocument, list_moves
    from reconciler.moves.progress import Cause, MovesReport, measure_moves
    from reconciler.moves.text import render_moves, summarise_moves
    from reconciler.moves.throttles import (
        Leftover,
        choose_removals,
        find_leftovers,
        name_removals,
        say_default,
        say_rate,
    )

__all__ = [
    "Cause",
    "Leftover",
    "MovesDocument",
    "MovesReport",
    "PlannedRow",
    "RateEffect",
    "RowState",
    "Settlement",
    "Unsettled",
    "choose_removals",
    "explain_keeping",
    "find_effect",
    "find_leftovers",
    "find_rows",
    "find_settlement",
    "find_traces",
    "list_moves",
    "measure_moves",
    "name_removals",
    "render_moves",
    "say_default",
    "say_rate",
    "summarise_moves",
]

__getattr__ = export_lazily(
    __name__,
    {
        "decisions": (
            "PlannedRow RateEffect RowState Settlement Unsettled explain_keeping find_effect "
            "find_rows find_settlement find_traces"
        ),
        "document": "MovesDocument list_moves",
        "progress": "Cause MovesReport measure_moves",
        "text": "render_moves summarise_moves",
        "throttles": "Leftover choose_removals find_leftovers name_removals say_default say_rate",
    },
)
"""Text needs no pydantic, which the document does."""
