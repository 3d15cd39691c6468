"""Slow, stop, cancel and settle moves on a cluster: the wiring, the locks and the records."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from reconciler.api.auditing import Audit
from reconciler.errors import LockHeldError, keep_interrupts

if TYPE_CHECKING:
    from reconciler.api.records import RunRecord
    from reconciler.kafka.connection import Connection
    from reconciler.kafka.lock import Waiting
    from reconciler.model.moves import MovesReading
    from reconciler.model.plan import Plan
    from reconciler.model.throttles import Leftover
    from reconciler.moves.progress import MovesReport
    from reconciler.moves.running.cancel import Cancel, Cancelled
    from reconciler.moves.running.interventions import Settled
    from reconciler.run.ending import Ending
    from reconciler.run.ports import Lease


@dataclass(frozen=True, slots=True)
class Locking:
    """How the locks of a cluster are taken; a run takes none if `timeout_s` is None."""

    timeout_s: float | None = 15.0
    observe: Callable[[Waiting], None] = lambda _: None


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

    def set_rate(self, bytes_per_s: int, *, permanent: bool = False) -> tuple[MovesReading, bool]:
        """Set the cluster default of both rates, without a lock; see `interventions.set_rate`."""
        from reconciler.moves.running.interventions import set_rate

        return set_rate(self._mover, time, bytes_per_s, permanent=permanent)

    def begin_cancel(self, plan: Plan) -> Cancel:
        """Look where the rows of a plan are, and choose what a cancel does."""
        from reconciler.moves.running.cancel import Cancel

        cancel = Cancel(plan, self._reader, self._mover, time)
        cancel.look()
        return cancel

    def cancel(self, cancel: Cancel, locking: Locking) -> Cancelled:
        """Do what a cancel has chosen. The lock of a run of moves is taken if it is free."""
        from reconciler.moves.running.interventions import Leases

        with ExitStack() as locks:
            held = [locks.enter_context(self._lock(locking))]
            run = ""
            try:
                held.append(locks.enter_context(self._lock(locking, of_moves=True, waits=False)))
            except LockHeldError as error:
                run = error.findings[0].what
            return cancel.work(Leases(tuple(held)), run=run)

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
        throughout, the lock of apply while throttles are removed.
        """
        from reconciler.moves.running.interventions import Settling

        with self._lock(locking, of_moves=True) as lease:
            return Settling(
                self._reader,
                self._mover,
                time,
                observe,
                lease,
                partial(self._lock, locking),
                specified or {},
                stop_after_s,
            ).work()

    def remove(self, chosen: Sequence[Leftover], locking: Locking) -> tuple[Leftover, ...]:
        """Remove throttles that nothing uses, with the lock of apply alone.

        Returns: those that a broker still shows.
        """
        from reconciler.moves.running.interventions import remove_throttles

        with self._lock(locking) as lease:
            return remove_throttles(self._mover, time, lease, chosen)

    @contextmanager
    def _lock(
        self, locking: Locking, *, of_moves: bool = False, waits: bool = True
    ) -> Iterator[Lease]:
        from reconciler.run.ports import Unlocked

        if locking.timeout_s is None:
            yield Unlocked()
            return
        from reconciler.api.authors import find_author
        from reconciler.kafka.lock import Holder, hold_lock
        from reconciler.model.rights import GROUP, MOVES_GROUP

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
            ) as lease,
        ):
            yield lease
