"""The control of moves: what it looks at again before it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from readings import listed, move, rate, reading

from reconciler.api.move_control import Locking, MoveControl
from reconciler.errors import ClusterError
from reconciler.moves.throttles import choose_removals

if TYPE_CHECKING:
    from reconciler.model.moves import MovesReading


class Later:
    """A cluster as it is when the approval has come. It takes no write."""

    def __init__(self, now: MovesReading) -> None:
        self.now = now

    def read(self, topics: object) -> MovesReading:  # noqa: ARG002
        return self.now


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ({"lists": (listed("t", "0:1,1:4"),)}, "these throttles have other values now"),
        ({"lists": (listed("t", "0:1"),), "moves": (move(),)}, "a list of t is used by what is"),
        ({}, "nothing is throttled by a list of t"),
    ],
)
def test_throttles_that_changed_since_they_were_shown_are_not_removed(
    then: dict[str, Any], said: str
) -> None:
    own = rate(5, 7)
    shown = reading(lists=(listed("t", "0:1"),), rates=(own,))
    chosen, _ = choose_removals(shown, ["t"], [5], of_all=False)
    control = object.__new__(MoveControl)
    moves = then.pop("moves", ())
    control._mover = cast("Any", Later(reading(*moves, rates=(own,), **then)))
    with pytest.raises(ClusterError, match=f"{said}.*nothing was removed"):
        control.remove(chosen, Locking(None))
