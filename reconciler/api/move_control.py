"""Slow, stop, cancel and settle moves on a cluster, whatever machine started them."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from reconciler.api.auditing import Audit
from reconciler.errors import ClusterError, Finding, LockHeldError, keep_interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from reconciler.api.records import RunRecord
    from reconciler.apply.ending import Ending
    from reconciler.kafka.connection import Connection
    from reconciler.kafka.lock import Waiting
    from reconciler.model.moves import MovesReading, Place
    from reconciler.model.outcomes import Answer
    from reconciler.model.plan import Plan
    from reconciler.moves.decisions import PlannedRow, Settlement, Unsettled
    from reconciler.moves.progress import MovesReport
    from reconciler.moves.throttles import Leftover

T = TypeVar("T")

AT_ONCE = 500
"""Rows or topics in one request: well below the 10,000 records that a controller accepts."""

TRIES = 3
VISIBLE_S = 30.0
POLL_S = 0.5
WATCH_S = 5.0


@dataclass(frozen=True, slots=True)
class Locking:
    """How the locks of a cluster are taken; a run takes none if `timeout_s` is None."""

    timeout_s: float | None = 15.0
    observe: Callable[[Waiting], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The result of a cancel.

    `ended` are rows that reached their target before the cancel reached them. `failed` holds a
    reason for each row that is not as before the plan. `led_by_others` are rows that are, without
    their preferred leader. `lowered` are topics whose min.insync.replicas is still that of the
    moves. `run` is the holder of the lock of moves, "" if no run has it. `unknown`: a request got
    no answer, and its effect is not visible.
    """

    cancelled: tuple[Place, ...] = ()
    ended: tuple[Place, ...] = ()
    failed: Mapping[Place, str] = field(default_factory=dict)
    led_by_others: tuple[Place, ...] = ()
    lowered: tuple[str, ...] = ()
    run: str = ""
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of a settlement: what was removed, what is left, and why it stopped waiting.

    `traces` are what only the plan, or a person, can put right.
    """

    topics: tuple[str, ...]
    rate_removed: bool
    left: Settlement
    traces: tuple[Unsettled, ...]
    stopped: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether nothing of moves is left on the cluster, as far as it can be seen."""
        left = self.left
        throttles = left.removable or left.kept or left.rate_used
        return not (left.awaited or throttles or self.traces or self.stopped)


@contextmanager
def control_moves(connection: Connection) -> Iterator[MoveControl]:
    """Return the control of the moves of a cluster, for a block."""
    control = MoveControl(connection)
    try:
        yield control
    finally:
        control.close()


