"""The watch over copies: bytes, the measured rate, and stalled copies."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.model.cluster import Place, ReplicaPlace
from reconciler.model.moves import Forecast, MovesReading
from reconciler.moves.progress import measure_moves
from reconciler.moves.running.notes import Observe, note
from reconciler.moves.running.relocations import Relocations
from reconciler.moves.running.report import summarise
from reconciler.moves.running.rows import ENDED_OTHERWISE, Row, Rows, RowState
from reconciler.moves.running.window import find_size
from reconciler.run.events import MovesNote, MovesWatched

WATCH_S = 2.0
SLOW_S = 60.0
RATE_WINDOW_S = 30.0


@dataclass(frozen=True, slots=True)
class Standstill:
    """What stops a run from continuing, at the time of a reading.

    `reason` is "" for nothing. `begins_nothing`: what waits cannot begin now. `copies_nothing`: the
    rate is 0. `obstacles` are rows that can neither begin nor go on.
    """

    reason: str = ""
    begins_nothing: bool = False
    copies_nothing: bool = False
    obstacles: frozenset[Place] = frozenset()


@dataclass(slots=True)
class Watch:
    """Measures the copies of a run.

    `progress` has the time and the bytes done of the last half minute, `total_bytes` the size by
    partition; writes after its end do not count. `copied` has the bytes of each copy as its broker
    told them last, and `grown` its last size, since when it has that, and whether that was said;
    `moved` has the same of copies between log directories.
    """

    rows: Rows
    relocations: Relocations
    forecast: Forecast | None
    observe: Observe
    progress: list[tuple[float, int]] = field(default_factory=list)
    total_bytes: dict[Place, int] = field(default_factory=dict)
    copied: dict[tuple[Place, int], int] = field(default_factory=dict)
    grown: dict[tuple[Place, int], tuple[int, float, bool]] = field(default_factory=dict)
    moved: dict[ReplicaPlace, tuple[int, float, bool]] = field(default_factory=dict)
    watched_s: float | None = None

    def look(
        self,
        reading: MovesReading,
        last: MovesReading | None,
        now: float,
        *,
        rate: int | None,
        stands: Standstill,
    ) -> None:
        """Measure, name stalled copies, and report the progress of the run every WATCH_S.

        `last` is the reading before, and `rate` the rate in force, None for no limit.
        """
        done_bytes, left_bytes = self._measure_bytes(reading, stands)
        relocated, to_relocate, left = self.relocations.measure()
        done_bytes, left_bytes = done_bytes + relocated, left_bytes + left
        self._name_slow(reading, last, now, paused=stands.copies_nothing)
        self._name_slow_relocations(now)
        if self.watched_s is not None and now - self.watched_s < WATCH_S:
            return
        self.watched_s = now
        self.progress.append((now, done_bytes))
        while len(self.progress) > 2 and now - self.progress[1][0] >= RATE_WINDOW_S:
            self.progress.pop(0)
        speed = self.measure_rate()
        to_do = sum(self.total_bytes[r.place] * len(r.adding) for r in self.rows if r.adding)
        to_do += to_relocate
        summary = summarise([*self.rows, *self.relocations], "", {})
        waiting = (RowState.NOT_BEGUN, RowState.FOREIGN)
        waits = bool(self.rows.list_in(*waiting) or self.relocations.list_in(*waiting))
        no_time = stands.copies_nothing or (stands.begins_nothing and waits) or not left_bytes
        self.observe(
            MovesWatched(
                summary.done,
                summary.in_flight,
                summary.waiting,
                summary.ended_otherwise,
                done_bytes,
                to_do,
                rate,
                speed,
                None if no_time or not speed else left_bytes / speed,
                stands.reason,
            )
        )

    def _name_slow_relocations(self, now: float) -> None:
        """Name the copies between log directories that got no byte for SLOW_S, once each."""
        moved: dict[ReplicaPlace, tuple[int, float, bool]] = {}
        for each in self.relocations.list_in(RowState.UNDER_WAY):
            then, since, said = self.moved.get(each.key, (-1, now, False))
            if each.copied != then:
                since, said = now, False
            if now - since >= SLOW_S and not said and each.copied < each.size:
                said = True
                text = f"no byte for 60 s to {each.target} of broker {each.broker}"
                note(self.observe, MovesNote.SLOW, text, each)
            moved[each.key] = (each.copied, since, said)
        self.moved = moved

    def measure_rate(self) -> int | None:
        """Return the bytes per second that were copied in the last half minute; None for none."""
        if len(self.progress) < 2:
            return None
        (then, before), (now, after) = self.progress[0], self.progress[-1]
        return max(0, int((after - before) / (now - then))) or None if now > then else None

    def _measure_bytes(self, reading: MovesReading, stands: Standstill) -> tuple[int, int]:
        """Return the bytes that are copied, and those that are left of what can move."""
        done = left = 0
        for row in self.rows:
            if not row.adding:
                continue
            total = self.total_bytes.get(row.place, 0)
            if row.state is not RowState.DONE or row.place not in self.total_bytes:
                total = max(total, find_size(row, reading, self.forecast))
                self.total_bytes[row.place] = total
            copied = 0
            if row.state is RowState.DONE:
                copied = total * len(row.adding)
            elif row.state in (RowState.UNDER_WAY, RowState.UNCLEAR):
                copied = sum(min(self._find_copied(row, b, reading), total) for b in row.adding)
            done += copied
            if row.state not in ENDED_OTHERWISE and row.place not in stands.obstacles:
                left += total * len(row.adding) - copied
        return done, left

    def _find_copied(self, row: Row, broker: int, reading: MovesReading) -> int:
        """Return the bytes of a copy, as its broker tells now or told last."""
        if broker in reading.sizes:
            self.copied[row.place, broker] = reading.sizes[broker].get(row.place, 0)
        return self.copied.get((row.place, broker), 0)

    def _name_slow(
        self, reading: MovesReading, last: MovesReading | None, now: float, *, paused: bool
    ) -> None:
        """Name the copies that got no byte for SLOW_S, once each, with the cause if it is seen."""
        still: list[tuple[Row, int]] = []
        grown: dict[tuple[Place, int], tuple[int, float, bool]] = {}
        for row in self.rows.list_in(RowState.UNDER_WAY):
            for broker in row.adding:
                if row.flight is not None and broker in row.flight.in_sync:
                    continue
                size = reading.sizes.get(broker, {}).get(row.place, 0)
                then, since, said = self.grown.get((row.place, broker), (-1, now, False))
                if size != then:
                    since, said = now, False
                if now - since >= SLOW_S and not said and not paused:
                    still.append((row, broker))
                    said = True
                grown[row.place, broker] = (size, since, said)
        self.grown = grown
        if not still:
            return
        causes = {
            ((move.reassignment.topic, move.reassignment.partition), copy.broker): copy.why
            for move in measure_moves(reading, last).moves
            for copy in move.copies
        }
        for row, broker in still:
            why = causes.get((row.place, broker)) or "the cause is not visible"
            text = f"no byte for 60 s to broker {broker}: {why}"
            note(self.observe, MovesNote.SLOW, text, row)
