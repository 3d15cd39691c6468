"""What earlier runs did: read from the audit topic of a cluster, or from a journal."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.kafka.connection import Connection
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
    from reconciler.planfile.history import JournalError, read_journal

    try:
        text = file.read_text(encoding="utf-8")
        return Records(read_journal(line for line in text.split("\n") if line))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not a journal of apply: it is not UTF-8") from error
    except JournalError as error:
        raise UsageError(f"{file}:{error.line}: this is no journal of apply: {error}") from error
