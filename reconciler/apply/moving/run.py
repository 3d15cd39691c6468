"""A run of moves: read, judge, and do the first thing that is missing, until nothing is.

Each step starts from a new reading and not from what the step before intended. So a run that
follows a killed one, an answer that is lost, and a request that is carried out late need no code
of their own. Kafka holds what is in flight and its throttles; the plan holds the rest.

One step, in order. Nothing later is done while something earlier is not shown by every broker.

| missing                                                     | done                             |
|-------------------------------------------------------------|----------------------------------|
| a rate, lists and min.insync.replicas for what shall begin  | set, and read back               |
| rows that have room                                         | sent, at most 500 per request    |
| nothing can begin, and nothing in flight is worth a wait    | throttles removed, then elected  |
"""

from __future__ import annotations

from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reconciler.apply.checks import find_other_cluster
from reconciler.apply.ending import Applied, StepAnswered
from reconciler.apply.moving.events import MovesNote, MovesNoted, MovesSummary, MovesWatched
from reconciler.apply.moving.health import Health
from reconciler.apply.moving.report import judge_topics
from reconciler.apply.moving.rows import ENDED_OTHERWISE, SETTLED_S, Row, Rows, RowState
from reconciler.apply.moving.throttle import (
    EVERY,
    find_default,
    find_other_limits,
    is_rate_gone,
    is_rate_shown,
    list_entries,
    name_missing_lists,
    read_lists,
    spell_list,
)
from reconciler.apply.moving.window import (
    TOO_LATE,
    Limits,
    Window,
    choose_rows,
    count_states,
    find_size,
)
from reconciler.errors import (
    ClusterError,
    Finding,
    LockHeldError,
    LockLostError,
    RefusedPlanError,
    Severity,
    StalePlanError,
    keep_interrupts,
)
from reconciler.model import MIN_INSYNC, AnswerKind, ThrottleSide, Verb
from reconciler.moves import measure_moves
from reconciler.plan import list_refusals
from reconciler.units import approximate_size, count

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from reconciler.model import (
        Answer,
        ClusterState,
        MovesReading,
        Place,
        Plan,
        PlannedMoves,
        PlannedTopic,
        TopicState,
    )
    from reconciler.ports import Clock, ClusterMover, ClusterReader, Lease

    MovesEvent = StepAnswered | MovesNoted | MovesWatched

MOST_ROWS = 500
"""Rows in one request; the controller refuses requests of more than 10,000 records."""

WATCH_S = 2.0
VERIFY_S = 0.5
REWRITE_S = 5.0
"""After this time without effect it is written again: a late request may have undone it."""

SILENT_S = 60.0
BLOCKED_S = 60.0
DOUBT_S = 60.0
"""How long a run that is to end waits for requests without an answer to show an effect."""

PATIENCE_S = 120.0
"""How long a run tries to clean up, once nothing else is left to do."""

SLOW_S = 60.0
RATE_WINDOW_S = 30.0
ELECTIONS = 4
GROWTH = 1.25
GROWTH_SLACK = 1 << 30
"""The sizes that were approved may grow this much, and by 1 GiB in any case."""

INTERRUPTED = "interrupted"


class Unlocked:
    """The lease of a run that takes no lock."""

    def check(self) -> None:
        """Always hold."""


def run_moves(
    plan: Plan,
    reader: ClusterReader,
    mover: ClusterMover,
    clock: Clock,
    observe: Callable[[MovesEvent], None] = lambda _: None,
    *,
    lease: Lease | None = None,
    writing: Callable[[], AbstractContextManager[Lease | None]] = nullcontext,
    stop_after_s: float | None = None,
    skip_refused: bool = False,
) -> Applied:
    """Move the replicas of a plan of moves, a few at a time, and leave no throttle behind.

    `lease` is the lock of moves; it is checked before every write, and without it nothing is
    written, not even to remove a throttle. `writing` holds the lock of applies while something is
    written. After `stop_after_s` nothing is in flight that was not estimated to end before; what is
    still in flight keeps its throttles.

    The first interrupt begins nothing more and waits for what is in flight; the second one leaves
    it, throttled. The same call continues after any ending: rows are done, under way or not begun.
    Returns: an outcome for every topic, with a summary of its partitions.
    Errors: RefusedPlanError before anything is read; StalePlanError, and ClusterError if the
    cluster cannot be read, before anything is written.
    """
    moves = plan.moves
    if moves is None:
        raise ValueError("a plan without moves; run_plan applies it")
    if refusals := list_refusals(plan, skip_refused=skip_refused):
        raise RefusedPlanError(refusals)
    run = _Run(plan, moves, reader, mover, clock, observe, lease or Unlocked(), writing)
    if stop_after_s is not None:
        run.deadline_s = clock.monotonic() + stop_after_s
    run.begin()
    for _ in range(2):
        try:
            with keep_interrupts():
                run.work()
            break
        except KeyboardInterrupt:
            run.interrupt()
        except ClusterError as error:
            if not run.has_written:
                raise
            run.cause = error
            break
    return run.report()


