"""The audit topic of a cluster: the last line of each record goes there, if there is one."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reconciler.errors import AuditError, ClusterError, Finding, FindingsError

if TYPE_CHECKING:
    from reconciler.api.records import RunRecord
    from reconciler.kafka.connection import Connection
    from reconciler.run.ending import Ending


class Audit:
    """Keeps the record of one run in the audit topic of its cluster."""

    def __init__(self, connection: Connection, record: RunRecord) -> None:
        self._connection = connection
        self._topic = connection.entry.audit_topic
        self._record = record
        self._kept = False

    def check(self, created: Collection[str]) -> None:
        """Refuse the run if the audit topic would not take its record. Errors: ClusterError.

        In: the topics that the run creates. If the audit topic is one of them, it need not exist.
        """
        if self._topic is None:
            return
        from reconciler.kafka.writer import check_audit_topic

        check_audit_topic(self._connection, self._topic, planned=self._topic in created)

    @contextmanager
    def keep_errors(self) -> Iterator[None]:
        """Write the record if the block ends with an error. Errors: that one, or AuditError."""
        from reconciler.run.ending import end_run

        try:
            yield
        except (FindingsError, KeyboardInterrupt) as error:
            self.keep(end_run(error=error), error)
            raise

    def keep(self, ending: Ending, error: BaseException | None = None) -> None:
        """Write the record of a run that is over, by an error or not. Errors: AuditError."""
        if self._topic is None:
            return
        from reconciler.kafka.writer import write_audit_record

        text = self._write(ending)
        try:
            write_audit_record(self._connection, self._topic, self._record.cluster, text)
        except ClusterError as lost:
            raise self._lose(ending, error, lost.findings) from error
        self._kept = True

    def give_up(self, ending: Ending) -> None:
        """Stop waiting for the audit topic, after an interrupt. Errors: AuditError if it has no
        record.
        """
        if self._topic is None or self._kept:
            return
        from reconciler.kafka.writer import KEEP_PRINTED

        what = f"interrupted before audit_topic {self._topic} had the record of this run"
        raise self._lose(ending, None, [Finding("audit-lost", what, KEEP_PRINTED)])

    def _lose(
        self, ending: Ending, error: BaseException | None, lost: Sequence[Finding]
    ) -> AuditError:
        from reconciler.run.ending import end_run

        findings = error.findings if isinstance(error, FindingsError) else ()
        failure = AuditError([*findings, *lost], ending)
        failure.__cause__ = error
        # Written again, because the record must also show that it was lost.
        failure.record = self._write(end_run(error=failure))
        return failure

    def _write(self, ending: Ending) -> str:
        return json.dumps(self._record.end(ending), ensure_ascii=False)
