"""What a run of moves says while it works."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.moves.running.relocations import Relocation
from reconciler.moves.running.rows import ENDED_OTHERWISE, Row, RowState
from reconciler.run.events import MovesNote, MovesNoted, MovesWatched, StepAnswered

Observe = Callable[[StepAnswered | MovesNoted | MovesWatched], None]


def note(observe: Observe, kind: MovesNote, text: str, row: Row | Relocation | None = None) -> None:
    """Say what happened."""
    observe(MovesNoted(kind, text, *(row.place if row else (None, None))))


def skip(
    observe: Observe, row: Row | Relocation, text: str, state: RowState = RowState.ELSEWHERE
) -> None:
    """Leave a row alone from now on, unless it is done or in flight."""
    if row.state in (RowState.DONE, *ENDED_OTHERWISE) or row.flight is not None:
        return
    row.end(state, text)
    note(observe, MovesNote.SKIPPED, text, row)
