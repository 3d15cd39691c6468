"""A run of moves: read, judge, and do the first thing that is missing, until nothing is.

Each step starts from a new reading and not from what the step before intended. So a run that
follows a killed one, an answer that is lost, and a request that is carried out late need no code
of their own. Kafka holds what is in flight and its throttles; the plan holds the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace

from reconciler.diff.guards import list_refusals
from reconciler.errors import (
    ClusterError,
    LockHeldError,
    LockLostError,
    RefusedPlanError,
    StalePlanError,
    keep_interrupts,
)
from reconciler.model.cluster import AnyPlace, ClusterState, Place
from reconciler.model.moves import MIN_INSYNC, MovesReading, PlannedMoves
from reconciler.model.plan import Plan, PlannedTopic
from reconciler.moves.running.directory_rate import DirectoryThrottle, judge_directory_rates
from reconciler.moves.running.drains import Drains
from reconciler.moves.running.gates import INTERRUPTED, Gates
from reconciler.moves.running.health import Health, list_required
from reconciler.moves.running.insync import MinInsync
from reconciler.moves.running.notes import Observe, note
from reconciler.moves.running.relocations import Relocation, Relocations
from reconciler.moves.running.report import (
    describe,
    judge_topics,
    name_behind,
    summarise,
)
from reconciler.moves.running.rows import Row, Rows, RowState
from reconciler.moves.running.start import (
    begin_relocations,
    check_limits,
    check_visible,
    find_moved_racks,
    find_overriding,
    skip_moved_racks,
    skip_throttled_by_others,
)
from reconciler.moves.running.throttle import Throttles
from reconciler.moves.running.watch import WATCH_S, Standstill, Watch
from reconciler.moves.running.window import (
    BLOCKED_S,
    Blocked,
    Limits,
    Window,
    choose_rows,
    explain,
    find_size,
    find_stuck,
)
from reconciler.moves.running.writes import Writes
from reconciler.run.checks import find_other_cluster
from reconciler.run.ending import Applied
from reconciler.run.events import MovesNote
from reconciler.run.ports import Clock, ClusterMover, ClusterReader, Lease, Unlocked

VERIFY_S = 0.5

UNREADY_S = 10.0
"""How long brokers usually take at most to show throttles and a cordon."""

SILENT_S = 60.0
DOUBT_S = 60.0
"""How long a run that is to end waits for requests without an answer to show an effect."""

CLOSED = "the window of moves is over: nothing more begins"

PATIENCE_S = 120.0
"""How long a run tries to clean up, once nothing else is left to do."""


def run_moves(  # noqa: PLR0913 - what a run may use and do is handed to it
    plan: Plan,
    reader: ClusterReader,
    mover: ClusterMover,
    clock: Clock,
    observe: Observe = lambda _: None,
    *,
    lease: Lease | None = None,
    writing: Callable[[], AbstractContextManager[Lease | None]] = nullcontext,
    stop_after_s: float | None = None,
    begin_for_s: float | None = None,
    skip_refused: bool = False,
) -> Applied:
    """Move the replicas of a plan of moves, a few at a time, and leave no throttle behind.

    `lease` is the lock of moves; it is checked before every write, and without it nothing is
    written, not even to remove a throttle. `writing` holds the lock of applies while something is
    written. After `stop_after_s` nothing is in flight that was not estimated to end before; what is
    still in flight keeps its throttles. After `begin_for_s` nothing begins, and what is in
    flight is waited for.

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
    deadline_s = None if stop_after_s is None else clock.monotonic() + stop_after_s
    closes_s = None if begin_for_s is None else clock.monotonic() + begin_for_s
    state = reader.read_cluster()
    if moved := list(find_other_cluster(plan, state)):
        raise StalePlanError(moved)

    rows, relocations = Rows.of_plan(plan), Relocations.of_plan(plan)
    by_name = {topic.name: topic for topic in plan.topics}
    names = [*(name for name, _ in rows.by_place), *sorted(relocations.topics)]
    topics = {name: by_name[name] for name in names}
    min_insync, least = list_required(state, moves)
    drained = frozenset(drain.broker for drain in moves.drains)
    writes = Writes(
        topics, rows, relocations, reader, mover, clock, observe, lease or Unlocked(), writing
    )
    policy = moves.policy
    run = _Run(
        plan,
        moves,
        topics,
        reader,
        mover,
        clock,
        observe,
        deadline_s,
        closes_s,
        rows,
        relocations,
        writes,
        Drains(moves.drains, mover, writes, observe),
        Throttles(policy.rate_bytes_per_s, rows, mover, writes, observe, policy.unthrottled),
        DirectoryThrottle(None if policy.unthrottled else policy.rate_bytes_per_s, mover, writes),
        MinInsync(moves.min_insync, least, topics, rows, reader, writes),
        Gates(rows, Health(min_insync, least, drained), observe),
        Watch(rows, relocations, moves.forecast, observe),
        Blocked(rows, observe),
    )
    run.begin(state)
    for _ in range(2):
        try:
            with keep_interrupts():
                run.work()
            break
        except KeyboardInterrupt:
            run.interrupt()
        except ClusterError as error:
            if not writes.has_written:
                raise
            run.cause = error
            break
    return run.report()


