"""How far each topic of a running plan has come, and what that amounts to in the end."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, assert_never

from reconciler.apply.batches import split_step
from reconciler.model import (
    AddPartitions,
    AlterConfig,
    Answer,
    AnswerKind,
    CreateTopic,
    DeleteTopic,
    Outcome,
    OutcomeKind,
    Step,
)
from reconciler.plan import steps_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconciler.apply.remaining import Remaining
    from reconciler.model import PlannedTopic

CONTRADICTIONS: Mapping[type[Step], str] = MappingProxyType(
    {
        CreateTopic: "TOPIC_ALREADY_EXISTS",
        AddPartitions: "INVALID_PARTITIONS",
        DeleteTopic: "UNKNOWN_TOPIC_ID",
    }
)
"""Refusals that say a step is done already, by a request whose answer was lost."""

UNSEEN = "accepted; not every broker was seen to show it"


@dataclass(slots=True)
class Progress:
    """One topic: the steps still to do, whether any was sent, its last answer, its failure.

    `believed` is a refusal that was taken to say that a step is done; the brokers have to show it.
    `held_back` says why its steps were not sent after all.
    """

    planned: PlannedTopic
    todo: list[Step]
    sent: bool = False
    answer: Answer | None = None
    failure: Answer | None = None
    believed: Answer | None = None
    shown: bool = False
    held_back: str = ""

    def send(self) -> None:
        """Note that a step is on its way: from here on it may be done."""
        self.sent = True
        self.answer = None

    def take(self, answer: Answer) -> None:
        """Record the answer to the part of the first step that one request can take."""
        self.answer = answer
        if answer.kind is AnswerKind.ACCEPTED:
            rest = split_step(self.todo[0])[1]
            self.todo[:1] = [rest] if rest else []

    def believe(self) -> None:
        """Take a contradiction for what it says: the first step, or its part, is done."""
        self.sent = True
        self.believed = self.answer
        self.take(Answer(AnswerKind.ACCEPTED))

    def hold_back(self, why: str) -> None:
        """Give up what is left to do, unsent. A topic that failed before keeps its reason."""
        if not self.failure:
            self.held_back, self.todo = why, []

    def learn(self, steps: Iterable[Step]) -> None:
        """Take over what the brokers show to be left, unless they lag behind what they accepted."""
        left = list(steps)
        if not self.todo or not any(_comes_before(step, self.todo[0]) for step in left):
            self.todo = left

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
        if not self.in_doubt or self.answer is None or not self.todo:
            return False
        return CONTRADICTIONS.get(type(self.todo[0])) == self.answer.error


def _comes_before(step: Step, other: Step) -> bool:
    """Say whether a step is done before another, or is an earlier part of it."""
    return _order(step) < _order(other)


def _order(step: Step) -> tuple[int, int]:
    match step:
        case CreateTopic():
            return (0, 0)
        case AddPartitions(first=first):
            return (1, first)
        case AlterConfig():
            return (2, 0)
        case DeleteTopic():
            return (3, 0)
        case _:
            assert_never(step)


def conclude(topic: Progress, left: Remaining | None, stopped: str) -> Outcome:
    """Say what became of a topic, given what the cluster shows to be left.

    `left` is None where the cluster cannot be asked; `stopped` says what ended the run early.
    """
    name = topic.planned.name
    if topic.shown:
        return Outcome(name, OutcomeKind.DONE)
    if not topic.sent:
        return _conclude_unsent(topic, stopped)
    if left and left.moved:
        return Outcome(name, OutcomeKind.FAILED, left.moved[0].what, left.moved[0].rule)
    if not topic.failure and not topic.todo and not topic.believed:
        return Outcome(name, OutcomeKind.DONE, UNSEEN)
    reason = _reason(topic, stopped)
    if left is None:
        unknown = "nobody can say how much of it is done; apply it again when brokers answer"
        return Outcome(name, OutcomeKind.FAILED, f"{reason}; {unknown}")
    return _conclude_seen(topic, left, reason)


def _conclude_seen(topic: Progress, left: Remaining, reason: str) -> Outcome:
    name = topic.planned.name
    if left.is_done:
        return Outcome(name, OutcomeKind.DONE)
    if left.steps == steps_of(topic.planned):
        return Outcome(name, OutcomeKind.FAILED, reason)
    missing = "; ".join(map(describe_step, left.steps))
    return Outcome(name, OutcomeKind.HALF_DONE, f"{reason}; missing: {missing}")


def _conclude_unsent(topic: Progress, stopped: str) -> Outcome:
    name = topic.planned.name
    if topic.held_back:
        return Outcome(name, OutcomeKind.NOT_ATTEMPTED, topic.held_back)
    if topic.failure is None:
        return Outcome(name, OutcomeKind.NOT_ATTEMPTED, f"{stopped} before its turn")
    return Outcome(name, OutcomeKind.FAILED, _reason(topic, stopped))


def _reason(topic: Progress, stopped: str) -> str:
    failure = topic.failure or topic.believed
    if failure is None:
        return stopped if topic.answer else f"{stopped} before an answer came"
    if failure.kind is AnswerKind.LOST:
        return f"no answer came: {failure.text}"
    return f"the brokers refuse it: {failure.text}"


def describe_step(step: Step) -> str:
    """Say in a few words what a step brings."""
    match step:
        case CreateTopic():
            return "the topic"
        case AddPartitions(first=first, added=rows):
            last = first + len(rows) - 1
            return f"partitions {first} to {last}" if last > first else f"partition {first}"
        case AlterConfig():
            return ", ".join(sorted({*step.set, *step.unset}))
        case DeleteTopic():
            return "its deletion"
        case _:
            assert_never(step)
