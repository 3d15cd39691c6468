"""Apply a plan: check that it still holds, ask the brokers first, do it, see that it is there."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from reconciler.apply.applied import Applied, StepAnswered
from reconciler.apply.batches import make_batches, send_batch, split_step
from reconciler.apply.deletions import SecondLook, look_again
from reconciler.apply.preconditions import find_moved, find_other_cluster
from reconciler.apply.progress import Progress, conclude
from reconciler.apply.remaining import Remaining
from reconciler.apply.sight import look, look_everywhere
from reconciler.errors import ClusterError, RefusedPlanError, StalePlanError
from reconciler.model import (
    AddPartitions,
    AlterConfig,
    Answer,
    AnswerKind,
    CreateTopic,
    DeleteTopic,
    Outcome,
    OutcomeKind,
)
from reconciler.plan import is_deletion, list_refusals, steps_of
from reconciler.side_by_side import run_side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from reconciler.model import Plan, PlannedTopic, Step
    from reconciler.ports import Clock, ClusterReader, ClusterWriter, Lease

PHASES: tuple[tuple[str, type[Step]], ...] = (
    ("create", CreateTopic),
    ("expand", AddPartitions),
    ("configure", AlterConfig),
    ("delete", DeleteTopic),
)
IN_FLIGHT = 3
PAUSES_S = (0.5, 2.0, 8.0)
INTERRUPTED = "interrupted"
NOT_ALL_DONE = "something else of the plan failed or is refused, and deletions come last"


class Unlocked:
    """The lease of a run that takes no lock."""

    def check(self) -> None:
        """Stand, whatever happens."""


def apply_plan(
    plan: Plan,
    reader: ClusterReader,
    writer: ClusterWriter,
    clock: Clock,
    observe: Callable[[StepAnswered], None] = lambda _: None,
    *,
    lease: Lease | None = None,
    skip_refused: bool = False,
    patience_s: float = 600.0,
) -> Applied:
    """Do the steps of a plan, and nothing else.

    `lease` is checked before each request that changes something. `patience_s` bounds the wait
    for brokers to show what the controller accepted. An interrupt ends the run with a report of
    what was done; so does a cluster that no longer answers, and a lease that is lost. One more
    interrupt ends the wait for answers under way, a third the report.
    Errors: RefusedPlanError before anything is read; StalePlanError, and ClusterError where the
    cluster cannot be read, before anything is written.
    """
    if refusals := list_refusals(plan, skip_refused=skip_refused):
        raise RefusedPlanError(refusals)
    run = _Run(plan, reader, writer, clock, observe, lease or Unlocked())
    run.check_against_cluster()
    try:
        run.validate()
        run.execute()
        run.verify(patience_s)
    except KeyboardInterrupt:
        run.stopped = INTERRUPTED
    except ClusterError as error:
        if not run.has_sent:
            raise
        run.stopped = f"stopped, since {error.findings[0].what},"
        run.cause = error
    return run.report()


@dataclass(slots=True)
class _Run:
    """One application of a plan."""

    plan: Plan
    reader: ClusterReader
    writer: ClusterWriter
    clock: Clock
    observe: Callable[[StepAnswered], None]
    lease: Lease
    topics: dict[str, Progress] = field(default_factory=dict)
    already_done: list[str] = field(default_factory=list)
    stopped: str = ""
    cause: ClusterError | None = None

    @property
    def has_sent(self) -> bool:
        """Say whether anything may have been written."""
        return any(topic.sent for topic in self.topics.values())

    def check_against_cluster(self) -> None:
        """Find what is left to do. Errors: StalePlanError with everything that moved."""
        planned = {topic.name: topic for topic in self.plan.topics if steps_of(topic)}
        state = self.reader.read_cluster(config_of=())
        if elsewhere := list(find_other_cluster(self.plan, state)):
            raise StalePlanError(elsewhere)
        ids = self.reader.read_topic_ids([n for n, t in planned.items() if t.before])
        found = look(self.reader, self.clock, planned)
        second = self._look_twice({n: planned[n] for n, left in found.items() if left.steps})
        if moved := list(find_moved(self.plan, state, ids, found, second)):
            raise StalePlanError(moved)
        found |= dict.fromkeys(second.gone, Remaining())
        for name, remaining in found.items():
            if remaining.is_done:
                self.already_done.append(name)
            else:
                self.topics[name] = Progress(planned[name], list(remaining.steps))

    def validate(self) -> None:
        """Ask the brokers about every step before any of them is done.

        Errors: StalePlanError where an answer shows that a topic moved meanwhile.
        """
        waiting = list(self.topics)
        for pause in (*PAUSES_S, None):
            steps = [split_step(step)[0] for name in waiting for step in self.topics[name].todo]
            self._ask_first(steps)
            waiting = self._reconsider_validation(waiting, final=pause is None)
            if not waiting or pause is None:
                return
            self.clock.sleep(pause)

    def execute(self) -> None:
        """Do creates, expansions, configs, deletions; a failed topic does not stop the others.

        But for deletions: what is to go may be what something else was to replace.
        """
        for phase, kind in PHASES:
            if kind is DeleteTopic:
                self._hold_back()
            while steps := self._next_steps(kind):
                self._settle(phase, steps)

    def verify(self, patience_s: float) -> None:
        """Wait until every broker's view shows each change."""
        waiting = {n: t.planned for n, t in self.topics.items() if t.sent and not t.failure}
        total = len(waiting)
        deadline = self.clock.monotonic() + patience_s
        pause = 0.05
        while waiting and self.clock.monotonic() < deadline:
            for name, remaining in look_everywhere(self.reader, waiting).items():
                if remaining.is_done or remaining.moved:
                    del waiting[name]
                    self.topics[name].shown = remaining.is_done
                    kind = AnswerKind.ACCEPTED if remaining.is_done else AnswerKind.REFUSED
                    self.observe(StepAnswered("verify", name, total, kind))
            if waiting:
                self.clock.sleep(pause)
                pause = min(pause * 1.5, 2.0)

    def report(self) -> Applied:
        """Say what became of every topic, by name; what was sent and not seen is looked at."""
        unseen = {n: t.planned for n, t in self.topics.items() if t.sent and not t.shown}
        left: Mapping[str, Remaining] = {}
        # Without an answer the topics' own answers say what is known; so after an interrupt, since
        # what was done has to be reported.
        with suppress(ClusterError, KeyboardInterrupt):
            left = look(self.reader, self.clock, unseen)
        outcomes = [conclude(t, left.get(n), self.stopped) for n, t in self.topics.items()]
        outcomes += [Outcome(name, OutcomeKind.ALREADY_DONE) for name in self.already_done]
        outcomes += [
            Outcome(topic.name, OutcomeKind.REFUSED, topic.refusals[0].what, topic.refusals[0].rule)
            for topic in self.plan.topics
            if topic.refusals
        ]
        ordered = tuple(sorted(outcomes, key=lambda o: o.topic))
        return Applied(ordered, self.stopped == INTERRUPTED, self.cause)

    def _hold_back(self) -> None:
        """Look at deletions a last time: none is sent of what is used, or if not all is done."""
        doomed = {n: t for n, t in self.topics.items() if is_deletion(t.planned)}
        failed = any(topic.failure for topic in self.topics.values())
        if failed or list_refusals(self.plan):
            for topic in doomed.values():
                topic.hold_back(NOT_ALL_DONE)
            return
        second = self._look_twice({name: topic.planned for name, topic in doomed.items()})
        for name, findings in second.used.items():
            doomed[name].hold_back(findings[0].what)
        for name in second.gone:
            self.already_done.append(name)
            del self.topics[name]

    def _look_twice(self, topics: Mapping[str, PlannedTopic]) -> SecondLook:
        doomed = {name: topic for name, topic in topics.items() if is_deletion(topic)}
        return look_again(self.reader, self.clock, doomed, PAUSES_S)

    def _next_steps(self, kind: type[Step]) -> list[Step]:
        """Take the next step of `kind` from every topic that has not failed."""
        ready = [t.todo for t in self.topics.values() if t.todo and not t.failure]
        return [todo[0] for todo in ready if isinstance(todo[0], kind)]

    def _reconsider_validation(self, names: Sequence[str], *, final: bool) -> list[str]:
        """Judge what was not accepted. Returns the topics worth asking about again.

        A topic may be done by a run that was killed, and no broker shows it yet; where none does
        in the end, the controller's word is taken.
        """
        doubtful = [self.topics[name] for name in names if self.topics[name].in_doubt]
        contradicted = {t.planned.name: t.planned for t in doubtful if t.contradicted}
        found = look(self.reader, self.clock, contradicted)
        if moved := [finding for left in found.values() for finding in left.moved]:
            raise StalePlanError(moved)
        again = []
        for topic in doubtful:
            name, answer = topic.planned.name, topic.answer
            if name in found and found[name].is_done:
                self.already_done.append(name)
                del self.topics[name]
            elif name in found and final:
                topic.believe()
            elif final or (answer and answer.kind is AnswerKind.REFUSED and name not in found):
                topic.failure = answer
            else:
                topic.learn(found[name].steps if name in found else topic.todo)
                topic.answer = None
                again.append(name)
        return again

    def _settle(self, phase: str, steps: Sequence[Step]) -> None:
        """Send one part of each step; send what was lost again until it is done or hopeless."""
        for pause in (*PAUSES_S, None):
            parts = [split_step(step)[0] for step in steps]
            self._send(phase, parts)
            doubtful = [part.topic for part in parts if self.topics[part.topic].in_doubt]
            steps = self._look_again(doubtful, type(steps[0]), final=pause is None)
            if not steps or pause is None:
                return
            self.clock.sleep(pause)

    def _look_again(self, names: Sequence[str], kind: type[Step], *, final: bool) -> list[Step]:
        """Look at the cluster for what was not accepted; return the steps worth sending again."""
        again: list[Step] = []
        found = look(self.reader, self.clock, {name: self.topics[name].planned for name in names})
        for name, left in found.items():
            topic = self.topics[name]
            if left.moved:
                topic.failure = topic.answer
                continue
            topic.learn(left.steps)
            if not topic.todo or not isinstance(topic.todo[0], kind):
                topic.answer = None
            elif final and topic.contradicted:
                topic.believe()
            elif final or not topic.worth_repeating:
                topic.failure = topic.answer
            else:
                again.append(topic.todo[0])
        return again

    def _ask_first(self, steps: Sequence[Step]) -> None:
        """Have the brokers check steps, and keep each topic's worst answer."""

        def take(answers: Mapping[str, Answer]) -> None:
            for name, answer in answers.items():
                if not self.topics[name].in_doubt:
                    self.topics[name].answer = answer
            self._tell("validate", len(steps), answers)

        batches = [batch for _, kind in PHASES for batch in make_batches(_of(kind, steps))]
        send = partial(send_batch, self.writer, validate_only=True)
        run_side_by_side(send, batches, IN_FLIGHT, take)

    def _send(self, phase: str, steps: Sequence[Step]) -> None:
        """Send steps of one kind; answers are kept by the thread that gets them."""

        def send(batch: Sequence[Step]) -> Mapping[str, Answer]:
            self.lease.check()
            for step in batch:
                self.topics[step.topic].send()
            answers = send_batch(self.writer, batch)
            for name, answer in answers.items():
                self.topics[name].take(answer)
            return answers

        tell = partial(self._tell, phase, len(steps))
        run_side_by_side(send, make_batches(steps), IN_FLIGHT, tell)

    def _tell(self, phase: str, total: int, answers: Mapping[str, Answer]) -> None:
        for name, answer in answers.items():
            self.observe(StepAnswered(phase, name, total, answer.kind, answer.text))


def _of(kind: type[Step], steps: Sequence[Step]) -> list[Step]:
    return [step for step in steps if isinstance(step, kind)]
