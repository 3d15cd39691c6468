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
REPEAT = "the brokers may still carry it out: run the same command again"


@dataclass(slots=True)
class Progress:
    """One topic: the steps still to do, whether any was sent, its last answer, its failure.

    `unanswered` counts the requests for the first step that the brokers may still carry out.
    `believed` is a refusal that was taken to say that a step is done; the brokers have to show it.
    `held_back` says why its steps were not sent after all.
    """

    planned: PlannedTopic
    todo: list[Step]
    sent: bool = False
    unanswered: int = 0
    answer: Answer | None = None
    failure: Answer | None = None
    believed: Answer | None = None
    shown: bool = False
    held_back: str = ""

    def send(self) -> None:
        """Note that a step is on its way: from here on it may be done."""
        self.sent = True
        self.unanswered += 1
        self.answer = None

    def take(self, answer: Answer) -> None:
        """Record the answer to the part of the first step that one request can take."""
        self.answer = answer
        if answer.kind is not AnswerKind.LOST:
            self.unanswered = max(0, self.unanswered - 1)
        if answer.kind is AnswerKind.ACCEPTED:
            rest = split_step(self.todo[0])[1]
            self._go_on([rest, *self.todo[1:]] if rest else self.todo[1:])

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
        lags = self.todo and any(_comes_before(step, self.todo[0]) for step in left)
        if left != self.todo and not lags:
            self._go_on(left)

    def _go_on(self, todo: list[Step]) -> None:
        """Leave the first step behind: whatever of it is on its way changes nothing any more."""
        self.todo = todo
        self.unanswered = 0

    @property
    def in_doubt(self) -> bool:
        """Say whether the last answer was anything but yes."""
        return self.answer is not None and self.answer.kind is not AnswerKind.ACCEPTED

    @property
    def worth_repeating(self) -> bool:
        """What was not decided may be repeated; so may what an earlier lost request contradicts."""
        undecided = (AnswerKind.LOST, AnswerKind.NOT_DONE)
        return bool(self.answer and self.answer.kind in undecided) or self.contradicted

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
    if topic.shown or (topic.sent and left and left.is_done):
        return Outcome(name, OutcomeKind.DONE)
    if not topic.sent:
        return _conclude_unsent(topic, stopped)
    is_open = bool(topic.unanswered or topic.believed)
    if left and left.moved:
        kind = OutcomeKind.UNKNOWN if is_open else OutcomeKind.FAILED
        return Outcome(name, kind, left.moved[0].what, left.moved[0].rule)
    if not topic.failure and not topic.todo and not is_open:
        return Outcome(name, OutcomeKind.DONE, UNSEEN)
    if left:
        topic.learn(left.steps)
    missing = "; ".join(map(describe_step, topic.todo))
    reason = _reason(topic, stopped)
    if is_open:
        seen = f"not seen: {missing}" if left else "no broker answers to look it up"
        return Outcome(name, OutcomeKind.UNKNOWN, f"{reason}; {seen}; {REPEAT}")
    if tuple(topic.todo) == steps_of(topic.planned):
        return Outcome(name, OutcomeKind.FAILED, reason)
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
        return f"{stopped} before an answer came" if topic.unanswered else stopped
    if failure.kind is AnswerKind.LOST:
        return f"no answer came: {failure.text}"
    refused = failure.kind is AnswerKind.REFUSED
    said = "the brokers refuse it" if refused else "it was not carried out"
    earlier = "; an earlier request got no answer" if topic.unanswered else ""
    return f"{said}: {failure.text}{earlier}"


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