class MoveControl:
    """Changes moves on one cluster. Every write is followed by readings of its effect.

    Errors: ClusterError if the cluster cannot be read, or refuses a write; LockHeldError.
    """

    def __init__(self, connection: Connection) -> None:
        from reconciler.kafka.mover import KafkaMover
        from reconciler.kafka.reader import KafkaReader

        self._connection = connection
        self._mover = KafkaMover(connection)
        self._reader = KafkaReader(connection)

    def close(self) -> None:
        """Close its connections."""
        self._mover.close()

    def keep_record(self, record: RunRecord, work: Callable[[], Ending]) -> Ending:
        """Intervene, and write the record to the audit topic of the cluster if it has one.

        The topic is not checked before, as apply does: it must not stop a pause during an incident.
        Errors: those of the work; AuditError, with its ending, if the topic has no record of it.
        """
        audit = Audit(self._connection, record)
        with audit.keep_errors():
            ending = work()
        audit.keep(ending)
        return ending

    def read(self) -> MovesReading:
        """Read what is in flight, whoever started it."""
        return self._mover.read(())

    def check_rights(self, topics: Collection[str]) -> None:
        """Refuse if a right is missing to change moves of some topics, or the rate of all."""
        self._reader.check_rights((), for_apply=True, moved=topics)

    def set_rate(
        self, bytes_per_s: int | None, *, permanent: bool = False
    ) -> tuple[MovesReading, bool]:
        """Set the cluster default of both rates; None unsets it.

        No run removes one that is `permanent`. No lock is taken, so that this reaches a run that
        holds them. Returns: a reading, and whether every broker that has no rate of its own shows
        the new one in it.
        """

        def send() -> Answer:
            return self._mover.set_rate(bytes_per_s, permanent=permanent)

        _refuse({"the throttle rate": _repeat(send)})
        return self._await(lambda reading: _shows_rate(reading, bytes_per_s))

    def find_rows(self, plan: Plan) -> tuple[PlannedRow, ...]:
        """Return where the rows of a plan are. Topics that were created again are left out."""
        from reconciler.moves.decisions import find_rows

        named = {t.name: t.before.topic_id for t in plan.topics if t.before is not None}
        present = self._reader.read_topic_ids(named)
        rows = find_rows(plan, self.read())
        return tuple(r for r in rows if named[r.place[0]] in (None, present.get(r.place[0])))

    def cancel(self, plan: Plan, chosen: Sequence[PlannedRow], locking: Locking) -> Cancelled:
        """Cancel rows of a plan, restore their order, and have their preferred leaders lead.

        In: `chosen`, rows in flight, and those whose order an earlier cancel has changed. One is
        left if none of its replicas from before is in sync. The lock of a run of moves is taken if
        it is free. A run that holds it does not send the rows again, and goes on with others.
        """
        from reconciler.model.outcomes import AnswerKind
        from reconciler.moves.decisions import RowState, explain_keeping

        with ExitStack() as locks:
            locks.enter_context(self._lock(locking))
            run = ""
            try:
                locks.enter_context(self._lock(locking, of_moves=True, waits=False))
            except LockHeldError as error:
                run = error.findings[0].what
            reading = self.read()
            failed = {row.place: why for row in chosen if (why := explain_keeping(row, reading))}
            sent = [row for row in chosen if row.place not in failed]
            answers = self._reassign({r.place: None for r in sent if r.state is RowState.IN_FLIGHT})
            places = {row.place for row in sent}

            def find() -> Mapping[Place, PlannedRow]:
                rows = self._confirm([r for r in self.find_rows(plan) if r.place in places])
                return {row.place: row for row in rows}

            refused = {place for place, a in answers.items() if a.kind is AnswerKind.REFUSED}
            passing = (RowState.IN_FLIGHT, RowState.ELSEWHERE)
            found, _ = _await_state(
                find,
                lambda rows: all(
                    row.state not in passing for place, row in rows.items() if place not in refused
                ),
            )
            turned = {p: row.before for p, row in found.items() if row.state is RowState.TURNED}
            answers |= self._reassign(turned)
            ended = (RowState.NOT_BEGUN, RowState.DONE)
            found, _ = _await_state(
                find,
                lambda rows: all(
                    row.state in ended for place, row in rows.items() if place not in refused
                ),
            )
            states = {place: row.state for place, row in found.items()}
            for place in places:
                state = states.get(place, RowState.ELSEWHERE)
                if state is RowState.TURNED:
                    failed[place] = f"its order is not restored{_say(answers[place])}"
                elif state not in ended:
                    failed[place] = f"it is {state}{_say(answers[place])}"
            cancelled = sorted(p for p in places if states.get(p) is RowState.NOT_BEGUN)
            led_by_others = self._elect({p: found[p].before[0] for p in cancelled})
            lowered = self._restore_min_insync(plan, may_write=not run)
            return Cancelled(
                tuple(cancelled),
                tuple(sorted(p for p in places if states.get(p) is RowState.DONE)),
                dict(sorted(failed.items())),
                led_by_others,
                lowered,
                run,
                any(answers[p].kind is AnswerKind.LOST for p in failed if p in answers),
            )

    def _confirm(self, rows: Sequence[PlannedRow]) -> list[PlannedRow]:
        """Return rows as every broker shows them; one on which they disagree is elsewhere.

        A reading has the view of one broker, and that may be older than the move.
        """
        from reconciler.moves.decisions import RowState

        views = self._reader.read_views({row.place[0] for row in rows}).values() if rows else ()
        confirmed = []
        for row in rows:
            topic, number = row.place
            wanted = {RowState.NOT_BEGUN: row.before, RowState.DONE: row.after}.get(row.state)
            shown = {v[topic].assignment[number] for v in views if topic in v}
            agreed = wanted is None or shown == {wanted}
            confirmed.append(row if agreed else replace(row, state=RowState.ELSEWHERE))
        return confirmed

    def settle(
        self,
        locking: Locking,
        *,
        specified: Mapping[str, str] | None = None,
        stop_after_s: float | None = None,
        observe: Callable[[MovesReport], None] = lambda _: None,
    ) -> Settled:
        """Wait for moves that are throttled by name, then remove throttles that nothing uses.

        In: `specified`, min.insync.replicas by topic as specs have it. The lock of moves is held
        throughout, the lock of apply while throttles are removed. Moves of others are not waited
        for, and the throttles that they use stay.
        """
        from reconciler.moves.decisions import find_settlement, find_traces

        with self._lock(locking, of_moves=True):
            moved, stopped = self._await_moves(stop_after_s, observe)
            with self._lock(locking):
                found = find_settlement(self.read())
                moved |= set(found.topics)
                self._unset_lists(found.topics)
                if found.removes_rate:
                    _refuse({"the throttle rate": _repeat(lambda: self._mover.set_rate(None))})
            reading, _ = self._await(lambda reading: not find_settlement(reading).removable)
        left = find_settlement(reading)
        moved -= {each.topic for each in reading.reassignments}
        traces = (
            *find_traces(reading, moved, self._connection.entry.name),
            *self._find_lowered(moved & reading.partitions.keys(), specified or {}),
        )
        rate_removed = found.removes_rate and not left.removes_rate
        topics = tuple(topic for topic in found.topics if topic not in left.topics)
        return Settled(topics, rate_removed, left, traces, stopped)

    def remove(self, chosen: Sequence[Leftover], locking: Locking) -> tuple[Leftover, ...]:
        """Remove throttles that nothing uses. Returns: those that a broker still shows.

        Only the lock of apply is taken: they are not those of a run of moves, which may be under
        way. Errors: ClusterError if what was chosen has changed since, or something uses it now.
        """
        from reconciler.moves.throttles import choose_removals

        topics = [each.topic for each in chosen if each.topic is not None]
        brokers = [each.broker for each in chosen if each.broker is not None]
        of_all = len(chosen) > len(topics) + len(brokers)

        def unset(broker: int | None) -> Answer:
            if broker is None:
                return self._mover.set_rate(None)
            return self._mover.unset_rates(broker)

        with self._lock(locking):
            # Whoever approved may have taken his time, and lists are removed as a whole.
            now, wrong = choose_removals(self.read(), topics, brokers, of_all=of_all)
            if wrong or now != tuple(chosen):
                what = "; ".join(wrong) or "these throttles have other values now"
                way_out = "nothing was removed; run the same command again"
                raise ClusterError([Finding("plan-stale", what, way_out)])
            self._unset_lists(topics)
            for left in chosen:
                if left.topic is None:
                    name = "the throttle rate"
                    _refuse({name: _repeat(partial(unset, left.broker))})

        def find_left(reading: MovesReading) -> tuple[Leftover, ...]:
            shown = {*reading.rates, *reading.lists}
            return tuple(each for each in chosen if not shown.isdisjoint(each.throttles))

        reading, _ = self._await(lambda reading: not find_left(reading))
        return find_left(reading)

    def _await_moves(
        self, stop_after_s: float | None, observe: Callable[[MovesReport], None]
    ) -> tuple[set[str], str]:
        """Wait for moves that are throttled by name. Returns their topics, and why it stopped."""
        from reconciler.moves.decisions import find_effect, find_settlement
        from reconciler.moves.progress import measure_moves

        started = time.monotonic()
        topics: set[str] = set()
        before = None
        while True:
            reading = self.read()
            awaited = find_settlement(reading).awaited
            topics |= {each.topic for each in awaited}
            if not awaited:
                return topics, ""
            if find_effect(reading).rate == 0:
                return topics, "moves are paused: the throttle rate is 0"
            if stop_after_s is not None and time.monotonic() - started >= stop_after_s:
                return topics, "the time of --stop-after is over"
            observe(measure_moves(reading, before))
            before = before or reading
            time.sleep(WATCH_S)

    def _find_lowered(
        self, topics: Collection[str], specified: Mapping[str, str]
    ) -> Iterator[Unsettled]:
        """Find topics whose min.insync.replicas is below their spec, as during a move."""
        from reconciler.model.moves import MIN_INSYNC
        from reconciler.moves.decisions import Unsettled

        named = sorted(set(topics) & specified.keys())
        for view in list(self._reader.read_views(named, named).values())[:1] if named else ():
            for topic, state in sorted(view.items()):
                live, wanted = state.config.get(MIN_INSYNC), specified[topic]
                if live is not None and int(live) < int(wanted):
                    what = f"{MIN_INSYNC} is {live}, and its spec says {wanted}"
                    yield Unsettled(topic, what, "apply the plan of moves again, or the spec")

    def _restore_min_insync(self, plan: Plan, *, may_write: bool) -> tuple[str, ...]:
        """Set min.insync.replicas as before the moves. Returns the topics where it is not.

        A topic with rows in flight keeps it: without it, brokers would refuse acks=all.
        """
        from reconciler.model.moves import MIN_INSYNC
        from reconciler.moves.decisions import RowState

        lowered = plan.moves.min_insync if plan.moves is not None else {}
        if not lowered:
            return ()
        before = {t.name: t.before.config.get(MIN_INSYNC) for t in plan.topics if t.before}
        views = self._reader.read_views(list(lowered), list(lowered)).values()
        found = {
            topic
            for topic, value in lowered.items()
            if before.get(topic) != str(value)
            and any(topic in v and v[topic].config.get(MIN_INSYNC) == str(value) for v in views)
        }
        busy = {r.place[0] for r in self.find_rows(plan) if r.state is RowState.IN_FLIGHT}
        wanted = {t: {MIN_INSYNC: before.get(t)} for t in found - busy} if may_write else {}
        answers = self._mover.configure(wanted)
        done = {topic for topic, answer in answers.items() if not answer.error}
        return tuple(sorted(found - done))

    def _reassign(self, rows: Mapping[Place, tuple[int, ...] | None]) -> dict[Place, Answer]:
        answers: dict[Place, Answer] = {}
        for batch in _cut(sorted(rows)):
            answers |= self._mover.reassign({place: rows[place] for place in batch})
        return answers

    def _elect(self, leaders: Mapping[Place, int]) -> tuple[Place, ...]:
        """Have preferred leaders lead. Returns the places where they do not."""

        def find() -> list[Place]:
            shown = self.read().partitions
            return [(t, n) for (t, n), leader in leaders.items() if shown[t][n].leader != leader]

        wanted = find()
        for batch in _cut(wanted):
            self._mover.elect(batch)
        if wanted:
            wanted, _ = _await_state(find, lambda places: not places)
        return tuple(sorted(wanted))

    def _unset_lists(self, topics: Sequence[str]) -> None:
        from reconciler.model.moves import ThrottleSide

        unset = dict.fromkeys((side.list_key for side in ThrottleSide), None)
        for batch in _cut(topics):
            _refuse(self._mover.configure(dict.fromkeys(batch, unset)))

        def find() -> list[object]:
            return [each for lists in self._mover.read_lists(topics).values() for each in lists]

        if topics:
            _await_state(find, lambda lists: not lists)

    def _await(self, holds: Callable[[MovesReading], bool]) -> tuple[MovesReading, bool]:
        return _await_state(self.read, holds)

    @contextmanager
    def _lock(
        self, locking: Locking, *, of_moves: bool = False, waits: bool = True
    ) -> Iterator[None]:
        if locking.timeout_s is None:
            yield
            return
        from reconciler.api.authors import find_author
        from reconciler.kafka.lock import GROUP, MOVES_GROUP, Holder, hold_lock

        author = find_author()
        since = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        holder = Holder(author.user, author.host, author.pid, since)
        group = MOVES_GROUP if of_moves else GROUP
        patience_s = locking.timeout_s if waits else 0.0
        observe = locking.observe
        with (
            keep_interrupts(),
            hold_lock(
                self._connection, holder, group=group, patience_s=patience_s, observe=observe
            ),
        ):
            yield