@dataclass(slots=True)
class _Run:
    """One run of a plan of moves. What it keeps only saves requests, or belongs to its report.

    `topics` has those of the plan that have rows. `prepared` are the rows that were chosen last,
    and whose throttles are set; `unready` says what they wait for. `left` says what is not taken
    back yet, by topic; "" is the cluster.
    """

    plan: Plan
    moves: PlannedMoves
    topics: Mapping[str, PlannedTopic]
    reader: ClusterReader
    mover: ClusterMover
    clock: Clock
    observe: Observe
    deadline_s: float | None
    closes_s: float | None
    rows: Rows
    relocations: Relocations
    writes: Writes
    drains: Drains
    throttles: Throttles
    directory_throttle: DirectoryThrottle
    insync: MinInsync
    gates: Gates
    watch: Watch
    blocked: Blocked
    reading: MovesReading | None = None
    last_reading: MovesReading | None = None
    silent_since_s: float | None = None
    ending_since_s: float | None = None
    interrupted: bool = False
    cause: ClusterError | None = None
    prepared: frozenset[Place] = frozenset()
    unready: str = ""
    unready_since_s: float = 0.0
    said_unready: bool = False
    left: dict[str, str] = field(default_factory=dict)

    def begin(self, state: ClusterState) -> None:
        """Read the moves and judge the plan. Errors: StalePlanError, ClusterError."""
        reading = self._read()
        check_visible(reading)
        self.writes.skip_replaced(self.topics)
        self.insync.check(state, self.observe)
        for row in self.rows:
            row.was_done = row.state is RowState.DONE
        skip_throttled_by_others(self.rows, reading, self.observe)
        if not self.throttles.take_over(reading):
            check_limits(self.rows, self.plan, self.moves, self.throttles, reading)
            self.throttles.is_begun = True
        begin_relocations(self.relocations, self.moves, reading)
        note(self.observe, MovesNote.STARTED, describe(self.rows, self.relocations))

    # -- the loop ---------------------------------------------------------------------------------

    def work(self) -> None:
        """Take steps until the run is over. Errors: ClusterError if it must stop at once."""
        while True:
            try:
                with self.writes.begin_step():
                    pause_s = self._step()
                self.silent_since_s = None
            except LockLostError:
                raise
            except (LockHeldError, ClusterError) as error:
                pause_s = self._wait_out(error)
            if pause_s is None:
                return
            self.clock.sleep(pause_s)

    def _wait_out(self, error: LockHeldError | ClusterError) -> float:
        """Wait for a cluster that does not answer, or for another apply. Errors: that one."""
        now = self.clock.monotonic()
        if isinstance(error, LockHeldError):
            note(self.observe, MovesNote.BLOCKED, error.findings[0].what)
            late = self.deadline_s is not None and now > self.deadline_s + PATIENCE_S
            if late or self.interrupted:
                raise ClusterError(error.findings) from error
            return WATCH_S
        if self.silent_since_s is None:
            self.silent_since_s = now
            note(self.observe, MovesNote.SILENT, error.findings[0].what)
        if now - self.silent_since_s >= SILENT_S:
            raise error
        return WATCH_S

    def _step(self) -> float | None:
        """Take one step. Returns: the seconds to wait before the next; None if the run is over.

        In order; nothing later is done while something earlier is not shown by every broker.

        | missing                                                     | done                      |
        |-------------------------------------------------------------|---------------------------|
        | the cordon of a broker that is drained                      | set, and read back        |
        | a rate, lists and min.insync.replicas for what shall begin  | set, and read back        |
        | rows that have room                                         | sent, 500 per request     |
        | replicas that have room in another log directory            | sent to their brokers     |
        | nothing can begin, nothing in flight is worth a wait        | unthrottled, then elected |
        """
        reading = self._read()
        now = self.clock.monotonic()
        moved = find_moved_racks(self.rows, self.plan.brokers, reading)
        skip_moved_racks(self.rows, moved, self.observe)
        self.throttles.adopt_rate(reading)
        rate = self.throttles.rate
        busy = self.rows.find_busy()
        slowed = self.throttles.find_slowed(reading) if busy else []
        throttles = [
            *slowed,
            *find_overriding(reading, self.moves, busy, self.throttles.allowed),
            *judge_directory_rates(
                reading,
                self.moves,
                {each.broker for each in self.relocations.list_in(RowState.NOT_BEGUN)},
            ),
        ]
        self.gates.check(reading, now, rate=rate, throttles=throttles, interrupted=self.interrupted)
        ends = self.interrupted or self._is_late() or self._is_closed()
        may_begin = ends or self.drains.cordon(reading, now)
        chosen = self._choose(reading) if may_begin else []
        relocating = self._choose_relocations(reading) if may_begin else []
        self.watch.look(
            reading,
            self.last_reading,
            now,
            rate=self.throttles.limit,
            stands=self._explain(copies_nothing=rate == 0),
        )
        if not may_begin:
            self._note_unready("a broker does not show its cordon", now)
            return VERIFY_S
        if self._is_over([*chosen, *relocating]):
            return self._end(reading)
        self.ending_since_s = None
        if slowed and not chosen and not self._list_moving():
            self.throttles.lift(reading)
        self._keep_throttled(reading, chosen)
        unready = self._name_unready(reading, chosen)
        if relocating or self.relocations.list_in(RowState.UNDER_WAY):
            self.directory_throttle.keep(reading)
        if relocating and not unready:
            brokers = {each.broker for each in relocating}
            unready = self.directory_throttle.name_unready(reading, brokers)
        self._note_unready(unready, now)
        if chosen and not unready:
            self.writes.send(chosen)
        if relocating and not unready:
            self.writes.relocate(relocating)
        self.writes.elect([row for row in self.rows.list_in(RowState.DONE) if row.is_reorder])
        unsettled = bool(chosen or relocating) or bool(self.rows.list_in(RowState.UNCLEAR))
        return VERIFY_S if unsettled else WATCH_S

    def _explain(self, *, copies_nothing: bool) -> Standstill:
        """Explain why rows do not begin or continue, and at the end what the run waits for."""
        reasons = [*self.gates.reasons, *([CLOSED] if self._is_closed() else [])]
        if self.unready and self.clock.monotonic() - self.unready_since_s >= UNREADY_S:
            reasons.append(self.unready)
        begins_nothing = bool(reasons)
        obstacles = self.blocked.obstacles
        reasons += explain([*obstacles.values(), *self.relocations.obstacles.values()])
        if self.ending_since_s is not None:
            reasons += sorted(set(self.left.values()))
        return Standstill("; ".join(reasons), begins_nothing, copies_nothing, frozenset(obstacles))

    def _note_unready(self, text: str, now: float) -> None:
        """Remember what rows that were chosen wait for, and say it once if that takes long."""
        if not text:
            self.unready = ""
            return
        if not self.unready:
            self.unready_since_s, self.said_unready = now, False
        self.unready = text
        if not self.said_unready and now - self.unready_since_s >= UNREADY_S:
            self.said_unready = True
            note(self.observe, MovesNote.BLOCKED, f"nothing new begins: {text}")

    def _read(self) -> MovesReading:
        """Read the cluster and judge every row. Errors: ClusterError."""
        reading = self.mover.read(list(self.topics))
        now = self.clock.monotonic()
        self.last_reading, self.reading = self.reading, reading
        self.rows.update(reading, now)
        for each in self.relocations.update(reading, now):
            note(self.observe, MovesNote.SKIPPED, each.text, each)
        names = {row.place[0] for row in self.rows.list_in(RowState.UNCLEAR)}
        if names := names - self.writes.skip_replaced(names):
            self.rows.resolve(self.reader.read_views(names), now)
            for row in self.rows.given_up:
                note(self.observe, MovesNote.SKIPPED, row.text, row)
            self.rows.given_up.clear()
        return reading

    # -- what begins ------------------------------------------------------------------------------

    def _choose(self, reading: MovesReading) -> list[Row]:
        """Choose what begins now. Rows in doubt are sent again: the same target changes nothing."""
        window = Window(self.moves.policy, self.throttles.measure_others(reading))
        forecast = self.moves.forecast
        doubtful = [row for row in self.rows if row.in_doubt]
        stuck = find_stuck(self.rows.list_in(RowState.UNDER_WAY), reading)
        for row in self._list_moving():
            size = find_size(row, reading, forecast)
            window.add(row, size, reading, stuck=row.place in stuck)
        waiting = [row for row in self.rows.list_in(RowState.NOT_BEGUN) if not row.in_doubt]
        left_s = None if self.deadline_s is None else self.deadline_s - self.clock.monotonic()
        rate = self.throttles.limit or self.throttles.policy_rate or self.watch.measure_rate()
        limits = Limits(rate, left_s, self.gates.health)
        chosen, blocked = choose_rows(waiting, window, reading, forecast, limits, self.prepared)
        if self.gates.reasons or self._is_closed() or (left_s is not None and left_s <= 0):
            chosen = []
        self.blocked.say_full(window.full)
        self.prepared = frozenset(row.place for row in chosen)
        self.blocked.update(blocked, stuck, self.clock.monotonic())
        return [] if self.interrupted else [*doubtful, *chosen]

    def _choose_relocations(self, reading: MovesReading) -> list[Relocation]:
        """Choose the replicas that begin now to move between log directories."""
        now = self.clock.monotonic()
        left_s = None if self.deadline_s is None else self.deadline_s - now
        brokers = {each.broker for each in self.relocations}
        rate = self.directory_throttle.find_limit(reading, brokers)
        chosen = self.relocations.choose(reading, now, rate=rate, left_s=left_s)
        is_over = self.interrupted or self._is_closed() or (left_s is not None and left_s <= 0)
        return [] if self.gates.reasons or is_over else chosen

    def _list_moving(self) -> list[Row]:
        """List the rows whose throttles stay: in flight, perhaps just ended, or begun later."""
        return [row for row in self.rows if row.may_copy]

    def _keep_throttled(self, reading: MovesReading, chosen: Sequence[Row]) -> None:
        """Set the rate, lists and min.insync.replicas for what is in flight and shall begin."""
        rows = [*self._list_moving(), *chosen]
        if not rows:
            return
        configs = self.throttles.list_due(reading, rows)
        values = self.insync.list_due(rows, reading)
        for topic, value in values.items():
            configs.setdefault(topic, {})[MIN_INSYNC] = value
        if any(row.adding for row in rows):
            self.throttles.keep_rate(reading)
        if configs:
            self.insync.take_accepted(values, self.writes.configure(configs))

    def _name_unready(self, reading: MovesReading, chosen: Sequence[Row]) -> str:
        """Say what is not shown by every living broker yet; empty if rows may begin."""
        copying = [row for row in chosen if row.adding]
        if not copying:
            return ""
        return (
            self.throttles.name_unready_rate(reading)
            or self.insync.name_unready(sorted({row.place[0] for row in copying}))
            or self.throttles.name_unready_lists(reading, copying)
        )

    # -- the end ----------------------------------------------------------------------------------

    def _is_over(self, chosen: Collection[Row | Relocation]) -> bool:
        """Return whether nothing can begin, and nothing that is in flight is worth waiting for."""
        now = self.clock.monotonic()
        if self._is_late():
            return True
        if self.rows.list_in(RowState.UNCLEAR):
            return False
        doubtful = [row for row in (*self.rows, *self.relocations) if row.in_doubt]
        flying = self.rows.list_in(RowState.UNDER_WAY)
        relocated = self.relocations.list_in(RowState.UNDER_WAY)
        if self.interrupted or self._is_closed():
            nothing_flies = not flying and not relocated
            return nothing_flies and all(now - row.asked_s >= DOUBT_S for row in doubtful)
        waiting = self.rows.list_in(RowState.NOT_BEGUN, RowState.FOREIGN)
        later = self.relocations.list_in(RowState.NOT_BEGUN, RowState.FOREIGN)
        if not (flying or waiting or relocated or later):
            return True
        foreign = (
            *self.rows.list_in(RowState.FOREIGN),
            *self.relocations.list_in(RowState.FOREIGN),
        )
        if chosen or foreign:
            return False
        if (waiting or later) and self.gates.reasons:  # a pause may end
            return False
        without_progress = self.relocations.cannot_progress(now, BLOCKED_S)
        return without_progress and self.blocked.cannot_progress(waiting, flying, now)

    def _end(self, reading: MovesReading) -> float | None:
        """Take back what the run has set, as far as nothing in flight needs it.

        Returns: the seconds to wait before another look; None if it is done, or cannot be.
        """
        now = self.clock.monotonic()
        if self.ending_since_s is None:
            self.ending_since_s = now
        # Filled bit by bit: the report needs it even if a write fails in between.
        self.left = {}
        moving = self._list_moving()
        self.insync.restore(moving, reading, self.left)
        is_clear = self.throttles.remove_rate(moving, reading, self.left)
        if self.relocations.by_key:
            is_clear &= self.directory_throttle.remove(reading, self.left)
        if is_clear or moving:
            self.throttles.remove_lists(moving, reading, self.left)
        done = self.rows.list_in(RowState.DONE)
        if not self.gates.reasons or self.interrupted:
            is_clear = self.writes.elect(done)
        if not self.left:
            self.left |= name_behind(done, self.reader)
        gone = self.rows.list_in(RowState.GONE)
        if not self.left and len(done) + len(gone) == len(self.rows.by_place):
            self.drains.verify(reading, self.left)
        if not self.left and is_clear:
            return None
        waits = self.rows.foreign and not self.interrupted and not self._is_late()
        patience = now - self.ending_since_s < PATIENCE_S
        return WATCH_S if waits else VERIFY_S * 2 if patience else None

    def _is_late(self) -> bool:
        return self.deadline_s is not None and self.clock.monotonic() >= self.deadline_s

    def _is_closed(self) -> bool:
        return self.closes_s is not None and self.clock.monotonic() >= self.closes_s

    def _list_obstacles(self) -> dict[AnyPlace, str]:
        """Say why rows do not begin or go on as of the last reading, by place."""
        obstacles: dict[AnyPlace, str] = dict(self.relocations.obstacles.items())
        obstacles |= {each.key: each.text for each in self.relocations.list_in(RowState.FOREIGN)}
        for row in self.rows:
            why = ""
            if row.state is RowState.NOT_BEGUN:
                why = self.blocked.reasons.get(row.place, "")
            elif row.state is RowState.FOREIGN:
                why = "another tool or run moves it"
            elif row.state is RowState.UNCLEAR and row.has_ended:
                now = f"shown on brokers {list(row.shown.replicas)}" if row.shown else ""
                why = f"it was as planned, and is {now or 'not shown any more'}"
            if why:
                obstacles[row.place] = why
        if self.reading is not None:
            stuck = find_stuck(self.rows.list_in(RowState.UNDER_WAY), self.reading)
            obstacles.update(stuck.items())
        return obstacles

    def interrupt(self) -> None:
        """Begin nothing more, from now on."""
        if not self.interrupted:
            note(self.observe, MovesNote.STOPPING, "interrupted: nothing more begins")
        self.interrupted = True

    def report(self) -> Applied:
        """Return the outcome of every topic, with a last look at the cluster if it answers."""
        with suppress(ClusterError, KeyboardInterrupt), keep_interrupts():
            self._read()
            self.writes.skip_replaced(self.topics)
        reasons = list(self.gates.reasons)
        if self.interrupted and INTERRUPTED not in reasons:
            reasons.insert(0, INTERRUPTED)
        if self._is_late():
            reasons.append("--stop-after is over")
        items = [*self.rows, *self.relocations]
        if self._is_closed() and any(item.state is RowState.NOT_BEGUN for item in items):
            reasons.append(CLOSED)
        if self.cause is not None:
            reasons.append(f"stopped, since {self.cause.findings[0].what}")
        if self.unready and (self.prepared or self.relocations.by_key):
            reasons.append(self.unready)
        obstacles = self._list_obstacles()
        outcomes = judge_topics(self.plan, items, "; ".join(reasons), obstacles, self.left)
        reason = "; ".join([*reasons, *explain(obstacles.values())])
        uncordoned = self.drains.name_uncordoned(self.reading) if self.reading else {}
        summary = summarise(items, reason, {**self.left, **uncordoned})
        cordoned = self.drains.list_cordoned(self.reading) if self.reading else ()
        emptied = tuple(sorted(self.drains.empty))
        summary = replace(summary, cordoned=tuple(cordoned), emptied=emptied)
        for text in summary.left:
            note(self.observe, MovesNote.LEFT, text)
        return Applied(outcomes, cause=self.cause, moves=summary)
