"""A cancel of the moves of a plan that are in flight, whatever machine started them.

It takes steps as a run does: read, judge the rows, and send what is missing. So a cancel that was
killed, an answer that is lost, and a move that ends meanwhile need no code of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

from reconciler.model.cluster import AnyPlace, Place, ReplicaPlace, Replicas
from reconciler.model.moves import MovesReading
from reconciler.model.outcomes import Answer, AnswerKind
from reconciler.model.plan import Plan
from reconciler.moves.running.health import list_required
from reconciler.moves.running.insync import MinInsync
from reconciler.moves.running.interventions import (
    REWRITE_S,
    TRIES,
    VISIBLE_S,
    Leases,
    take_steps,
)
from reconciler.moves.running.relocations import Relocation, Relocations
from reconciler.moves.running.report import Item
from reconciler.moves.running.rows import SETTLED_S, Row, Rows, RowState, compare_views
from reconciler.moves.running.throttle import list_entries, read_lists
from reconciler.moves.running.writes import MOST_ROWS, Writes
from reconciler.run.ports import Clock, ClusterMover, ClusterReader, Lease

VERIFY_S = 0.5

ENDED_ALREADY = "NO_REASSIGNMENT_IN_PROGRESS"
"""The refusal of a cancel of what is not listed any more: the next reading shows its end."""


NOT_SENT = Answer(AnswerKind.NOT_DONE)


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The result of a cancel.

    Replicas between log directories have their broker as well. `ended` are rows that reached their
    target before the cancel reached them. `failed` holds a
    reason for each row that is not as before the plan. `led_by_others` are rows that are, without
    their preferred leader. `lowered` are topics whose min.insync.replicas is still that of the
    moves. `run` is the holder of the lock of moves, "" if no run has it. `unknown`: a request got
    no answer, and its effect is not visible.
    """

    cancelled: tuple[AnyPlace, ...] = ()
    ended: tuple[AnyPlace, ...] = ()
    failed: Mapping[AnyPlace, str] = field(default_factory=dict)
    led_by_others: tuple[Place, ...] = ()
    lowered: tuple[str, ...] = ()
    run: str = ""
    unknown: bool = False


@dataclass(slots=True)
class _Sent:
    """What was last asked for a row: a cancel if `row` is None, or its order."""

    row: Replicas | None
    tries: int = 0
    at_s: float = 0.0
    answer: Answer = NOT_SENT

    @property
    def is_refused(self) -> bool:
        """Whether the brokers do not do it, however often they are asked."""
        return self.answer.kind is AnswerKind.REFUSED and self.answer.error != ENDED_ALREADY

    def is_due(self, now_s: float) -> bool:
        """Return whether to ask now: again only if the last request had no effect for a while."""
        waits = self.answer.kind is not AnswerKind.NOT_DONE and now_s - self.at_s < REWRITE_S
        return not (self.is_refused or waits or self.tries >= TRIES)


