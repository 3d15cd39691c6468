"""How a run ended: the outcome of each topic, and the result of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from reconciler.errors import (
    AuditError,
    ClusterError,
    LockHeldError,
    LockLostError,
    OutdatedPlanError,
    RefusedPlanError,
    StalePlanError,
    UnapprovedPlanError,
    UsageError,
)
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.run.events import MovesSummary
from reconciler.units import count


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of every topic of the plan that had steps or was refused.

    `cause` is what ended the run before its time, if that was not an interrupt. `moves` is set for
    a plan of moves; an interrupted one is unfinished, as its copies go on in Kafka.
    """

    outcomes: tuple[Outcome, ...]
    interrupted: bool = False
    cause: ClusterError | None = None
    moves: MovesSummary | None = None

    @property
    def succeeded(self) -> bool:
        """Everything is as planned."""
        return end_run(self).ended in (Ended.DONE, Ended.NOTHING_TO_DO)


class Ended(StrEnum):
    """The result of a run of apply."""

    DONE = "done"
    NOTHING_TO_DO = "nothing to do"
    AUDIT_LOST = "audit lost"
    FAILED = "failed"
    UNFINISHED = "unfinished"
    ERROR = "error"
    LOCK_LOST = "lock lost"
    UNKNOWN = "unknown"
    INTERRUPTED = "interrupted"
    REFUSED = "refused"
    STALE = "stale"
    OUTDATED = "outdated"
    LOCKED = "locked"
    NOT_APPROVED = "not approved"
    USAGE_ERROR = "usage error"


_EXIT_CODES: Mapping[Ended, int] = MappingProxyType(
    {
        Ended.DONE: 0,
        Ended.NOTHING_TO_DO: 0,
        Ended.UNFINISHED: 2,
        Ended.USAGE_ERROR: UsageError.exit_code,
        Ended.UNKNOWN: 75,  # EX_TEMPFAIL of sysexits.h: try again
        Ended.INTERRUPTED: 130,
    }
)

_BY_ERROR: Mapping[type[BaseException], Ended] = MappingProxyType(
    {
        RefusedPlanError: Ended.REFUSED,
        StalePlanError: Ended.STALE,
        OutdatedPlanError: Ended.OUTDATED,
        UnapprovedPlanError: Ended.NOT_APPROVED,
        LockHeldError: Ended.LOCKED,
        LockLostError: Ended.LOCK_LOST,
        UsageError: Ended.USAGE_ERROR,
        KeyboardInterrupt: Ended.INTERRUPTED,
    }
)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended: its exit code, its last line and every record of it follow from this.

    `error` is what ended it before its time, or kept its record from the audit topic. `moves` is
    set if it moved replicas.
    """

    ended: Ended
    outcomes: tuple[Outcome, ...] = ()
    error: str | None = None
    moves: MovesSummary | None = None

    @property
    def exit_code(self) -> int:
        """Return the exit code, one of the table of docs/reference/exit-codes.md."""
        return _EXIT_CODES.get(self.ended, 1)

    @property
    def last_line(self) -> str:
        """Return one line with the result of the run, and the number of topics by outcome."""
        if self.ended is Ended.NOTHING_TO_DO:
            return "Nothing to do."
        counts = Counter(str(outcome.kind) for outcome in self.outcomes)
        listed = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
        if self.moves and self.moves.cordoned:
            cordoned = f"{count(len(self.moves.cordoned), 'broker')} cordoned"
            listed = f"{listed}, {cordoned}" if listed else cordoned
        said = f"Applied: {listed}" if listed else "Nothing was changed."
        return said if self.ended is Ended.DONE else f"{self.ended.capitalize()}. {said}"


def end_run(applied: Applied | None = None, error: BaseException | None = None) -> Ending:
    """Decide how a run ended, from what became of the plan or from the error that ended it.

    The order of precedence: an interrupt, unknown outcomes, an error that stopped the run, moves
    that are unfinished, failures.
    """
    if isinstance(error, AuditError) and isinstance(earlier := error.ending, Ending):
        # A lost record is the result only of a run that succeeded; any other run keeps its own.
        ended = earlier.ended if earlier.exit_code else Ended.AUDIT_LOST
        return Ending(ended, earlier.outcomes, str(error), earlier.moves)
    cause = error or (applied.cause if applied else None)
    outcomes = applied.outcomes if applied else ()
    moves = applied.moves if applied else None
    kinds = {outcome.kind for outcome in outcomes}
    if applied and applied.interrupted:
        ended = Ended.INTERRUPTED
    elif OutcomeKind.UNKNOWN in kinds:
        ended = Ended.UNKNOWN
    elif cause:
        ended = next((e for kind, e in _BY_ERROR.items() if isinstance(cause, kind)), Ended.ERROR)
    elif any(kind.is_unfinished for kind in kinds) or (moves and moves.left):
        ended = Ended.UNFINISHED
    elif not kinds and not (moves and moves.cordoned):
        ended = Ended.NOTHING_TO_DO
    elif all(kind.is_done for kind in kinds):
        ended = Ended.DONE
    else:
        ended = Ended.FAILED
    said = "interrupted" if isinstance(cause, KeyboardInterrupt) else str(cause)
    return Ending(ended, outcomes, (said or type(cause).__name__) if cause else None, moves)
