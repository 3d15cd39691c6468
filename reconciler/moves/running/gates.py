"""The reasons for which a run of moves begins nothing now, and what is said when they change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.errors import Finding
from reconciler.model.cluster import Place
from reconciler.model.moves import MovesReading
from reconciler.moves.running.health import Health
from reconciler.moves.running.notes import Observe, note
from reconciler.moves.running.rows import SETTLED_S, Row, Rows, RowState
from reconciler.run.events import MovesNote

INTERRUPTED = "interrupted"


@dataclass(slots=True)
class Gates:
    """Finds the reasons in each reading. `reasons` has those of the last one."""

    rows: Rows
    health: Health
    observe: Observe
    reasons: tuple[str, ...] = ()

    def check(
        self,
        reading: MovesReading,
        now: float,
        *,
        rate: int | None,
        throttles: Iterable[Finding],
        interrupted: bool,
    ) -> None:
        """Find the reasons. `rate` is the default rate in force, 0 for a pause.

        `throttles` are those of others for which the plan would be refused at the start: rates of
        single brokers, which neither the rate of the run nor a pause reaches, and lists that the
        rate slows.
        """
        found = [INTERRUPTED] if interrupted else []
        if rate == 0:
            found.append("paused: the throttle rate is 0")
        found += [f"{each.what} ({each.way_out})" for each in throttles]
        if foreign := self.rows.foreign:
            named = f"{foreign[0].topic} partition {foreign[0].partition}"
            more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
            found.append(f"another tool or run moves {named}{more}")
        moving = {(each.topic, each.partition) for each in reading.reassignments}
        moving |= {row.place for row in self.rows if _is_settling(row, now)}
        found += self.health.check(reading, moving, self._list_leaving(reading))
        reasons = tuple(found)
        if reasons and reasons != self.reasons:
            text = f"nothing new begins: {'; '.join(reasons)}"
            note(self.observe, MovesNote.PAUSED, text)
        elif self.reasons and not reasons:
            note(self.observe, MovesNote.RESUMED, "the reasons for the pause are gone")
        self.reasons = reasons

    def _list_leaving(self, reading: MovesReading) -> dict[Place, set[int]]:
        """List the replicas that the plan takes off partitions, and that need not be in sync.

        Of a row in flight only those of dead brokers: if a living one falls behind while it is
        copied, less should be copied at one time.
        """
        alive = {broker.id for broker in reading.brokers if broker.alive}
        leaving = {}
        for row in self.rows.list_in(RowState.NOT_BEGUN, RowState.UNDER_WAY, RowState.UNCLEAR):
            left = set(row.before).difference(row.after)
            leaving[row.place] = left if row.state is RowState.NOT_BEGUN else left - alive
        return leaving


def _is_settling(row: Row, now_s: float) -> bool:
    """Return whether a broker may still show a row as it was before its reassignment ended."""
    if row.state is RowState.UNCLEAR:
        return True
    return row.done_s is not None and now_s - row.done_s < SETTLED_S
