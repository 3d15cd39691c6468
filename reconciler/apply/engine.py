"""Apply a plan: check that it still holds, ask the brokers first, do it, see that it is there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reconciler.apply.batches import make_batches, split_step
from reconciler.apply.preconditions import find_moved
from reconciler.apply.progress import Progress, conclude
from reconciler.apply.remaining import Remaining, find_in_views
from reconciler.errors import RefusedPlanError, StalePlanError
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
    from collections.abc import Callable, Mapping, Sequence

    from reconciler.model import Plan, PlannedTopic, Step
    from reconciler.ports import Clock, ClusterReader, ClusterWriter

PHASES: tuple[tuple[str, type[Step]], ...] = (
    ("create", CreateTopic),
    ("expand", AddPartitions),
    ("configure", AlterConfig),
)
IN_FLIGHT = 3
PAUSES_S = (0.5, 2.0, 8.0)


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
    """What became of every topic of the plan that had something to do or was refused."""

    outcomes: tuple[Outcome, ...]
    interrupted: bool = False

    @property
    def succeeded(self) -> bool:
        """Everything is as planned."""
        done = (OutcomeKind.DONE, OutcomeKind.ALREADY_DONE)
        return not self.interrupted and all(outcome.kind in done for outcome in self.outcomes)


def apply_plan(
    plan: Plan,
    reader: ClusterReader,
    writer: ClusterWriter,
    clock: Clock,
    observe: Callable[[StepAnswered], None] = lambda _: None,
    *,
    skip_refused: bool = False,
    patience_s: float = 600.0,
) -> Applied:
    """Do the steps of a plan, and nothing else.

    `patience_s` bounds the wait for brokers to show what the controller accepted. An interrupt
    ends the run with a report of what was done; a second one ends the report.
    Errors: RefusedPlanError before anything is read, StalePlanError before anything is written,
    ClusterError where the cluster cannot be read.
    """
    refusals = [refusal for topic in plan.topics for refusal in topic.refusals]
    if refusals and not skip_refused:
        raise RefusedPlanError(refusals)
    run = _Run(plan, reader, writer, clock, observe)
    run.check_against_cluster()
    try:
        run.validate()
        run.execute()
        run.verify(patience_s)
    except KeyboardInterrupt:
        run.interrupted = True
    return run.report()


@dataclass(slots=True)
class _Run:
    """One application of a plan."""

    plan: Plan
    reader: ClusterReader
    writer: ClusterWriter
    clock: Clock
    observe: Callable[[StepAnswered], None]
    topics: dict[str, Progress] = field(default_factory=dict)
    already_done: list[str] = field(default_factory=list)
    interrupted: bool = False

    def check_against_cluster(self) -> None:
        """Find what is left to do. Errors: StalePlanError with everything that moved."""
        planned = {topic.name: topic for topic in self.plan.topics if steps_of(topic)}
        state = self.reader.read_cluster(config_of=())
        ids = self.reader.read_topic_ids([n for n, t in planned.items() if t.before])
        moved = list(find_moved(self.plan, state, ids))
        found = self._look(planned) if not moved else {}
        moved += [finding for remaining in found.values() for finding in remaining.moved]
        if moved:
            raise StalePlanError(moved)
        self.already_done = [name for name, remaining in found.items() if remaining.is_done]
        self.topics = {
            name: Progress(planned[name], list(remaining.steps))
            for name, remaining in found.items()
            if not remaining.is_done
        }

    def validate(self) -> None:
        """Ask the brokers about every step before any of them is done."""
        steps = [split_step(step)[0] for topic in self.topics.values() for step in topic.todo]
        for name, answer in self._ask("validate", steps, validate_only=True).items():
            if answer.kind is not AnswerKind.ACCEPTED:
                self.topics[name].failure = answer

    def execute(self) -> None:
        """Do creates, then expansions, then configs; a failed topic does not stop the others."""
        for phase, kind in PHASES:
            while steps := self._next_steps(kind):
                self._settle(phase, steps)

    def verify(self, patience_s: float) -> None:
        """Wait until every broker's view shows each change."""
        waiting = {n: t.planned for n, t in self.topics.items() if t.sent and not t.failure}
        total = len(waiting)
        deadline = self.clock.monotonic() + patience_s
        pause = 0.05
        while waiting and self.clock.monotonic() < deadline:
            for name, remaining in self._see_everywhere(waiting).items():
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
        left = self._look(unseen) if unseen else {}
        outcomes = [conclude(t, left.get(n, Remaining())) for n, t in self.topics.items()]
        outcomes += [Outcome(name, OutcomeKind.ALREADY_DONE) for name in self.already_done]
        outcomes += [
            Outcome(topic.name, OutcomeKind.REFUSED, topic.refusals[0].what, topic.refusals[0].rule)
            for topic in self.plan.topics
            if topic.refusals
        ]
        return Applied(tuple(sorted(outcomes, key=lambda o: o.topic)), self.interrupted)

    def _next_steps(self, kind: type[Step]) -> list[Step]:
        """Take the next step of `kind` from every topic that has not failed."""
        ready = [t.todo for t in self.topics.values() if t.todo and not t.failure]
        return [todo[0] for todo in ready if isinstance(todo[0], kind)]

    def _settle(self, phase: str, steps: Sequence[Step]) -> None:
        """Send one part of each step; send what was lost again until it is done or hopeless."""
        for pause in (*PAUSES_S, None):
            parts = [split_step(step)[0] for step in steps]
            self._ask(phase, parts)
            doubtful = [part.topic for part in parts if self.topics[part.topic].in_doubt]
            steps = self._look_again(doubtful, type(steps[0]), final=pause is None)
            if not steps or pause is None:
                return
            self.clock.sleep(pause)

    def _look_again(self, names: Sequence[str], kind: type[Step], *, final: bool) -> list[Step]:
        """Look at the cluster for what was not accepted; return the steps worth sending again."""
        again: list[Step] = []
        found = self._look({name: self.topics[name].planned for name in names}) if names else {}
        for name, left in found.items():
            topic = self.topics[name]
            same = [step for step in left.steps if isinstance(step, kind)]
            topic.todo = list(left.steps)
            if not left.moved and not same:
                topic.answer = None
            elif final and topic.contradicted:
                topic.todo = [step for step in left.steps if step not in same]
            elif final or left.moved or not topic.worth_repeating:
                topic.failure = topic.answer
            else:
                again += same
        return again

    def _ask(
        self, phase: str, steps: Sequence[Step], *, validate_only: bool = False
    ) -> dict[str, Answer]:
        """Send steps in batches, several in flight. Returns each topic's worst answer."""
        answers: dict[str, Answer] = {}
        kinds = [[step for step in steps if isinstance(step, kind)] for _, kind in PHASES]
        batches = [batch for same in kinds for batch in make_batches(same)]
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            try:
                for result in pool.map(lambda b: self._send(b, validate_only), batches):
                    for name, answer in result.items():
                        if answers.get(name, answer).kind is AnswerKind.ACCEPTED:
                            answers[name] = answer
                        text, kind = answer.text, answer.kind
                        self.observe(StepAnswered(phase, name, len(steps), kind, text))
            except KeyboardInterrupt:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return answers

    def _send(self, batch: Sequence[Step], validate_only: bool) -> Mapping[str, Answer]:  # noqa: FBT001
        """Send one request and record its answers, in the thread that got them."""
        if not validate_only:
            for step in batch:
                self.topics[step.topic].sent = True
        answers = self._request(batch, validate_only=validate_only)
        if not validate_only:
            for name, answer in answers.items():
                self.topics[name].take(answer)
        return answers

    def _request(self, batch: Sequence[Step], *, validate_only: bool) -> Mapping[str, Answer]:
        if creates := [step for step in batch if isinstance(step, CreateTopic)]:
            return self.writer.create_topics(creates, validate_only=validate_only)
        if expansions := [step for step in batch if isinstance(step, AddPartitions)]:
            return self.writer.add_partitions(expansions, validate_only=validate_only)
        configs = [step for step in batch if isinstance(step, AlterConfig)]
        return self.writer.alter_configs(configs, validate_only=validate_only)

    def _look(self, topics: Mapping[str, PlannedTopic]) -> dict[str, Remaining]:
        """Ask all brokers what is left to do; the most advanced view counts."""
        views = self.reader.read_views(topics, topics).values()
        return {
            name: find_in_views(topic, [view.get(name) for view in views])
            for name, topic in topics.items()
        }

    def _see_everywhere(self, topics: Mapping[str, PlannedTopic]) -> dict[str, Remaining]:
        """Ask all brokers what is left to do; the least advanced view counts.

        A topic that is created carries its configs with it, so only altered ones are asked for.
        """
        configured = {name for name, topic in topics.items() if _alters_config(topic)}
        views = self.reader.read_views(topics, configured).values()
        found = {}
        for name, topic in topics.items():
            asked = name in configured
            each = [find_in_views(topic, [v.get(name)], with_config=asked) for v in views]
            waiting = Remaining(steps=steps_of(topic))
            found[name] = max(each, key=lambda r: (bool(r.steps), len(r.moved)), default=waiting)
        return found


def _alters_config(topic: PlannedTopic) -> bool:
    return any(isinstance(step, AlterConfig) for step in steps_of(topic))
