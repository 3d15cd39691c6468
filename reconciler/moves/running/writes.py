"""The writes of a run of moves: the locks before each, what was written when, and the answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field

from reconciler.model.outcomes import Answer, AnswerKind
from reconciler.model.plan import PlannedTopic
from reconciler.model.steps import Verb
from reconciler.moves.running.notes import Observe, note, skip
from reconciler.moves.running.relocations import Relocation, Relocations, group_by_broker
from reconciler.moves.running.rows import ENDED_OTHERWISE, Row, Rows, RowState
from reconciler.run.events import MovesNote, StepAnswered
from reconciler.run.ports import Clock, ClusterMover, ClusterReader, Lease

MOST_ROWS = 500
"""Rows in one request; the controller refuses requests of more than 10,000 records."""

MOST_TOPICS = 500
"""Topics in one request, with up to three configs of each: the same limit of the controller."""

REWRITE_S = 10.0
"""After this time without effect it is written again: a late request may have undone it.

Views lag for 8 s under load. A list is read, changed and written as a whole, so a list that is
written again from a view that is merely late brings back what somebody else removed meanwhile.
"""

ELECTIONS = 4


@dataclass(slots=True)
class Writes:
    """Writes configs, rows and elections, and knows whether a run may write, and what it wrote.

    Kafka takes the names of topics, and a topic that is created again has the same name. So the ids
    of `topics` are compared before each write, and no later than a moment before it.
    `written` has the last value and its time by topic and config; the topic of the rate is "".
    `configured` has the topics of which a config was written. `held` is what the step holds until
    its end, None once the lock of applies was taken; `holding` is that lock.
    """

    topics: Mapping[str, PlannedTopic]
    rows: Rows
    relocations: Relocations
    reader: ClusterReader
    mover: ClusterMover
    clock: Clock
    observe: Observe
    lease: Lease
    writing: Callable[[], AbstractContextManager[Lease | None]]
    has_written: bool = False
    configured: set[str] = field(default_factory=set)
    written: dict[tuple[str, str], tuple[str | None, float]] = field(default_factory=dict)
    held: ExitStack | None = None
    holding: Lease | None = None

    def begin_step(self) -> ExitStack:
        """Begin a step. Returns: what gives back the lock of applies at its end."""
        self.held, self.holding = ExitStack(), None
        return self.held

    def check_right(self) -> None:
        """Take the lock of applies for the rest of this step, and check both locks.

        Errors: LockLostError, after which nothing is written; LockHeldError.
        """
        self.lease.check()
        if self.held is not None:
            self.holding, self.held = self.held.enter_context(self.writing()), None
        if self.holding is not None:
            self.holding.check()
        self.has_written = True

    def skip_replaced(self, names: Collection[str]) -> set[str]:
        """Skip the rows of topics that were created again since the plan was made, for good.

        Returns: the topics for which that is new. Errors: ClusterError.
        """
        known = {name for name in names if name not in self.rows.replaced}
        ids = self.reader.read_topic_ids(known) if known else {}
        found = set()
        for name in sorted(known & ids.keys()):
            before = self.topics[name].before
            if before is not None and before.topic_id not in (None, ids[name]):
                found.add(name)
                for row in self.rows.of_topics([name]):
                    row.flight = None
                items: list[Row | Relocation] = [*self.rows.of_topics([name])]
                for item in [*items, *self.relocations.of_topic(name)]:
                    item.end(RowState.GONE, "it was deleted and created again")
                    note(self.observe, MovesNote.SKIPPED, item.text, item)
        self.rows.replaced |= found
        return found

    def is_due(self, key: tuple[str, str], value: str | None) -> bool:
        """Return whether to write a value: a new one, or one that had no effect for some time."""
        now = self.clock.monotonic()
        then = self.written.get(key)
        return then is None or then[0] != value or now - then[1] >= REWRITE_S

    def mark(self, key: tuple[str, str], value: str | None) -> None:
        """Remember that a value is written now."""
        self.written[key] = (value, self.clock.monotonic())

    def configure(self, configs: Mapping[str, Mapping[str, str | None]]) -> set[str]:
        """Set and unset configs of topics. A topic that refuses is skipped.

        Of a topic that was created again, only what was decided since that was seen is written: to
        remove its throttles. Returns: the topics that accepted.
        """
        replaced = self.skip_replaced(configs)
        configs = {topic: values for topic, values in configs.items() if topic not in replaced}
        if not configs:
            return set()
        answers: dict[str, Answer] = {}
        names = list(configs)
        for first in range(0, len(names), MOST_TOPICS):
            batch = {topic: configs[topic] for topic in names[first : first + MOST_TOPICS]}
            self.check_right()
            for topic, values in batch.items():
                self.configured.add(topic)
                for key, value in values.items():
                    self.mark((topic, key), value)
            answers |= self.mover.configure(batch)
        for topic, answer in answers.items():
            if answer.kind is not AnswerKind.REFUSED:
                continue
            for row in self.rows.of_topics([topic]):
                if row.state is RowState.NOT_BEGUN:
                    text = f"its throttle was refused: {answer.text}"
                    skip(self.observe, row, text, RowState.REFUSED)
        return {topic for topic, each in answers.items() if each.kind is AnswerKind.ACCEPTED}

    def cordon(self, broker: int) -> Answer:
        """Cordon a broker."""
        self.check_right()
        self.mark(("", f"cordon {broker}"), "*")
        return self.mover.cordon(broker)

    def send(self, ready: Sequence[Row]) -> None:
        """Ask for rows, at most MOST_ROWS in a request."""
        self.skip_replaced({row.place[0] for row in ready})
        ready = [row for row in ready if row.state is RowState.NOT_BEGUN]
        for resizes in (False, True):
            alike = [row for row in ready if (len(row.before) != len(row.after)) == resizes]
            for first in range(0, len(alike), MOST_ROWS):
                self._reassign(alike[first : first + MOST_ROWS], resizes=resizes)

    def relocate(self, chosen: Iterable[Relocation], *, back: bool = False) -> None:
        """Ask brokers to move replicas to the directories of the plan, or with `back` from before.

        Each broker is asked by itself.
        """
        chosen = list(chosen)
        self.skip_replaced({each.place[0] for each in chosen})
        ready = [each for each in chosen if each.state not in ENDED_OTHERWISE]
        for broker, group in group_by_broker(ready).items():
            self.check_right()
            now = self.clock.monotonic()
            for each in group:
                each.in_doubt, each.asked_s = True, now
            paths = {each.place: each.source if back else each.target for each in group}
            answers = self.mover.relocate(broker, paths)
            for each in group:
                answer = answers[each.place]
                each.in_doubt = answer.kind is AnswerKind.LOST
                each.known |= answer.kind is AnswerKind.ACCEPTED
                total = len(self.relocations.by_key)
                said = StepAnswered(
                    Verb.RELOCATE, each.place[0], total, answer.kind, answer.text or answer.error
                )
                self.observe(said)
                if answer.kind is AnswerKind.REFUSED and not back:
                    text = f"the broker refuses it: {answer.text or answer.error}"
                    skip(self.observe, each, text, RowState.REFUSED)

    def elect(self, rows: Iterable[Row], *, back: bool = False) -> bool:
        """Have preferred leaders lead that can: those of the plan, or with `back` from before it.

        Returns: whether all of them do or cannot.
        """
        able = [row for row in rows if row.elections < ELECTIONS and row.is_misled(back=back)]
        for first in range(0, len(able), MOST_ROWS):
            batch = able[first : first + MOST_ROWS]
            self.check_right()
            answers = self.mover.elect([row.place for row in batch])
            for row in batch:
                row.elections += 1
                answer = answers[row.place]
                total = len(self.rows.by_place)
                said = StepAnswered(Verb.ELECT, row.place[0], total, answer.kind, answer.text)
                self.observe(said)
        return not able

    def _reassign(self, rows: Sequence[Row], *, resizes: bool) -> None:
        self.check_right()
        for row in rows:
            # Before the request: an interrupt must count it as sent.
            row.unanswered += 1
            row.asked_s = self.clock.monotonic()
        answers = self.mover.reassign({row.place: row.after for row in rows}, may_resize=resizes)
        for row in rows:
            answer = answers[row.place]
            if answer.kind is not AnswerKind.LOST:
                row.unanswered -= 1
            verb = Verb.REORDER if row.is_reorder else Verb.MOVE
            total = len(self.rows.by_place)
            self.observe(StepAnswered(verb, row.place[0], total, answer.kind, answer.text))
            if answer.kind is AnswerKind.ACCEPTED:
                row.known, row.state = True, RowState.UNCLEAR
                row.agreed_since_s, row.agreed = self.clock.monotonic(), None
            elif answer.kind is AnswerKind.REFUSED and not row.unanswered:
                text = f"the brokers refuse it: {answer.text or answer.error}"
                skip(self.observe, row, text, RowState.REFUSED)
