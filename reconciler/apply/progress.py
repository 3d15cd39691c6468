"""The progress of each topic of a running plan, and its outcome at the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.apply.convergence import Remaining
from reconciler.apply.kinds import comes_before, kind_of, split_step
from reconciler.model.cluster import is_left_to_brokers
from reconciler.model.outcomes import Answer, AnswerKind, Outcome, OutcomeKind
from reconciler.model.plan import PlannedTopic
from reconciler.model.steps import Step, steps_of

UNSEEN = "accepted; not every broker was seen to show it"
ELSEWHERE = "placed-otherwise"
OTHERWISE = "created-otherwise"
_TO_BROKERS = "write placement: broker below this cluster in clusters.yaml"
LEAVE = f"if they always do, {_TO_BROKERS}"
NAME_IT = (
    "if they always do, write the values that they set into the spec, and name the service below "
    "this cluster in clusters.yaml (service)"
)
TAKE_NONE = f"if they take no assignment at all, {_TO_BROKERS}"
NOT_ASSIGNED = frozenset({"INVALID_REPLICA_ASSIGNMENT", "INVALID_REQUEST"})
REPEAT = "the brokers may still carry it out: run the same command again"


@dataclass(slots=True)
class Progress:
    """One topic: the steps still to do, whether any was sent, its last answer, its failure.

    `unanswered` counts the requests for the first step that the brokers may still carry out.
    `believed` is a refusal that was taken to say that a step is done; the brokers have to show it.
    `held_back` is the reason why its steps were not sent.
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
        """Note that a step is sent: from here on it may be done."""
        self.sent = True
        self.unanswered += 1
        self.answer = None

    def take(self, answer: Answer) -> None:
        """Record the answer to the part of the first step that one request can take."""
        self.answer = answer
        # An answer says nothing of earlier requests for this step that got none.
        if answer.kind is not AnswerKind.LOST:
            self.unanswered = max(0, self.unanswered - 1)
        if answer.kind is AnswerKind.ACCEPTED:
            rest = split_step(self.todo[0])[1]
            self._go_on([rest, *self.todo[1:]] if rest else self.todo[1:])

    def believe(self) -> None:
        """Accept a contradiction as evidence that the first step, or its part, is done."""
        self.sent = True
        self.believed = self.answer
        self.take(Answer(AnswerKind.ACCEPTED))

    def hold_back(self, why: str) -> None:
        """Drop the remaining steps, unsent. A topic that failed before keeps its reason."""
        if not self.failure:
            self.held_back, self.todo = why, []

    def learn(self, steps: Iterable[Step]) -> None:
        """Take the remaining steps from the brokers' views, unless these lag behind."""
        left = list(steps)
        # A step that comes before one that was accepted means that no broker asked knows of the
        # acceptance yet; the controller's answer is newer than their views.
        lags = self.todo and any(comes_before(step, self.todo[0]) for step in left)
        if left != self.todo and not lags:
            self._go_on(left)

    def _go_on(self, todo: list[Step]) -> None:
        """Drop the first step: its pending requests have no further effect."""
        self.todo = todo
        self.unanswered = 0

    @property
    def in_doubt(self) -> bool:
        """Return whether the last answer was not an acceptance, and may not be the last one."""
        if self.answer is None or self.failure is not None:
            return False
        return self.answer.kind is not AnswerKind.ACCEPTED

    @property
    def worth_repeating(self) -> bool:
        """Return whether to send the step again.

        That is so if no decision was made, or if the refusal may be the effect of a lost request.
        """
        undecided = (AnswerKind.LOST, AnswerKind.NOT_DONE)
        return bool(self.answer and self.answer.kind in undecided) or self.contradicted

    @property
    def contradicted(self) -> bool:
        """Return whether the refusal reads as if the step had been done before."""
        if not self.in_doubt or self.answer is None or not self.todo:
            return False
        return kind_of(self.todo[0]).done_error == self.answer.error


def judge_outcome(topic: Progress, left: Remaining | None, stopped: str) -> Outcome:
    """Return the outcome of a topic, given the steps that the cluster shows to be left.

    `left` is None if the cluster cannot be asked; `stopped` says what ended the run early.
    """
    planned, name = topic.planned, topic.planned.name
    if topic.shown or (topic.sent and left and left.is_done):
        return Outcome(name, OutcomeKind.DONE)
    if not topic.sent:
        return _conclude_unsent(topic, stopped)
    # Kafka cannot cancel a request: one without an answer may be carried out after this report.
    is_open = bool(topic.unanswered or topic.believed)
    accepted = not (topic.failure or topic.todo or is_open)
    if left and accepted and (left.elsewhere or (left.moved and not planned.before)):
        return _conclude_otherwise(planned, left)
    if left and left.moved:
        kind = OutcomeKind.UNKNOWN if is_open else OutcomeKind.FAILED
        return Outcome(name, kind, left.moved[0].what, left.moved[0].rule)
    if accepted:
        return Outcome(name, OutcomeKind.DONE, UNSEEN)
    if left:
        topic.learn(left.steps)
    missing = "; ".join(kind_of(step).name_missing(step) for step in topic.todo)
    reason = _reason(topic, stopped)
    if is_open:
        seen = f"not seen: {missing}" if left else "no broker answers to look it up"
        return Outcome(name, OutcomeKind.UNKNOWN, f"{reason}; {seen}; {REPEAT}")
    if tuple(topic.todo) == steps_of(topic.planned):
        return Outcome(name, OutcomeKind.FAILED, reason)
    return Outcome(name, OutcomeKind.HALF_DONE, f"{reason}; missing: {missing}")


def _conclude_otherwise(planned: PlannedTopic, left: Remaining) -> Outcome:
    """Say that the brokers accepted every step, but did something else than the plan.

    New replicas on other brokers are what the spec counts. Another number of them, or a config, of
    a topic that this run created, is not.
    """
    done = "expanded" if planned.before else "created"
    first = left.moved[0].what.removeprefix(f"{planned.name}: ")
    if left.elsewhere:
        text = f"{done}, but the brokers placed it otherwise: {first}; {LEAVE}"
        return Outcome(planned.name, OutcomeKind.DONE, text, ELSEWHERE)
    text = f"{done}, but the brokers made it otherwise: {first}; {NAME_IT}"
    return Outcome(planned.name, OutcomeKind.HALF_DONE, text, OTHERWISE)


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
        return f"{stopped} before an answer" if topic.unanswered else stopped
    if failure.kind is AnswerKind.LOST:
        return f"no answer: {failure.text}"
    refused = failure.kind is AnswerKind.REFUSED
    said = "the brokers refuse it" if refused else "it was not carried out"
    earlier = "; an earlier request got no answer" if topic.unanswered else ""
    # Some services take no assignment. Kafka gives these answers only to one that it cannot hold.
    placed = topic.todo[0].placed if topic.todo else ()
    has_rows = bool(placed) and not is_left_to_brokers(placed)
    hint = f"; {TAKE_NONE}" if has_rows and failure.error in NOT_ASSIGNED else ""
    return f"{said}: {failure.text}{earlier}{hint}"
