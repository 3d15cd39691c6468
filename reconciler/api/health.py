"""What a report of health needs of a cluster: its state, with what is in flight and its disks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.api.connections import find_cluster, open_connection, refuse_other_cluster
from reconciler.api.snapshots import read_snapshot

if TYPE_CHECKING:
    from reconciler.model.health import HealthReport
    from reconciler.spec.estate import Estate


def report_health(
    estate: Estate,
    cluster: str,
    *,
    bootstrap_servers: str | None = None,
    against: Path | None = None,
) -> HealthReport:
    """Read a cluster or a snapshot of it, and judge its health. A note says what is not known.

    Errors: as `read_cluster` and `read_snapshot`; UsageError for a snapshot with an address, or a
    cluster that the estate does not name. Cost: that of a snapshot, and a second request for each
    broker.
    """
    from reconciler.errors import UsageError
    from reconciler.model.health import HealthReport, judge_cluster
    from reconciler.model.moves import KEEP_FREE_PERCENT

    entry = find_cluster(estate, cluster)
    if against is not None and bootstrap_servers is not None:
        raise UsageError("--against reads a file; leave --bootstrap-servers out")
    if against is not None:
        from reconciler.diff.notes import assume_defaults
        from reconciler.errors import Finding, Severity

        what = "a snapshot does not say who leads, what is being moved, and what is throttled"
        note = Finding("snapshot-assumed", what, severity=Severity.NOTE)
        state = assume_defaults(entry, read_snapshot(against))
        state = replace(state, notes=(*state.notes, note))
    else:
        from reconciler.kafka.reader import KafkaReader

        with open_connection(estate, cluster, bootstrap_servers) as connection:
            reader = KafkaReader(connection)
            reader.check_rights([], for_apply=False)
            state = reader.read_fenced(reader.read_cluster())
            # The configs of topics, which are read, have their throttle lists.
            state = reader.read_moves(state, interval_s=0, lists=False)
    refuse_other_cluster(entry, state)
    keep_free = entry.moves.keep_free_percent if entry.moves else KEEP_FREE_PERCENT
    return HealthReport(cluster, state, judge_cluster(state, keep_free_percent=keep_free))
