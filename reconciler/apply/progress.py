"""How far each topic of a running plan has come, and what that amounts to in the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from reconciler.apply.batches import split_step
from reconciler.model import (
    AddPartitions,
    AlterConfig,
    Answer,
    AnswerKind,
    CreateTopic,
    Outcome,
    OutcomeKind,
)
from reconciler.plan import steps_of

if TYPE_CHECKING:
    from reconciler.apply.remaining import Remaining
    from reconciler.model import PlannedTopic, Step

CONTRADICTIONS = ("TOPIC_ALREADY_EXISTS", "INVALID_PARTITIONS")
"""Refusals that say a step is done already, by a request whose answer was lost."""


@dataclass(slots=True)
class Progress:
    """One topic: the steps still to do, whether any was sent, its last answer, its failure."""

    planned: PlannedTopic
    todo: list[Step]
    sent: bool = False
    answer: Answer | None = None
    failure: Answer | None = None
    shown: bool = False

    def take(self, answer: Answer) -> None:
        """Record the answer to the part of the first step that one request can take."""
        self.answer = answer
        if answer.kind is AnswerKind.ACCEPTED:
            rest = split_step(self.todo[0])[1]
            self.todo[:1] = [rest] if rest else []

    @property
    def in_doubt(self) -> bool:
        """Say whether the last answer was anything but yes."""
        return self.answer is not None and self.answer.kind is not AnswerKind.ACCEPTED

    @property
    def worth_repeating(self) -> bool:
        """A lost answer may be repeated; so may one that an earlier lost request contradicts."""
        answer = self.answer
        return answer is not None and (answer.kind is AnswerKind.LOST or self.contradicted)

    @property
    def contradicted(self) -> bool:
        """Say whether the refusal reads as if the step had been done before."""
        return self.answer is not None and self.answer.error in CONTRADICTIONS


def conclude(topic: Progress, left: Remaining) -> Outcome:
    """Say what became of a topic, given what the cluster shows to be left."""
    name = topic.planned.name
    if topic.shown:
        return Outcome(name, OutcomeKind.DONE)
    if not topic.sent:
        return _conclude_unsent(topic)
    if left.moved:
        return Outcome(name, OutcomeKind.FAILED, left.moved[0].what, left.moved[0].rule)
    if not topic.failure and not topic.todo:
        return Outcome(name, OutcomeKind.DONE, "accepted; not every broker was seen to show it")
    if left.is_done:
        return Outcome(name, OutcomeKind.DONE)
    reason = _reason(topic)
    missing = "; ".join(map(describe_step, left.steps))
    if left.steps == steps_of(topic.planned):
        return Outcome(name, OutcomeKind.FAILED, reason)
    return Outcome(name, OutcomeKind.HALF_DONE, f"{reason}; missing: {missing}")


def _conclude_unsent(topic: Progress) -> Outcome:
    name = topic.planned.name
    if topic.failure is None:
        return Outcome(name, OutcomeKind.NOT_ATTEMPTED, "interrupted before its turn")
    return Outcome(name, OutcomeKind.FAILED, _reason(topic))


def _reason(topic: Progress) -> str:
    failure = topic.failure
    if failure is None:
        return "interrupted"
    if failure.kind is AnswerKind.LOST:
        return f"no answer came: {failure.text}"
    return f"the brokers refuse it: {failure.text}"


def describe_step(step: Step) -> str:
    """Say in a few words what a step brings."""
    match step:
        case CreateTopic():
            return "the topic"
        case AddPartitions(first=first, added=rows):
            return f"partitions {first} to {first + len(rows) - 1}"
        case AlterConfig():
            return ", ".join(sorted({*step.set, *step.unset}))
        case _:
            assert_never(step)
