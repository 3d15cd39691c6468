"""What an apply tells: each answer while it runs, and what became of the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.model import OutcomeKind

if TYPE_CHECKING:
    from reconciler.errors import ClusterError
    from reconciler.model import AnswerKind, Outcome


@dataclass(frozen=True, slots=True)
class StepAnswered:
    """Progress: one step of a phase (validate, create, expand, configure, verify) is answered."""

    phase: str
    topic: str
    total: int
    kind: AnswerKind
    text: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of every topic of the plan that had something to do or was refused.

    `cause` is what ended the run before its time, where that was not an interrupt.
    """

    outcomes: tuple[Outcome, ...]
    interrupted: bool = False
    cause: ClusterError | None = None

    @property
    def succeeded(self) -> bool:
        """Everything is as planned."""
        done = (OutcomeKind.DONE, OutcomeKind.ALREADY_DONE)
        return not self.interrupted and all(outcome.kind in done for outcome in self.outcomes)
