"""Apply a plan: check that it still holds, validate it on the brokers, execute it, verify it.

The states of one topic, as `Progress` holds them; a run that is stopped ends in any of them:

| state        | how Progress holds it        | next                                          |
|--------------|------------------------------|-----------------------------------------------|
| already done | (the run lists its name)     | reported: already done                        |
| pending      | `todo`, nothing sent         | validated, doubtful                           |
| validated    | last answer: accepted        | sent; a deletion may be held back             |
| sent         | `sent`, `unanswered` > 0     | accepted, doubtful                            |
| doubtful     | last answer: anything else   | by the views: already done, accepted, failed, |
|              |                              | believed, or asked or sent again              |
| accepted     | a step less in `todo`        | sent if a step is left, else shown         |
| believed     | `believed`: done already     | shown, or reported: unknown                   |
| shown        | every broker shows it        | reported: done                                |
| failed       | `failure`                    | reported: failed, half done or unknown        |
| held back    | `held_back`, nothing sent    | reported: not attempted                       |

What is doubtful is compared up to four times, with `PAUSES_S` between; the last time decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from reconciler.apply.checks import DeletionCheck, find_moved, find_unsynced, recheck_deletions
from reconciler.apply.convergence import Remaining, compare_slowest_views, compare_views
from reconciler.apply.kinds import make_batches, split_step
from reconciler.apply.progress import Progress, judge_outcome
from reconciler.diff.guards import list_refusals
from reconciler.errors import ClusterError, RefusedPlanError, StalePlanError, keep_interrupts
from reconciler.model.cluster import EMPTY
from reconciler.model.outcomes import Answer, AnswerKind, Outcome, OutcomeKind
from reconciler.model.plan import Plan, PlannedTopic
from reconciler.model.rates import NO_RATES, Rates, count_due, find_time
from reconciler.model.steps import Step, Verb, is_deletion, steps_of
from reconciler.run.checks import find_other_cluster
from reconciler.run.ending import Applied
from reconciler.run.events import StepAnswered, StepsWait
from reconciler.run.ports import Clock, ClusterReader, ClusterWriter, Lease, Unlocked
from reconciler.side_by_side import run_side_by_side
from reconciler.units import approximate_duration

IN_FLIGHT = 3  # also the most requests that a run without its lock may still send
PAUSES_S = (0.5, 2.0, 8.0)
QUOTA = "THROTTLING_QUOTA_EXCEEDED"
COUNTED = frozenset({Verb.CREATE, Verb.EXPAND, Verb.DELETE})
"""The steps that count for controller_mutation_rate, by the partitions that come or go."""
QUOTA_S = 900.0
"""How long a run waits for a quota of the brokers without a step being done."""
QUOTA_PAUSE_S = 10.0
MOST_SAMPLED = 200
INTERRUPTED = "interrupted"
NOT_ALL_DONE = "something else of the plan failed or is refused, and deletions come last"


def run_plan(
    plan: Plan,
    reader: ClusterReader,
    writer: ClusterWriter,
    clock: Clock,
    observe: Callable[[StepAnswered | StepsWait], None] = lambda _: None,
    *,
    lease: Lease | None = None,
    skip_refused: bool = False,
    patience_s: float = 600.0,
    rates: Rates = NO_RATES,
) -> Applied:
    """Execute the steps of a plan, and nothing else.

    `lease` is checked before each request that changes something. `patience_s` bounds the wait for
    brokers to show what the controller accepted. The run pauses to keep to the `rates`; what was
    sent before it began does not count. If a quota is exceeded all the same, the run waits as long
    as the brokers ask, up to QUOTA_S without a step being done. An interrupt ends the run with a
    report of what was done; so does a cluster that no longer answers, and a lease that is lost. One
    more interrupt ends the wait for answers under way, a third the check of sent requests.
    Errors: RefusedPlanError before anything is read; StalePlanError, and ClusterError if the
    cluster cannot be read, before anything is written.
    """
    if plan.moves is not None:
        raise ValueError("a plan of moves; run_moves applies it")
    if refusals := list_refusals(plan, skip_refused=skip_refused):
        raise RefusedPlanError(refusals)
    run = _Run(plan, reader, writer, clock, observe, lease or Unlocked(), rates)
    run.check_against_cluster()
    try:
        with keep_interrupts():
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
    observe: Callable[[StepAnswered | StepsWait], None]
    lease: Lease
    rates: Rates
    topics: dict[str, Progress] = field(default_factory=dict)
    already_done: list[str] = field(default_factory=list)
    defaults: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    quota_until_s: float = 0.0
    quota_waited_s: float = 0.0
    paced: list[tuple[float, int]] = field(default_factory=list)
    stopped: str = ""
    cause: ClusterError | None = None

    @property
    def has_sent(self) -> bool:
        """Return whether anything may have been written."""
        return any(topic.sent for topic in self.topics.values())

    def check_against_cluster(self) -> None:
        """Find what is left to do. Errors: StalePlanError with everything that changed."""
        planned = {topic.name: topic for topic in self.plan.topics if steps_of(topic)}
        # For the cluster's id, its brokers, and their defaults, which brokers only show on topics.
        # Topics come from every broker's view: a single one may be late.
        configured = {name for name, topic in planned.items() if _is_configured(topic)}
        state = self.reader.read_cluster(config_of=configured)
        if elsewhere := list(find_other_cluster(self.plan, state)):
            raise StalePlanError(elsewhere)
        ids = self.reader.read_topic_ids([n for n, t in planned.items() if t.before])
        found = compare_views(self.reader, self.clock, planned)
        again = self._recheck({n: planned[n] for n, left in found.items() if left.steps})
        left = {name: planned[name] for name, remaining in found.items() if remaining.steps}
        self.defaults = state.config_defaults
        unsynced = find_unsynced(self.reader, left, self.defaults)
        if moved := list(find_moved(self.plan, state, ids, found, again, unsynced)):
            raise StalePlanError(moved)
        found |= dict.fromkeys(again.gone, Remaining())
        for name, remaining in found.items():
            if remaining.is_done:
                self.already_done.append(name)
            else:
                self.topics[name] = Progress(planned[name], list(remaining.steps))

    def validate(self) -> None:
        """Validate every step on the brokers before any step is executed.

        Errors: StalePlanError if an answer shows that a topic changed meanwhile.
        """
        waiting = list(self.topics)
        for pause in (*PAUSES_S, None):
            # Of each step its first part only: what follows it is refused before the part is done.
            steps = [split_step(step)[0] for name in waiting for step in self.topics[name].todo]
            self._ask_first(steps)
            waiting = self._reconsider_validated(waiting, final=pause is None)
            if not waiting or pause is None:
                return
            self.clock.sleep(pause)

    def execute(self) -> None:
        """Execute creates, expansions, configs, deletions; a failed topic does not stop the others.

        It stops deletions: a topic to delete may be one that the failed topic should replace.
        """
        for verb in Verb:  # the order of the states that `compare_state` continues from
            if verb is Verb.CONFIGURE:
                self._fail_unsynced()
            if verb is Verb.DELETE:
                self._hold_back()
            while steps := self._next_steps(verb):
                if self._await_rates(verb, steps) and verb is Verb.DELETE:
                    self._hold_back_used()  # minutes later, somebody may use one of them
                else:
                    self._settle(verb, self._list_due(verb, steps))

    def verify(self, patience_s: float) -> None:
        """Wait until every broker's view shows each change."""
        # The controller accepts a request when it has committed it, and brokers learn of it later:
        # 50 s after the creation of 5,000 topics a busy broker showed only 4,000.
        waiting = {n: t.planned for n, t in self.topics.items() if t.sent and not t.failure}
        total = len(waiting)
        deadline = self.clock.monotonic() + patience_s
        pause = 0.05  # usually enough for one topic, and it grows for large plans
        while waiting and (started := self.clock.monotonic()) < deadline:
            found = compare_slowest_views(self.reader, _sample(waiting))
            if len(found) < len(waiting) and all(left.is_done for left in found.values()):
                rest = {name: topic for name, topic in waiting.items() if name not in found}
                found |= compare_slowest_views(self.reader, rest)
            for name, remaining in found.items():
                if remaining.is_done or (remaining.moved and not remaining.lags):
                    del waiting[name]
                    self.topics[name].shown = remaining.is_done
                    done = remaining.is_done or remaining.elsewhere
                    kind = AnswerKind.ACCEPTED if done else AnswerKind.REFUSED
                    self.observe(StepAnswered("verify", name, total, kind))
            if waiting:
                # As long as the question took: brokers that are behind have work to do.
                self.clock.sleep(max(pause, self.clock.monotonic() - started))
                pause = min(pause * 1.5, 2.0)

    def report(self) -> Applied:
        """Return the outcome of every topic by name.

        Brokers are asked once more about requests that were sent and not seen to have an effect.
        """
        unseen = {n: t.planned for n, t in self.topics.items() if t.sent and not t.shown}
        left: Mapping[str, Remaining] = {}
        # Without an answer the topics' own answers say what is known; so after an interrupt, since
        # what was done has to be reported.
        with suppress(ClusterError, KeyboardInterrupt), keep_interrupts():
            left = compare_views(self.reader, self.clock, unseen)
        while True:
            with suppress(KeyboardInterrupt):  # nothing is waited for any more
                return self._judge(left)

    def _judge(self, left: Mapping[str, Remaining]) -> Applied:
        outcomes = [judge_outcome(t, left.get(n), self.stopped) for n, t in self.topics.items()]
        outcomes += [Outcome(name, OutcomeKind.ALREADY_DONE) for name in self.already_done]
        outcomes += [
            Outcome(topic.name, OutcomeKind.REFUSED, topic.refusals[0].what, topic.refusals[0].rule)
            for topic in self.plan.topics
            if topic.refusals
        ]
        ordered = tuple(sorted(outcomes, key=lambda o: o.topic))
        return Applied(ordered, self.stopped == INTERRUPTED, self.cause)

    def _hold_back(self) -> None:
        """Drop all deletions if anything else failed or is refused, else those of topics in use."""
        failed = any(topic.failure for topic in self.topics.values())
        if failed or list_refusals(self.plan):
            for topic in self.topics.values():
                if is_deletion(topic.planned):
                    topic.hold_back(NOT_ALL_DONE)
            return
        self._hold_back_used()

    def _hold_back_used(self) -> None:
        """Check the deletions that are left a last time, and drop those of topics in use."""
        deletions = {
            name: topic
            for name, topic in self.topics.items()
            if is_deletion(topic.planned) and topic.todo and not topic.failure
        }
        again = self._recheck({name: topic.planned for name, topic in deletions.items()})
        for name, findings in again.in_use.items():
            deletions[name].hold_back(findings[0].what)
        for name in again.gone:
            self.already_done.append(name)
            del self.topics[name]

    def _fail_unsynced(self) -> None:
        """Give up topics with replicas that fell out of sync while other steps were executed."""
        left = {n: t.planned for n, t in self.topics.items() if t.todo and not t.failure}
        for name, finding in find_unsynced(self.reader, left, self.defaults).items():
            self.topics[name].failure = Answer(AnswerKind.NOT_DONE, finding.rule, finding.what)

    def _recheck(self, topics: Mapping[str, PlannedTopic]) -> DeletionCheck:
        deletions = {name: topic for name, topic in topics.items() if is_deletion(topic)}
        return recheck_deletions(self.reader, self.clock, deletions, PAUSES_S)

    def _next_steps(self, verb: Verb) -> list[Step]:
        """Take the next step of a kind from every topic that has not failed."""
        ready = [t.todo for t in self.topics.values() if t.todo and not t.failure]
        return [todo[0] for todo in ready if todo[0].verb is verb]

    def _reconsider_validated(self, names: Sequence[str], *, final: bool) -> list[str]:
        """Judge steps that were not accepted. Returns the topics to ask about again.

        A killed run may have done a step that no broker shows yet. If none shows it in the end, the
        controller's answer counts.
        """
        doubtful = [self.topics[name] for name in names if self.topics[name].in_doubt]
        contradicted = {t.planned.name: t.planned for t in doubtful if t.contradicted}
        found = compare_views(self.reader, self.clock, contradicted)
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

    def _settle(self, verb: Verb, steps: Sequence[Step]) -> None:
        """Send one part of each step, and send it again until it is done or cannot succeed."""
        for pause in (*PAUSES_S, None):
            parts = [split_step(step)[0] for step in steps]
            self._send(verb, parts)
            doubtful = [part.topic for part in parts if self.topics[part.topic].in_doubt]
            steps = self._reconsider(doubtful, verb, final=pause is None)
            if not steps or pause is None:
                return
            self.clock.sleep(pause)

    def _reconsider(self, names: Sequence[str], verb: Verb, *, final: bool) -> list[Step]:
        """Check the cluster for steps that were not accepted; return the steps to send again."""
        again: list[Step] = []
        found = compare_views(
            self.reader, self.clock, {name: self.topics[name].planned for name in names}
        )
        for name, left in found.items():
            topic = self.topics[name]
            if left.moved:  # somebody else changed it: the plan has no step for that
                topic.failure = topic.answer
                continue
            topic.learn(left.steps)
            if not topic.todo or topic.todo[0].verb is not verb:
                topic.answer = None
            elif final and topic.contradicted:  # the controller knows it before brokers show it
                topic.believe()
            elif final or not topic.worth_repeating:
                topic.failure = topic.answer
            else:
                again.append(topic.todo[0])
        return again

    def _ask_first(self, steps: Sequence[Step]) -> None:
        """Validate steps on the brokers, and keep each topic's worst answer."""

        def take(answers: Mapping[str, Answer]) -> None:
            for name, answer in answers.items():
                if not self.topics[name].in_doubt:
                    self.topics[name].answer = answer
            self._report("validate", len(steps), answers)

        # No lease: nothing is changed.
        self._request("validate", steps, partial(self.writer.send, validate_only=True), take)

    def _send(self, verb: Verb, steps: Sequence[Step]) -> None:
        """Send steps of one kind; answers are kept by the thread that gets them."""

        def send(batch: Sequence[Step]) -> Mapping[str, Answer]:
            self.lease.check()
            # Before the request, not after it: an interrupt in between must count it as sent.
            for step in batch:
                self.topics[step.topic].send()
            answers = self.writer.send(batch)
            for name, answer in answers.items():
                self.topics[name].take(answer)
            return answers

        self._request(verb, steps, send, partial(self._report, verb, len(steps)))

    def _request(
        self,
        phase: str,
        steps: Sequence[Step],
        send: Callable[[Sequence[Step]], Mapping[str, Answer]],
        take: Callable[[Mapping[str, Answer]], None],
    ) -> None:
        """Send steps side by side, a request for each kind, and again those that a quota held back.

        No request is sent while the brokers ask to wait. Steps that wait for too long fail.
        """
        while steps:
            if self._await_rates(phase, steps):
                continue
            due = self._list_due(phase, steps)
            answered: set[tuple[Verb, str]] = set()

            def ask(
                batch: Sequence[Step], answered: set[tuple[Verb, str]] = answered
            ) -> Mapping[str, Answer]:
                verb = batch[0].verb
                if verb in COUNTED and self.clock.monotonic() < self.quota_until_s:
                    return {}
                told = send(batch)
                if self.rates.are_limited:
                    partitions = sum(self._count_partitions(phase, step) for step in batch)
                    self.paced.append((self.clock.monotonic(), partitions))
                asked_s = max((answer.wait_s for answer in told.values()), default=0.0)
                self.quota_until_s = max(self.quota_until_s, self.clock.monotonic() + asked_s)
                counted = {name: each for name, each in told.items() if each.error != QUOTA}
                answered.update((verb, name) for name in counted)
                return counted

            by_verb = ([step for step in due if step.verb is verb] for verb in Verb)
            batches = [batch for alike in by_verb for batch in make_batches(alike)]
            run_side_by_side(ask, batches, IN_FLIGHT, take)
            steps = [step for step in steps if (step.verb, step.topic) not in answered]
            if answered:
                self.quota_waited_s = 0.0
            if len(answered) < len(due) and (refusal := self._await_quota(phase, len(steps))):
                for step in steps:
                    self.topics[step.topic].failure = refusal
                return

    def _await_quota(self, phase: str, left: int) -> Answer | None:
        """Wait until the brokers take more changes. Returns: an answer if that takes too long."""
        # At least a pause, for an answer without a time, and for others who use the same quota.
        now = self.clock.monotonic()
        self.quota_until_s = max(self.quota_until_s, now + PAUSES_S[0])
        asked_s = self.quota_until_s - now
        self.quota_waited_s += asked_s
        if self.quota_waited_s > QUOTA_S:
            text = (
                "the account exceeds controller_mutation_rate: the brokers ask to wait "
                f"{approximate_duration(asked_s)}, and a run waits for "
                f"{approximate_duration(QUOTA_S)} at most without a step being done; run the same "
                "command again later"
            )
            return Answer(AnswerKind.NOT_DONE, QUOTA, text)
        while (seconds := self.quota_until_s - self.clock.monotonic()) > 0:
            self.observe(StepsWait(phase, seconds, left))
            self.clock.sleep(min(seconds, QUOTA_PAUSE_S))
        return None

    def _await_rates(self, phase: str, steps: Sequence[Step]) -> bool:
        """Wait until the next request keeps to the rates. Returns whether that took any time."""
        partitions = self._count_partitions(phase, _list_alike(steps)[0])
        until_s = find_time(self.rates, self.paced, partitions)
        if until_s <= self.clock.monotonic():
            return False
        while (seconds := until_s - self.clock.monotonic()) > 0:
            self.observe(StepsWait(phase, seconds, len(steps), by_rates=True))
            self.clock.sleep(min(seconds, QUOTA_PAUSE_S))
        return True

    def _list_due(self, phase: str, steps: Sequence[Step]) -> Sequence[Step]:
        """Return the steps to send now: all of them, or those of one request by the rates."""
        if not self.rates.are_limited:
            return steps
        batch = make_batches(_list_alike(steps))[0]
        partitions = [self._count_partitions(phase, step) for step in batch]
        now_s = self.clock.monotonic()
        return batch[: count_due(self.rates, self.paced, partitions, now_s)]

    def _count_partitions(self, phase: str, step: Step) -> int:
        """Return the partitions of a step that count for a rate: those that come or go."""
        before = self.topics[step.topic].planned.before
        if step.verb is not Verb.DELETE or phase == "validate" or before is None:
            return len(step.placed) if step.verb in COUNTED else 0
        return len(before.assignment)

    def _report(self, phase: str, total: int, answers: Mapping[str, Answer]) -> None:
        for name, answer in answers.items():
            self.observe(StepAnswered(phase, name, total, answer.kind, answer.text))


def _list_alike(steps: Sequence[Step]) -> list[Step]:
    """List the steps of the kind that is sent first."""
    first = min(steps, key=lambda step: list(Verb).index(step.verb)).verb
    return [step for step in steps if step.verb is first]


def _is_configured(topic: PlannedTopic) -> bool:
    return any(step.verb is Verb.CONFIGURE for step in steps_of(topic))


def _sample(topics: Mapping[str, PlannedTopic]) -> Mapping[str, PlannedTopic]:
    """Pick topics at equal distances, the last one included; all, if they are few.

    An answer about all topics of a large plan costs a broker that is behind as much as making their
    logs, so nobody asks for it while some topic of a sample is missing.
    """
    step = -(-len(topics) // MOST_SAMPLED)
    return dict(list(topics.items())[::-step]) if step > 1 else topics