def _repeat(send: Callable[[], Answer]) -> Answer:
    """Send a request again while it is certain that nothing was sent."""
    from reconciler.model.outcomes import AnswerKind

    for _ in range(TRIES):
        answer = send()
        if answer.kind is not AnswerKind.NOT_DONE:
            break
        time.sleep(POLL_S)
    return answer


def _refuse(answers: Mapping[str, Answer]) -> None:
    """Raise a finding for each answer that says that nothing was done. Errors: ClusterError."""
    from reconciler.model.outcomes import AnswerKind

    way_out = "check the rights of the account (docs/permissions.md) and the brokers' logs"
    findings = [
        Finding("cluster-answer", f"{name} cannot be changed{_say(answer)}", way_out)
        for name, answer in answers.items()
        if answer.kind in (AnswerKind.REFUSED, AnswerKind.NOT_DONE)
    ]
    if findings:
        raise ClusterError(findings)


def _say(answer: Answer) -> str:
    return f": {answer.error}: {answer.text}" if answer.error else ""


def _shows_rate(reading: MovesReading, bytes_per_s: int | None) -> bool:
    """Return whether all brokers without a rate of their own have a rate from the default."""
    from reconciler.model.moves import RateSource

    shown = [each for each in reading.rates if each.source is RateSource.CLUSTER_DEFAULT]
    if bytes_per_s is None:
        return not shown
    # The mark of a rate of moves is one byte more for followers.
    return bool(shown) and all(0 <= each.bytes_per_s - bytes_per_s <= 1 for each in shown)


def _await_state(find: Callable[[], T], holds: Callable[[T], bool]) -> tuple[T, bool]:
    """Look until something holds, for VISIBLE_S. Returns the last state, and whether it does."""
    deadline = time.monotonic() + VISIBLE_S
    while True:
        found = find()
        if holds(found):
            return found, True
        if time.monotonic() > deadline:
            return found, False
        time.sleep(POLL_S)


def _cut(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), AT_ONCE):
        yield items[start : start + AT_ONCE]
