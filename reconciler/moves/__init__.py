"""Moves in flight: readings of a cluster as progress, rates, causes and leftover throttles.

Belongs here: what one or two readings say about moves, and their renderings. Forbidden here:
clients, clocks, and anything that starts, changes or ends a move.
"""

from typing import TYPE_CHECKING

from reconciler.exports import export_lazily

if TYPE_CHECKING:
    from reconciler.moves.document import MovesDocument, list_moves
    from reconciler.moves.progress import Cause, MovesReport, measure_moves
    from reconciler.moves.text import render_moves, summarise_moves
    from reconciler.moves.throttles import Leftover, find_leftovers

__all__ = [
    "Cause",
    "Leftover",
    "MovesDocument",
    "MovesReport",
    "find_leftovers",
    "list_moves",
    "measure_moves",
    "render_moves",
    "summarise_moves",
]

__getattr__ = export_lazily(
    __name__,
    {
        "document": "MovesDocument list_moves",
        "progress": "Cause MovesReport measure_moves",
        "text": "render_moves summarise_moves",
        "throttles": "Leftover find_leftovers",
    },
)
"""Text needs no pydantic, which the document does."""
