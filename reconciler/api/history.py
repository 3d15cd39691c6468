"""What earlier runs did: read from the audit topic of a cluster, or from a journal."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.kafka.connection import Connection
    from reconciler.planfile.history import JournalRun
    from reconciler.run.ending import Ending
    from reconciler.run.history import Run


class Records(NamedTuple):
    """The runs of a source, and how many records are of other programs or later versions."""

    runs: list[Run]
    unread: int = 0


def read_audit_runs(connection: Connection, since: datetime | None = None) -> Records:
    """Read the runs that the audit topic of a cluster holds. Errors: ClusterError.

    Cost: 0.2 s, and the records since then: about 1 KB for each run.
    """
    from reconciler.kafka.audit import read_audit_topic
    from reconciler.planfile.history import read_record

    found = [read_record(value) for value in read_audit_topic(connection, since)]
    runs = [run for run in found if run is not None]
    return Records(runs, len(found) - len(runs))


def read_journal_runs(file: Path) -> Records:
    """Read the runs of a journal. Errors: UsageError that names the line."""
    return Records([each.run for each in _read_journal(file)])


class LastRun(NamedTuple):
    """The last run of apply on a cluster. `duration_s` is None if it was killed."""

    ending: Ending
    duration_s: float | None = None


def read_last_run(file: Path, cluster: str) -> LastRun | None:
    """Read the last run of apply on a cluster; None if the journal has none.

    A run without a last line ended as unknown. Errors: UsageError that names the line.
    """
    from reconciler.run.ending import Ended, Ending
    from reconciler.run.history import APPLY

    found = [
        each
        for each in _read_journal(file)
        if (each.run.cluster, each.run.verb) == (cluster, APPLY)
    ]
    if not found:
        return None
    run, outcomes = max(found, key=lambda each: each.run.started)
    if run.ended is None:
        why = "the journal has no last line: the run was killed; run the same command again"
        return LastRun(Ending(Ended.UNKNOWN, error=why))
    error = run.error or (run.moves or {}).get("reason")
    return LastRun(Ending(run.ended, outcomes, error), run.duration_s)


def _read_journal(file: Path) -> list[JournalRun]:
    from reconciler.planfile.history import JournalError, read_journal

    try:
        text = file.read_text(encoding="utf-8")
        return read_journal(line for line in text.split("\n") if line)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not a journal of apply: it is not UTF-8") from error
    except JournalError as error:
        raise UsageError(f"{file}:{error.line}: this is no journal of apply: {error}") from error
