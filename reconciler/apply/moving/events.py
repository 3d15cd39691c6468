"""What a run of moves says while it works: what happened, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from reconciler.apply.moving.rows import ENDED_OTHERWISE, RowState

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from reconciler.apply.ending import StepAnswered
    from reconciler.apply.moving.rows import Row

    MovesEvent: TypeAlias = "StepAnswered | MovesNoted | MovesWatched"
    Observe = Callable[[MovesEvent], None]


class MovesNote(StrEnum):
    """The kind of an event of a run of moves."""

    STARTED = "started"
    CORDONED = "cordoned"
    DRAINED = "drained"
    PAUSED = "paused"
    RESUMED = "resumed"
    SKIPPED = "skipped"
    BLOCKED = "blocked"
    SLOW = "slow"
    RATE_CHANGED = "rate changed"
    SILENT = "silent"
    STOPPING = "stopping"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class MovesNoted:
    """Something that a person on call asks for later: what happened, and the numbers of it.

    `topic` and `partition` are set if it concerns one partition.
    """

    kind: MovesNote
    text: str
    topic: str | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class MovesWatched:
    """Progress: partitions of the plan by state, and bytes of the replicas to copy.

    `rate_bytes_per_s` is the rate in force per broker, None for no limit. `bytes_per_s` is measured
    over the last half minute, and `seconds_left` follows from it, for what can move; None if they
    are not known, or if nothing can move or begin. `reason` says what holds rows up.
    """

    done: int
    in_flight: int
    waiting: int
    ended_otherwise: int
    bytes_done: int
    bytes_to_do: int
    rate_bytes_per_s: int | None = None
    bytes_per_s: float | None = None
    seconds_left: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MovesSummary:
    """How far a run of moves came, in partitions, and why it ended.

    `reason` is empty if every partition is done. `left` names what the run could not take back:
    throttles, a lowered min.insync.replicas, leaders that are not the preferred ones. `cordoned`
    lists the brokers that are cordoned as the plan says, `emptied` those that hold no replica now.
    """

    done: int
    in_flight: int
    waiting: int
    ended_otherwise: int
    reason: str = ""
    left: tuple[str, ...] = ()
    cordoned: tuple[int, ...] = ()
    emptied: tuple[int, ...] = ()


def note(observe: Observe, kind: MovesNote, text: str, row: Row | None = None) -> None:
    """Say what happened."""
    observe(MovesNoted(kind, text, *(row.place if row else (None, None))))


def skip(observe: Observe, row: Row, text: str, state: RowState = RowState.ELSEWHERE) -> None:
    """Leave a row alone from now on, unless it is done or in flight."""
    if row.state in (RowState.DONE, *ENDED_OTHERWISE) or row.flight is not None:
        return
    row.end(state, text)
    note(observe, MovesNote.SKIPPED, text, row)