@dataclass(slots=True)
class _Run:
    """One run of a plan of moves. What it keeps only saves requests, or belongs to its report."""

    plan: Plan
    moves: PlannedMoves
    reader: ClusterReader
    mover: ClusterMover
    clock: Clock
    observe: Callable[[MovesEvent], None]
    lease: Lease
    writing: Callable[[], AbstractContextManager[Lease | None]]
    deadline_s: float | None = None
    rows: Rows = field(default_factory=lambda: Rows({}))
    topics: dict[str, PlannedTopic] = field(default_factory=dict)
    reading: MovesReading | None = None
    health: Health = field(default_factory=lambda: Health({}))
    rate: int | None = None
    """The default rate that is in force, as set or adopted; None if there is none."""
    owns_rate: bool = False
    gates: tuple[str, ...] = ()
    blocked: dict[Place, str] = field(default_factory=dict)
    blocked_since_s: dict[Place, float] = field(default_factory=dict)
    stuck_since_s: dict[Place, float] = field(default_factory=dict)
    written_s: dict[tuple[str, str], tuple[str | None, float]] = field(default_factory=dict)
    insync_shown: dict[str, str | None] = field(default_factory=dict)
    insync_wanted: dict[str, str | None] = field(default_factory=dict)
    configured: set[str] = field(default_factory=set)
    silent_since_s: float | None = None
    ending_since_s: float | None = None
    interrupted: bool = False
    has_written: bool = False
    cause: ClusterError | None = None
    left: dict[str, str] = field(default_factory=dict)
    ours: dict[tuple[str, ThrottleSide], frozenset[str]] = field(default_factory=dict)
    held: ExitStack | None = None
    holding: Lease | None = None
    progress: list[tuple[float, int]] = field(default_factory=list)
    grown: dict[tuple[Place, int], tuple[int, float, bool]] = field(default_factory=dict)
    total_bytes: dict[Place, int] = field(default_factory=dict)
    watched_s: float | None = None
    last_reading: MovesReading | None = None

    # -- the beginning ----------------------------------------------------------------------------

    def begin(self) -> None:
        """Read the cluster and judge the plan. Errors: StalePlanError, ClusterError."""
        state = self.reader.read_cluster()
        if moved := list(find_other_cluster(self.plan, state)):
            raise StalePlanError(moved)
        self.rows = Rows.of_plan(self.plan)
        self.topics = {topic.name: topic for topic in self.plan.topics}
        self.topics = {name: self.topics[name] for name, _ in self.rows.by_place}
        self.health = Health(*self._read_min_insync(state))
        reading = self._read()
        # What is not visible cannot be read back. A broker that is silent may answer again.
        unseen = [note for note in reading.notes if note.rule != "broker-silent"]
        if unseen:
            raise ClusterError([replace(note, severity=Severity.ERROR) for note in unseen])
        self._check_ids(self.topics)
        self._check_configs(state)
        for row in self.rows:
            row.was_done = row.state is RowState.DONE
            lists = read_lists(reading.lists)
            if any(EVERY in lists.get((row.place[0], side), ()) for side in ThrottleSide):
                self._skip(row, "its topic has a throttle list of *, which somebody else set")
        self._check_limits(reading)
        self._note(MovesNote.STARTED, self._count())

    def _read_min_insync(self, state: ClusterState) -> tuple[dict[str, int], int]:
        """Return min.insync.replicas in force during the run, by topic and of all others."""
        found = {
            name: int(value)
            for name, topic in state.topics.items()
            if (value := topic.config.get(MIN_INSYNC)) is not None and value.isdecimal()
        }
        default = state.config_defaults.get(MIN_INSYNC, "1")
        return found | dict(self.moves.min_insync), int(default) if default.isdecimal() else 1

    def _check_ids(self, names: Collection[str]) -> None:
        """Skip the rows of topics that were deleted, or created again, since the plan was made."""
        ids = self.reader.read_topic_ids(names) if names else {}
        for name in names:
            before = self.topics[name].before
            then = before.topic_id if before else None
            if name in ids and then is not None and ids[name] != then:
                for row in self.rows.of_topics([name]):
                    row.flight = None
                    self._skip(row, "it was deleted and created again", RowState.GONE)

    def _check_configs(self, state: ClusterState) -> None:
        """Skip topics whose min.insync.replicas is neither that of the plan nor the lowered one."""
        for name, lowered in self.moves.min_insync.items():
            if name not in self.topics or name not in state.topics:
                continue
            now, planned = state.topics[name].config.get(MIN_INSYNC), self._restored(name)
            self.insync_shown[name] = now
            if now not in (planned, str(lowered)):
                what = f"{MIN_INSYNC}: {planned or 'not set'} → {now or 'not set'}"
                for row in self.rows.of_topics([name]):
                    if row.state is RowState.NOT_BEGUN:
                        self._skip(row, f"{what} since the plan was made")

    def _check_limits(self, reading: MovesReading) -> None:
        """Adopt the default rate that is set, or refuse. Errors: StalePlanError, nothing is done.

        A rate is ours if it is that of the plan, or if this plan has rows in flight or throttled:
        then a run of it set one, and an operator may have changed it. 0 is a pause.
        """
        wanted, found = self.moves.policy.rate_bytes_per_s, find_default(reading)
        lists = read_lists(reading.lists)
        is_ours = any(
            entries & lists.get(key, frozenset()) for key, entries in self._ours().items()
        )
        is_ours = is_ours or bool(self.rows.list_in(RowState.UNDER_WAY, RowState.UNCLEAR))
        self.rate = found
        if found is not None and (is_ours or found in (wanted, 0)):
            self.owns_rate = True
            return
        waiting = self.rows.list_in(RowState.NOT_BEGUN)
        if is_ours or not waiting:
            return
        brokers = {broker for row in self.rows for broker in row.brokers}
        moved = list(find_other_limits(reading, self.moves, brokers))
        if found is not None:
            amount = f"{found} B/s ({approximate_size(found)}/s)"
            what = (
                f"the cluster has a default throttle rate of {amount}, which this plan did not set"
            )
            way_out = "wait until what uses it has ended, or set that rate in moves.rate"
            moved.append(Finding("moves-rate-taken", what, way_out))
        forecast = self.moves.forecast
        known = [row for row in waiting if self._forecast_size(row) >= 0] if forecast else []
        then = sum(self._forecast_size(row) * len(row.adding) for row in known)
        now = sum(find_size(row, reading, None) * len(row.adding) for row in known)
        if now > GROWTH * then and now > then + GROWTH_SLACK:
            what = (
                f"the replicas to copy have {approximate_size(now)}, more than {GROWTH} times the "
                f"{approximate_size(then)} of the plan"
            )
            moved.append(Finding("plan-stale", what, "plan again"))
        if moved:
            raise StalePlanError(moved)

    def _forecast_size(self, row: Row) -> int:
        topic, partition = row.place
        sizes = self.moves.forecast.sizes.get(topic, ()) if self.moves.forecast else ()
        return sizes[partition] if partition < len(sizes) else -1

    def _restored(self, name: str) -> str | None:
        """Return the override of min.insync.replicas after the plan, None for none."""
        after = self.topics[name].after
        return after.config.get(MIN_INSYNC) if after else None

    # -- the loop ---------------------------------------------------------------------------------

    def work(self) -> None:
        """Take steps until the run is over. Errors: ClusterError if it must stop at once."""
        while True:
            try:
                with ExitStack() as held:
                    self.held, self.holding = held, None
                    pause_s = self._step()
                self.silent_since_s = None
            except LockLostError:
                raise
            except (LockHeldError, ClusterError) as error:
                pause_s = self._bear(error)
            if pause_s is None:
                return
            self.clock.sleep(pause_s)

    def _bear(self, error: LockHeldError | ClusterError) -> float:
        """Wait for a cluster that does not answer, or for another apply. Errors: that one."""
        now = self.clock.monotonic()
        if isinstance(error, LockHeldError):
            self._note(MovesNote.BLOCKED, error.findings[0].what)
            self._check_deadline(error)
            return WATCH_S
        if self.silent_since_s is None:
            self.silent_since_s = now
            self._note(MovesNote.SILENT, error.findings[0].what)
        if now - self.silent_since_s >= SILENT_S:
            raise error
        return WATCH_S

    def _check_deadline(self, error: LockHeldError) -> None:
        late = self.deadline_s is not None and self.clock.monotonic() > self.deadline_s + PATIENCE_S
        if late or self.interrupted:
            raise ClusterError(error.findings) from error

    def _step(self) -> float | None:
        """Take one step. Returns: the seconds to wait before the next; None if the run is over."""
        reading = self._read()
        self._adopt_rate(reading)
        self._set_gates(reading)
        self._watch(reading)
        chosen = self._choose(reading)
        is_over = self._is_over(reading, chosen)
        if is_over:
            return self._end(reading)
        self.ending_since_s = None
        self._keep_throttled(reading, chosen)
        if chosen and not self._name_unready(reading, chosen):
            self._send(chosen)
        self._elect([row for row in self.rows.list_in(RowState.DONE) if row.is_reorder])
        unsettled = bool(chosen) or bool(self.rows.list_in(RowState.UNCLEAR))
        return VERIFY_S if unsettled else WATCH_S

    def _read(self) -> MovesReading:
        """Read the cluster and judge every row. Errors: ClusterError."""
        reading = self.mover.read(list(self.topics))
        now = self.clock.monotonic()
        self.last_reading, self.reading = self.reading, reading
        self.rows.update(reading, now)
        if unclear := self.rows.list_in(RowState.UNCLEAR):
            names = sorted({row.place[0] for row in unclear})
            self.rows.resolve(self.reader.read_views(names), now)
            for row in self.rows.fallen:
                self._note(MovesNote.SKIPPED, row.text, row)
            self.rows.fallen.clear()
        return reading

    def _adopt_rate(self, reading: MovesReading) -> None:
        """Take over the default rate that an operator set while this run is under way."""
        found = find_default(reading)
        if not self.owns_rate or found is None or found == self.rate:
            return
        said = "paused: the rate is 0" if found == 0 else f"the rate is now {found} B/s"
        self._note(MovesNote.RATE_CHANGED, said)
        self.rate = found

    def _set_gates(self, reading: MovesReading) -> None:
        """Find the reasons to begin nothing now, and say when they change."""
        found = []
        if self.interrupted:
            found.append(INTERRUPTED)
        if self.rate == 0:
            found.append("paused: the throttle rate is 0")
        if foreign := self.rows.foreign:
            named = f"{foreign[0].topic} partition {foreign[0].partition}"
            more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
            found.append(f"somebody else moves {named}{more}")
        moving = {(each.topic, each.partition) for each in reading.reassignments}
        moving |= {row.place for row in self.rows if _is_settling(row, self._now())}
        found += self.health.check(reading, moving)
        gates = tuple(found)
        if gates != self.gates:
            if gates:
                self._note(MovesNote.PAUSED, f"nothing new begins: {'; '.join(gates)}")
            else:
                self._note(MovesNote.RESUMED, "the reasons for the pause are gone")
        self.gates = gates

    def _choose(self, reading: MovesReading) -> list[Row]:
        """Choose what begins now. Rows in doubt are sent again: the same target changes nothing."""
        window = Window(self.moves.policy)
        forecast = self.moves.forecast
        doubtful = [row for row in self.rows if row.in_doubt]
        for row in self._list_moving():
            window.add(row, find_size(row, reading, forecast), reading)
        self.blocked = {}
        waiting = [row for row in self.rows.list_in(RowState.NOT_BEGUN) if not row.in_doubt]
        left_s = None if self.deadline_s is None else self.deadline_s - self.clock.monotonic()
        rate = self.rate or self.moves.policy.rate_bytes_per_s or self._measure_rate()
        limits = Limits(rate, left_s)
        chosen, blocked = choose_rows(waiting, window, reading, forecast, limits)
        if self.gates or (left_s is not None and left_s <= 0):
            chosen = []
        self._note_blocked(blocked)
        return [] if self.interrupted else [*doubtful, *chosen]

    def _note_blocked(self, blocked: Mapping[Place, str]) -> None:
        now = self.clock.monotonic()
        self.blocked = dict(blocked)
        since = self.blocked_since_s
        self.blocked_since_s = {place: since.get(place, now) for place in blocked}
        for place in blocked.keys() - since.keys():
            self._note(MovesNote.BLOCKED, blocked[place], self.rows.by_place[place])

    def _is_over(self, reading: MovesReading, chosen: Collection[Row]) -> bool:
        """Return whether nothing can begin, and nothing that is in flight is worth waiting for."""
        now = self.clock.monotonic()
        if self.deadline_s is not None and now >= self.deadline_s:
            return True
        if self.rows.list_in(RowState.UNCLEAR):
            return False
        doubtful = [row for row in self.rows if row.in_doubt]
        flying = self.rows.list_in(RowState.UNDER_WAY)
        if self.interrupted:
            return not flying and all(now - row.asked_s >= DOUBT_S for row in doubtful)
        waiting = self.rows.list_in(RowState.NOT_BEGUN, RowState.FOREIGN)
        if not flying and not waiting:
            return True
        if chosen or any(row.state is RowState.FOREIGN for row in waiting):
            return False
        if waiting and self.gates:  # a pause may end
            return False
        alive = {broker.id for broker in reading.brokers if broker.alive}
        stuck = {row.place for row in flying if set(row.adding) - alive}
        self.stuck_since_s = {place: self.stuck_since_s.get(place, now) for place in stuck}
        since = self.blocked_since_s | self.stuck_since_s
        since |= {place: 0.0 for place, why in self.blocked.items() if why.endswith(TOO_LATE)}
        return len(stuck) == len(flying) and all(
            now - since.get(row.place, now) >= BLOCKED_S for row in (*waiting, *flying)
        )

    # -- throttles and min.insync.replicas --------------------------------------------------------

    def _ours(self) -> dict[tuple[str, ThrottleSide], frozenset[str]]:
        """Return every entry that a run of this plan writes; the same in all steps."""
        if not self.ours:
            self.ours = list_entries(self.rows)
        return self.ours

    def _list_wanted(
        self, reading: MovesReading, rows: Iterable[Row]
    ) -> dict[tuple[str, ThrottleSide], str | None]:
        """Return the lists that differ from those that some rows need; None removes a list.

        Entries of others stay.
        """
        needed, ours, shown = list_entries(rows), self._ours(), read_lists(reading.lists)
        wanted: dict[tuple[str, ThrottleSide], str | None] = {}
        for key, entries in ours.items():
            now = shown.get(key, frozenset())
            if EVERY in now:
                continue
            then = (now - entries) | needed.get(key, frozenset())
            if then != now:
                wanted[key] = spell_list(then)
        return wanted

    def _keep_throttled(self, reading: MovesReading, chosen: Sequence[Row]) -> None:
        """Set the rate, lists and min.insync.replicas for what is in flight and shall begin."""
        kept = self._list_moving()
        rows = [*kept, *chosen]
        if not rows:
            return
        copying = [row for row in rows if row.adding]
        configs: dict[str, dict[str, str | None]] = {}
        for (topic, side), value in self._list_wanted(reading, rows).items():
            if self._is_due((topic, side.list_key), value):
                configs.setdefault(topic, {})[side.list_key] = value
        for topic, value in self._list_insync(rows, reading).items():
            if self._is_due((topic, MIN_INSYNC), value):
                configs.setdefault(topic, {})[MIN_INSYNC] = value
        wanted = self.rate if self.owns_rate else self.moves.policy.rate_bytes_per_s
        lacks_rate = copying and wanted is not None and find_default(reading) is None
        if lacks_rate and self._is_due(("", "rate"), str(wanted)):
            self._write_rate(wanted)
        if configs:
            self._configure(configs)

    def _list_moving(self) -> list[Row]:
        """List the rows whose throttles stay: in flight, perhaps just ended, or begun later."""
        return [row for row in self.rows if row.may_copy]

    def _list_insync(
        self, rows: Iterable[Row], reading: MovesReading, *, ending: bool = False
    ) -> dict[str, str | None]:
        """Return the min.insync.replicas to set, by topic; None unsets it.

        It stays lowered until the last row of the topic has ended and is in sync.
        """
        busy = {row.place[0] for row in rows if row.adding}
        if not ending:
            waiting = self.rows.list_in(RowState.NOT_BEGUN)
            lowered = {t for t, v in self.insync_shown.items() if v != self._restored(t)}
            busy |= {row.place[0] for row in waiting if row.place[0] in lowered}
        wanted: dict[str, str | None] = {}
        for topic, value in self.moves.min_insync.items():
            if topic not in self.topics:
                continue
            target = str(value) if topic in busy else self._restored(topic)
            if topic not in busy and not self._is_restorable(topic, target, reading):
                continue
            self.insync_wanted[topic] = target
            if self.insync_shown.get(topic) != target:
                wanted[topic] = target
        return wanted

    def _is_restorable(self, topic: str, target: str | None, reading: MovesReading) -> bool:
        """Return whether to give a topic back its value: the lowered one is what all brokers show.

        Another value was set by somebody else meanwhile, and stays.
        """
        if self.insync_shown.get(topic) == target:
            return True
        if topic not in reading.partitions or not self._is_in_sync(topic, target, reading):
            return False
        self._read_insync([topic])
        return self.insync_shown.get(topic) in (target, str(self.moves.min_insync[topic]))

    def _is_in_sync(self, topic: str, value: str | None, reading: MovesReading) -> bool:
        """Return whether all partitions of a topic have enough in-sync replicas for a value."""
        needed = int(value) if value else self.health.least
        return all(
            len(each.in_sync) >= min(needed, len(each.replicas))
            for each in reading.partitions.get(topic, ())
        )

    def _is_due(self, key: tuple[str, str], value: str | None) -> bool:
        """Return whether to write a value: a new one, or one that had no effect for some time."""
        now = self.clock.monotonic()
        then = self.written_s.get(key)
        return then is None or then[0] != value or now - then[1] >= REWRITE_S

    def _name_unready(self, reading: MovesReading, chosen: Sequence[Row]) -> str:
        """Say what is not shown by every living broker yet; empty if rows may begin."""
        copying = [row for row in chosen if row.adding]
        if not copying:
            return ""
        wanted = self.moves.policy.rate_bytes_per_s
        if not is_rate_shown(reading, self.rate, wanted):
            return "not every broker shows the rate"
        topics = sorted({row.place[0] for row in copying})
        if lowered := [topic for topic in topics if topic in self.moves.min_insync]:
            self._read_insync(lowered)
            for topic in lowered:
                if self.insync_shown.get(topic) != str(self.moves.min_insync[topic]):
                    return f"not every broker shows {MIN_INSYNC} of {topic}"
        living = [broker.id for broker in reading.brokers if broker.alive]
        return name_missing_lists(self.mover.read_lists(topics), list_entries(copying), living)

    def _read_insync(self, topics: Collection[str]) -> None:
        """Ask all brokers for min.insync.replicas; one that differs from what is wanted counts."""
        views = self.reader.read_views(topics, topics)
        for topic in topics:
            wanted = self.insync_wanted.get(topic, self._restored(topic))
            seen = {_find_insync(view.get(topic)) for view in views.values()}
            others = sorted(seen - {wanted}, key=str)
            self.insync_shown[topic] = others[0] if others or not seen else wanted

    # -- writes -----------------------------------------------------------------------------------

    def _check_right(self) -> None:
        """Take the lock of applies for the rest of this step, and check both locks.

        Errors: LockLostError, after which nothing is written; LockHeldError.
        """
        self.lease.check()
        if self.held is not None:
            self.holding, self.held = self.held.enter_context(self.writing()), None
        if self.holding is not None:
            self.holding.check()
        self.has_written = True

    def _write_rate(self, value: int | None) -> None:
        self._check_right()
        self.written_s["", "rate"] = (None if value is None else str(value), self._now())
        if value is not None:
            # Before the request: it may be carried out although its answer is lost.
            self.owns_rate, self.rate = True, value
        answer = self.mover.set_rate(value)
        self._check_refused("the throttle rate of the cluster", answer)

    def _configure(self, configs: Mapping[str, Mapping[str, str | None]]) -> None:
        """Set and unset configs of topics. A topic that refuses is skipped."""
        self._check_right()
        for topic, values in configs.items():
            self.configured.add(topic)
            for key, value in values.items():
                self.written_s[topic, key] = (value, self._now())
        for topic, answer in self.mover.configure(configs).items():
            for key, value in configs[topic].items():
                if answer.kind is AnswerKind.ACCEPTED and key == MIN_INSYNC:
                    self.insync_shown[topic] = None if value is None else value
            if answer.kind is not AnswerKind.REFUSED:
                continue
            for row in self.rows.of_topics([topic]):
                if row.state is RowState.NOT_BEGUN:
                    self._skip(row, f"its throttle was refused: {answer.text}", RowState.REFUSED)

    def _check_refused(self, what: str, answer: Answer) -> None:
        """Errors: ClusterError if the brokers refuse it: nothing can be throttled then."""
        if answer.kind is AnswerKind.REFUSED:
            text = f"the brokers refuse {what}: {answer.text or answer.error}"
            way_out = "grant AlterConfigs on the cluster, then run the same command again"
            raise ClusterError([Finding("cluster-answer", text, way_out)])

    def _send(self, chosen: Sequence[Row]) -> None:
        """Ask for rows, at most MOST_ROWS in a request."""
        self._check_ids(sorted({row.place[0] for row in chosen}))
        ready = [row for row in chosen if row.state is RowState.NOT_BEGUN]
        for resizes in (False, True):
            alike = [row for row in ready if (len(row.before) != len(row.after)) == resizes]
            for first in range(0, len(alike), MOST_ROWS):
                self._reassign(alike[first : first + MOST_ROWS], resizes=resizes)

    def _reassign(self, rows: Sequence[Row], *, resizes: bool) -> None:
        self._check_right()
        for row in rows:
            # Before the request: an interrupt must count it as sent.
            row.unanswered += 1
            row.asked_s = self._now()
        answers = self.mover.reassign({row.place: row.after for row in rows}, may_resize=resizes)
        for row in rows:
            answer = answers[row.place]
            if answer.kind is not AnswerKind.LOST:
                row.unanswered -= 1
            verb = Verb.REORDER if row.is_reorder else Verb.MOVE
            total = len(self.rows.by_place)
            self.observe(StepAnswered(verb, row.place[0], total, answer.kind, answer.text))
            if answer.kind is AnswerKind.ACCEPTED:
                row.known, row.state, row.unclear_since_s = True, RowState.UNCLEAR, self._now()
                row.seen_elsewhere = None
            elif answer.kind is AnswerKind.REFUSED and not row.unanswered:
                said = answer.text or answer.error
                self._skip(row, f"the brokers refuse it: {said}", RowState.REFUSED)

    def _elect(self, rows: Iterable[Row]) -> bool:
        """Have preferred leaders lead that can. Returns: whether all of them do or cannot."""
        asked = [row for row in rows if row.elections < ELECTIONS and _is_led_by_another(row)]
        able = [row for row in asked if row.shown and row.after[0] in row.shown.in_sync]
        for first in range(0, len(able), MOST_ROWS):
            batch = able[first : first + MOST_ROWS]
            self._check_right()
            answers = self.mover.elect([row.place for row in batch])
            for row in batch:
                row.elections += 1
                answer = answers[row.place]
                total = len(self.rows.by_place)
                said = StepAnswered(Verb.ELECT, row.place[0], total, answer.kind, answer.text)
                self.observe(said)
        return not able

    def _now(self) -> float:
        return self.clock.monotonic()

    # -- the end ----------------------------------------------------------------------------------

    def _end(self, reading: MovesReading) -> float | None:
        """Take back what the run has set, as far as nothing in flight needs it.

        Returns: the seconds to wait before another look; None if it is done, or cannot be.
        """
        now = self._now()
        if self.ending_since_s is None:
            self.ending_since_s = now
        self.left = {}
        moving = self._list_moving()
        self._restore_insync(moving, reading)
        is_clear = self._remove_rate(moving, reading)
        if is_clear or moving:
            self._remove_lists(moving, reading)
        done = self.rows.list_in(RowState.DONE)
        if not self.gates or self.interrupted:
            is_clear = self._elect(done)
        if not self.left:
            self._find_behind(done)
        if not self.left and is_clear:
            return None
        waits = self.rows.foreign and not self.interrupted and not self._is_late()
        patience = now - self.ending_since_s < PATIENCE_S
        return WATCH_S if waits else VERIFY_S * 2 if patience else None

    def _is_late(self) -> bool:
        return self.deadline_s is not None and self._now() >= self.deadline_s

    def _restore_insync(self, moving: Sequence[Row], reading: MovesReading) -> None:
        """Restore min.insync.replicas of topics that have nothing in flight."""
        busy = {row.place[0] for row in moving}
        wanted = self._list_insync(moving, reading, ending=True)
        if due := {t: v for t, v in wanted.items() if self._is_due((t, MIN_INSYNC), v)}:
            self._configure({topic: {MIN_INSYNC: value} for topic, value in due.items()})
        topics = [t for t in self.moves.min_insync if t in reading.partitions and t not in busy]
        topics = [t for t in topics if t in self.topics]
        if topics:
            self._read_insync(topics)
        for topic in topics:
            if (
                self.insync_shown.get(topic)
                == str(self.moves.min_insync[topic])
                != self._restored(topic)
            ):
                self.left[topic] = f"{MIN_INSYNC} of {topic} is still lowered"

    def _remove_rate(self, moving: Sequence[Row], reading: MovesReading) -> bool:
        """Remove the rate if the run set it and nothing uses it. Returns: whether none is left."""
        if not self.owns_rate:
            return True
        if moving or (self.rate == 0 and self.rows.list_in(RowState.NOT_BEGUN)):
            return True  # it stays: for what is in flight, or as the pause of an operator
        if self.rows.foreign:
            self.left[""] = "the throttle rate stays, since somebody else moves replicas"
            return False
        if is_rate_gone(reading):
            return True
        if self._is_due(("", "rate"), None):
            self._write_rate(None)
        self.left[""] = "the throttle rate is still set"
        return False

    def _remove_lists(self, moving: Sequence[Row], reading: MovesReading) -> None:
        configs: dict[str, dict[str, str | None]] = {}
        for (topic, side), value in self._list_wanted(reading, moving).items():
            if all(row.state is RowState.GONE for row in self.rows.of_topics([topic])):
                continue
            self.left[topic] = f"throttle lists of {topic} are still set"
            if self._is_due((topic, side.list_key), value):
                configs.setdefault(topic, {})[side.list_key] = value
        if configs:
            self._configure(configs)
        if not self.left and self.configured:
            needed, ours = list_entries(moving), self._ours()
            for lists in self.mover.read_lists(sorted(self.configured)).values():
                for key, entries in read_lists(lists).items():
                    if entries & ours.get(key, frozenset()) - needed.get(key, frozenset()):
                        self.left[key[0]] = f"throttle lists of {key[0]} are still set"

    def _find_behind(self, done: Sequence[Row]) -> None:
        """Name topics of which a broker does not show the new rows yet."""
        fresh = [row for row in done if not row.was_done]
        names = sorted({row.place[0] for row in fresh})
        views = self.reader.read_views(names) if names else {}
        for row in fresh:
            topic, partition = row.place
            for broker, view in views.items():
                shown = view.get(topic)
                if shown is None or shown.assignment[partition : partition + 1] != (row.after,):
                    self.left[topic] = f"broker {broker} does not show the new rows of {topic} yet"

    def interrupt(self) -> None:
        """Begin nothing more, from now on."""
        if not self.interrupted:
            self._note(MovesNote.STOPPING, "interrupted: nothing more begins")
        self.interrupted = True

    def report(self) -> Applied:
        """Return the outcome of every topic, with a last look at the cluster if it answers."""
        with suppress(ClusterError, KeyboardInterrupt), keep_interrupts():
            self._read()
        is_late = self._is_late()
        reasons = list(self.gates)
        if self.interrupted and INTERRUPTED not in reasons:
            reasons.insert(0, INTERRUPTED)
        if is_late:
            reasons.append("--stop-after is over")
        if self.cause is not None:
            reasons.append(f"stopped, since {self.cause.findings[0].what}")
        reasons += sorted(set(self.blocked.values()) - set(reasons))
        outcomes = judge_topics(self.plan, self.rows, "; ".join(reasons), self.left)
        summary = self._summarise("; ".join(reasons))
        for text in summary.left:
            self._note(MovesNote.LEFT, text)
        return Applied(outcomes, cause=self.cause, moves=summary)

    def _summarise(self, reason: str) -> MovesSummary:
        states = count_states(self.rows)
        done = states[RowState.DONE]
        flying = states[RowState.UNDER_WAY] + states[RowState.UNCLEAR]
        otherwise = sum(states[state] for state in ENDED_OTHERWISE)
        waiting = len(self.rows.by_place) - done - flying - otherwise
        complete = not flying and not waiting
        left = tuple(text for _, text in sorted(self.left.items()))
        return MovesSummary(done, flying, waiting, otherwise, "" if complete else reason, left)

    # -- what is said -----------------------------------------------------------------------------

    def _skip(self, row: Row, text: str, state: RowState = RowState.ELSEWHERE) -> None:
        """Leave a row alone from now on, unless it is done or in flight."""
        if row.state in (RowState.DONE, *ENDED_OTHERWISE) or row.flight is not None:
            return
        row.end(state, text)
        self._note(MovesNote.SKIPPED, text, row)

    def _note(self, kind: MovesNote, text: str, row: Row | None = None) -> None:
        self.observe(MovesNoted(kind, text, *(row.place if row else (None, None))))

    def _count(self) -> str:
        states = count_states(self.rows)
        listed = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
        return f"{count(len(self.rows.by_place), 'partition')}: {listed}"

    def _watch(self, reading: MovesReading) -> None:
        """Measure bytes, say how far the run is, and name copies that stand still."""
        now = self._now()
        done_bytes = 0
        for row in self.rows:
            if not row.adding:
                continue
            size = find_size(row, reading, self.moves.forecast)
            self.total_bytes[row.place] = max(size, self.total_bytes.get(row.place, 0))
            total = self.total_bytes[row.place]
            if row.state is RowState.DONE:
                done_bytes += total * len(row.adding)
            elif row.state is RowState.UNDER_WAY:
                copied = (reading.sizes.get(b, {}).get(row.place, 0) for b in row.adding)
                done_bytes += sum(min(each, total) for each in copied)
        self._find_slow(reading, now)
        if self.watched_s is not None and now - self.watched_s < WATCH_S:
            return
        self.watched_s = now
        self.progress.append((now, done_bytes))
        while len(self.progress) > 2 and now - self.progress[1][0] >= RATE_WINDOW_S:
            self.progress.pop(0)
        speed = self._measure_rate()
        to_do = sum(self.total_bytes[r.place] * len(r.adding) for r in self.rows if r.adding)
        summary = self._summarise("; ".join(self.gates))
        self.observe(
            MovesWatched(
                summary.done,
                summary.in_flight,
                summary.waiting,
                summary.ended_otherwise,
                done_bytes,
                to_do,
                self.rate if self.owns_rate else self.moves.policy.rate_bytes_per_s,
                speed,
                (to_do - done_bytes) / speed if speed else None,
                summary.reason,
            )
        )

    def _measure_rate(self) -> int | None:
        """Return the bytes per second that were copied in the last half minute; None for none."""
        if len(self.progress) < 2:
            return None
        (then, before), (now, after) = self.progress[0], self.progress[-1]
        return max(0, int((after - before) / (now - then))) or None if now > then else None

    def _find_slow(self, reading: MovesReading, now: float) -> None:
        """Name the copies that got no byte for SLOW_S, once each, with the cause if it is seen."""
        flying = self.rows.list_in(RowState.UNDER_WAY)
        still: list[tuple[Row, int]] = []
        grown: dict[tuple[Place, int], tuple[int, float, bool]] = {}
        for row in flying:
            for broker in row.adding:
                if row.flight is not None and broker in row.flight.in_sync:
                    continue
                size = reading.sizes.get(broker, {}).get(row.place, 0)
                then, since, said = self.grown.get((row.place, broker), (-1, now, False))
                if size != then:
                    since, said = now, False
                if now - since >= SLOW_S and not said and self.rate != 0:
                    still.append((row, broker))
                    said = True
                grown[row.place, broker] = (size, since, said)
        self.grown = grown
        if not still:
            return
        causes = {
            ((move.reassignment.topic, move.reassignment.partition), copy.broker): copy.why
            for move in measure_moves(reading, self.last_reading).moves
            for copy in move.copies
        }
        for row, broker in still:
            why = causes.get((row.place, broker)) or "the cause is not visible"
            self._note(MovesNote.SLOW, f"no byte for 60 s to broker {broker}: {why}", row)


def _is_settling(row: Row, now_s: float) -> bool:
    """Return whether a broker may still show a row as it was before its reassignment ended."""
    if row.state is RowState.UNCLEAR:
        return True
    return row.done_s is not None and now_s - row.done_s < SETTLED_S


def _is_led_by_another(row: Row) -> bool:
    state = row.shown
    return state is not None and state.replicas == row.after and state.leader != row.after[0]


def _find_insync(topic: TopicState | None) -> str | None:
    return topic.config.get(MIN_INSYNC) if topic else None