@dataclass(slots=True)
class Cancel:
    """The cancel of a plan: `look` chooses what is to be done, and `work` does that much.

    `flying` are rows in flight, `kept` says why some of them must not be cancelled. `turned` are
    rows whose order an earlier cancel has changed, and `misled` those that it put back without
    their preferred leader. `lowered` are topics whose min.insync.replicas is that of the moves.
    """

    plan: Plan
    reader: ClusterReader
    mover: ClusterMover
    clock: Clock
    rows: Rows = field(init=False)
    relocations: Relocations = field(init=False)
    reading: MovesReading = field(init=False)
    flying: tuple[Row, ...] = ()
    relocating: tuple[Relocation, ...] = ()
    kept: Mapping[Place, str] = field(default_factory=dict)
    turned: tuple[Row, ...] = ()
    misled: tuple[Row, ...] = ()
    lowered: tuple[str, ...] = ()
    writes: Writes = field(init=False)
    insync: MinInsync = field(init=False)
    sent: dict[Place, _Sent] = field(default_factory=dict)
    returned: dict[ReplicaPlace, float] = field(default_factory=dict)
    changed_s: float = 0.0

    def look(self) -> None:
        """Read where the rows of the plan are, and choose. Errors: ClusterError."""
        plan, reader, clock = self.plan, self.reader, self.clock
        topics = {topic.name: topic for topic in plan.topics}
        rows = self.rows = Rows.of_plan(plan)
        relocations = self.relocations = Relocations.of_plan(plan)
        writes = Writes(
            topics,
            rows,
            relocations,
            reader,
            self.mover,
            clock,
            lambda _: None,
            Leases(),
            nullcontext,
        )
        self.writes, least, lowered = writes, 1, dict(plan.moves.min_insync if plan.moves else {})
        if plan.moves is not None and lowered:
            _, least = list_required(reader.read_cluster(list(lowered)), plan.moves)
        self.insync = MinInsync(lowered, least, topics, rows, reader, writes)
        self._read(rows)
        self.relocating = tuple(relocations.list_in(RowState.UNDER_WAY))
        self.lowered = self.insync.list_lowered(self.reading)
        flying = rows.list_in(RowState.UNDER_WAY)
        self.kept = {row.place: why for row in flying if (why := self._explain_keeping(row))}
        self.flying = tuple(row for row in flying if row.place not in self.kept)
        self.turned = tuple(r for r in rows if r.is_turned and r.state is not RowState.GONE)
        # A run and a cancel leave the lists: one that names a row shows that it was begun.
        lists = read_lists(self.reading.lists)
        self.misled = tuple(
            row
            for row in rows.list_in(RowState.NOT_BEGUN)
            if row.is_misled(back=True)
            and any(each & lists.get(key, frozenset()) for key, each in list_entries([row]).items())
        )

    @property
    def listed(self) -> tuple[Item, ...]:
        """What the plan moves of topics that are there, and were not created again."""
        rows = (row for row in self.rows if row.shown is not None)
        return tuple(i for i in (*rows, *self.relocations) if i.state is not RowState.GONE)

    @property
    def chosen(self) -> tuple[Row, ...]:
        """The rows that the cancel works on."""
        return (*self.flying, *self.turned, *self.misled)

    def work(self, lease: Lease, *, run: str = "") -> Cancelled:
        """Cancel, restore orders and min.insync.replicas, and have preferred leaders lead.

        In: `run`, the holder of the lock of moves, "" if `lease` has it. A run needs the lowered
        min.insync.replicas. It does not send the rows again, and goes on with others.
        Errors: ClusterError if the cluster does not answer; LockLostError.
        """
        self.writes.lease = lease
        self.changed_s = self.clock.monotonic()
        take_steps(partial(self._step, may_restore=not run), self.clock)
        return self._judge(run)

    def _read(self, rows: Iterable[Row]) -> None:
        """Read the cluster, and judge every row; of some, compare the ids of their topics."""
        self.reading = self.mover.read(())
        self.rows.update(self.reading, self.clock.monotonic())
        self.relocations.update(self.reading, self.clock.monotonic())
        names = {row.place[0] for row in rows}
        self.writes.skip_replaced(names | self.relocations.topics)

    def _step(self, *, may_restore: bool) -> float | None:
        """Take one step. Returns: the seconds to wait before the next; None if it is over."""
        before = [(row.state, row.agreed, row.shown) for row in self.chosen]
        self._read(self.chosen)
        now = self.clock.monotonic()
        resting = [r for r in self.chosen if r.flight is None and r.state is not RowState.GONE]
        if resting:
            views = self.reader.read_views({row.place[0] for row in resting})
            self.rows.resolve(views, now)
            for row in resting:
                if row.state is not RowState.UNCLEAR:
                    compare_views(row, views, now)
        if before != [(row.state, row.agreed, row.shown) for row in self.chosen]:
            self.changed_s = now
        flying = [row for row in self.chosen if row.state is RowState.UNDER_WAY]
        self._send({row.place: None for row in flying if not self._explain_keeping(row)})
        turned = [row for row in self.chosen if self._is_turned(row, now)]
        self._send({row.place: row.before for row in turned})
        back = [row for row in self.chosen if self._is_back(row, now)]
        are_led = self.writes.elect(back, back=True)
        are_led &= not any(row.is_misled(back=True) for row in back)
        is_open = any(self._is_open(row, now) for row in self.chosen)
        is_open |= self._put_back(now)
        if not is_open:
            left: dict[str, str] = {}
            if may_restore:
                # What was cancelled and is not decided yet copies nothing any more.
                places = {row.place for row in self.chosen} - {row.place for row in flying}
                moving = [r for r in self.rows if r.may_copy and r.place not in places]
                self.insync.restore(moving, self.reading, left)
            self.lowered = self.insync.list_lowered(self.reading)
            if are_led and not left:
                return None
        is_late = self.clock.monotonic() - self.changed_s >= SETTLED_S + VISIBLE_S
        return None if is_late else VERIFY_S

    def _put_back(self, now: float) -> bool:
        """Ask brokers for the directories from before, and then drop the copies that they make.

        A copy that is complete by then is in its place, and would be copied back: it stays.
        Returns: whether there is something to wait for.
        """
        for turned in (False, True):
            found = [
                each
                for each in self.relocating
                if (each.turned if turned else self._is_relocated(each))
                and now - self.returned.get(each.key, -REWRITE_S) >= REWRITE_S * (not turned)
            ]
            if found:
                self.writes.relocate(found, back=not turned)
                self.returned |= dict.fromkeys((each.key for each in found), now)
                self.changed_s = now
        return any(each.turned or self._is_relocated(each) for each in self.relocating)

    def _is_relocated(self, each: Relocation) -> bool:
        """Return whether a replica is being copied to the directory of the plan."""
        return each.state is RowState.UNDER_WAY and each.idle_s is None

    def _send(self, rows: Mapping[Place, Replicas | None]) -> None:
        """Ask for rows, again if an answer was lost and no effect is seen."""
        now = self.clock.monotonic()
        due = {}
        for place, row in sorted(rows.items()):
            sent = self.sent.get(place)
            if sent is None or sent.row != row:
                sent = self.sent[place] = _Sent(row)
            if sent.is_due(now):
                due[place] = row
        places = list(due)
        for first in range(0, len(places), MOST_ROWS):
            batch = {place: due[place] for place in places[first : first + MOST_ROWS]}
            self.writes.check_right()
            answers = self.mover.reassign(batch)
            self.changed_s = self.clock.monotonic()
            for place, answer in answers.items():
                sent, asked = self.sent[place], self.rows.by_place[place]
                sent.tries, sent.at_s, sent.answer = sent.tries + 1, self.changed_s, answer
                if answer.kind is AnswerKind.ACCEPTED:
                    asked.known, asked.state = True, RowState.UNCLEAR
                    asked.agreed_since_s, asked.agreed = self.changed_s, None

    # Views lag. While a row adds nothing, brokers show it turned in flight; while it removes
    # nothing, as planned; and until they show the flight, as before. So only what the brokers
    # accepted, or what looks like nothing else, is believed at once.

    def _is_back(self, row: Row, now: float) -> bool:
        """Return whether a row is as before the plan."""
        sure = self._is_accepted(row) or not row.known
        return row.agreed == row.before and self._is_believed(row, now, sure=sure)

    def _is_turned(self, row: Row, now: float) -> bool:
        """Return whether a row has its old replicas in another order."""
        sure = self._is_accepted(row) or bool(row.adding)
        return row.turns(row.agreed or ()) and self._is_believed(row, now, sure=sure)

    def _has_ended(self, row: Row, now: float) -> bool:
        """Return whether a row is as planned."""
        sure = not self._is_accepted(row) and not set(row.before) <= set(row.after)
        return row.agreed == row.after and self._is_believed(row, now, sure=sure)

    def _is_believed(self, row: Row, now: float, *, sure: bool) -> bool:
        """Return whether what all brokers show of a row holds."""
        since_s = now if row.agreed_since_s is None else row.agreed_since_s
        is_there = row.flight is None and row.state is not RowState.GONE
        return is_there and (sure or now - since_s >= SETTLED_S)

    def _is_accepted(self, row: Row) -> bool:
        sent = self.sent.get(row.place)
        return sent is not None and sent.answer.kind is AnswerKind.ACCEPTED

    def _is_open(self, row: Row, now: float) -> bool:
        """Return whether there is something to wait for in a row."""
        if row.state is RowState.UNDER_WAY or self._is_turned(row, now):
            sent = self.sent.get(row.place)
            return not (sent is not None and sent.is_refused) and not self._explain_keeping(row)
        if self._is_back(row, now) or self._has_ended(row, now):
            return False
        passing = (RowState.UNCLEAR, RowState.DONE, RowState.NOT_BEGUN)
        return row.state in passing or row.is_turned

    def _explain_keeping(self, row: Row) -> str:
        return explain_keeping(row, self.reading)

    def _judge(self, run: str) -> Cancelled:
        """Say what became of the chosen rows."""
        now = self.clock.monotonic()
        back = {row.place: row for row in self.chosen if self._is_back(row, now)}
        ended = {row.place for row in self.chosen if self._has_ended(row, now)}
        arrived = {each.key for each in self.relocating if each.state is RowState.DONE}
        away = {
            each.key: each.text or f"it is {each.where}"
            for each in self.relocating
            if each.key not in arrived and not each.is_back
        }
        failed: dict[AnyPlace, str] = {
            row.place: self._explain_failure(row)
            for row in sorted(self.chosen, key=lambda row: row.place)
            if row.place not in back and row.place not in ended
        }
        failed.update(away.items())
        put_back = [e.key for e in self.relocating if e.key not in arrived and e.key not in away]
        lost = {place for place, each in self.sent.items() if each.answer.kind is AnswerKind.LOST}
        return Cancelled(
            (*sorted(back), *put_back),
            (*sorted(ended), *sorted(arrived)),
            failed,
            tuple(p for p, r in sorted(back.items()) if r.shown and r.shown.leader != r.before[0]),
            self.lowered,
            run,
            not lost.isdisjoint(failed) or any(each.in_doubt for each in self.relocating),
        )

    def _explain_failure(self, row: Row) -> str:
        answer = self.sent[row.place].answer if row.place in self.sent else None
        said = f": {answer.error}: {answer.text}" if answer and answer.error else ""
        if row.state is RowState.GONE:
            return row.text
        if row.is_turned:
            return f"its order is not restored{said}"
        keeping = self._explain_keeping(row) if row.state is RowState.UNDER_WAY else ""
        return keeping or f"it is {row.where}{said}"


def explain_keeping(row: Row, reading: MovesReading) -> str:
    """Return why a move must not be cancelled, "" if it may be.

    A cancel leaves the replicas from before. If none of them is in sync, that loses data: Kafka
    refuses it, but not where unclean leader election is enabled.
    """
    alive = {broker.id for broker in reading.brokers if broker.alive}
    in_sync = set(row.shown.in_sync) if row.shown else set()
    if alive.isdisjoint(set(row.before) & in_sync):
        named = ", ".join(map(str, row.before))
        return f"none of its replicas from before the plan ({named}) is in sync and alive"
    return ""
