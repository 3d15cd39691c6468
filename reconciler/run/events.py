"""What a run says while it works: the answers to its steps, and the progress of its moves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.outcomes import AnswerKind


@dataclass(frozen=True, slots=True)
class StepAnswered:
    """Progress: one step of a phase is answered; `PHASES` names them all."""

    phase: str
    topic: str
    total: int
    kind: AnswerKind
    text: str = ""


@dataclass(frozen=True, slots=True)
class StepsWait:
    """Progress: `left` steps of a phase wait, as a quota of the brokers asks for (KIP-599).

    Or, with `by_rates`, before any quota is exceeded: the run keeps to the rates of the cluster.
    """

    phase: str
    seconds: float
    left: int
    by_rates: bool = False


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
    are not known, or if nothing can move or begin. `reason` says what delays rows.
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
