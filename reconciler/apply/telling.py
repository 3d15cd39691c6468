"""What an application of a plan tells: each answer on the way, and every outcome in the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.model import OutcomeKind

if TYPE_CHECKING:
    from reconciler.model import AnswerKind, Outcome


@dataclass(frozen=True, slots=True)
class StepAnswered:
    """Progress: one step of a phase (validate, create, expand, configure, delete, verify)."""

    phase: str
    topic: str
    total: int
    kind: AnswerKind
    text: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of every topic of the plan that had something to do or was refused."""

    outcomes: tuple[Outcome, ...]
    interrupted: bool = False

    @property
    def succeeded(self) -> bool:
        """Everything is as planned."""
        done = (OutcomeKind.DONE, OutcomeKind.ALREADY_DONE)
        return not self.interrupted and all(outcome.kind in done for outcome in self.outcomes)
