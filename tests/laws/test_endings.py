"""Laws of an ending: exit code, last line, journal and audit record of a run say the same.

All combinations of outcomes, of what stopped the run, and of an audit topic that takes the record.
"""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from itertools import chain, combinations, product
from typing import TYPE_CHECKING, Any, cast

import pytest
from shorthand import cluster, plan, spec
from sizes import choose

from reconciler.api.auditing import Audit
from reconciler.apply import Applied, end_run
from reconciler.cli.apply import ApplyOptions, _apply
from reconciler.errors import (
    ClusterError,
    Finding,
    LockHeldError,
    LockLostError,
    ReconcilerError,
    RefusedPlanError,
    StalePlanError,
)
from reconciler.model import Outcome, OutcomeKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reconciler.kafka import Connection
    from reconciler.spec import Estate

PLAN = plan([spec(partitions=3, replication_factor=1)], cluster())
WELL = {OutcomeKind.DONE, OutcomeKind.ALREADY_DONE}
UNFINISHED = {OutcomeKind.IN_FLIGHT, OutcomeKind.WAITING}
LOST = Finding("audit-lost", "audit_topic audit does not take the record", "keep the record")
GONE = ClusterError([Finding("connect-lost", "no broker answers", "wait")])
UNSEATED = LockLostError([Finding("lock-lost", "the lock is lost", "plan again")])
KINDS = list(OutcomeKind)
MOST_KINDS = choose(3, len(KINDS))
SETS = list(
    chain.from_iterable(combinations(KINDS, size) for size in (*range(MOST_KINDS + 1), len(KINDS)))
)
"""The sets of kinds: every pair and triple, and all of them together; at length, every set."""


@dataclass
class Entry:
    audit_topic: str = "audit"


@dataclass
class Cluster:
    """The part of a connection that is asked for when a record is kept."""

    entry: Entry = field(default_factory=Entry)


class Run:
    """One run of the command line whose work ends as it is told, and all that it leaves behind."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.journal = directory / "journal.jsonl"
        self.monkeypatch = monkeypatch
        self.audited: list[dict[str, Any]] = []

    def end(self, applied: Applied | None, error: BaseException | None, *, kept: bool) -> Run:
        def write(_connection: object, _topic: str, _key: str, text: str) -> None:
            if not kept:
                raise ClusterError([LOST])
            self.audited.append(json.loads(text))

        def apply_plan(*_: object, record: Any, **__: object) -> Applied | None:
            audit = Audit(cast("Connection", Cluster()), record)
            with audit.keep_errors():
                if error is not None:
                    raise error
            audit.keep(end_run(applied))
            return applied

        self.monkeypatch.setattr("reconciler.kafka.writer.write_audit_record", write)
        self.monkeypatch.setattr("reconciler.api.apply_plan", apply_plan)
        self.journal.unlink(missing_ok=True)
        self.audited.clear()
        out, err = io.StringIO(), io.StringIO()
        asked = ApplyOptions(True, False, None, self.journal, None, None)
        with redirect_stdout(out), redirect_stderr(err):
            self.code = _apply(PLAN, cast("Estate", None), asked).exit_code
        self.last_line = out.getvalue().splitlines()[-1]
        self.err = err.getvalue()
        lines = [json.loads(line) for line in self.journal.read_text().splitlines()]
        self.record = lines[-1]
        self.said = [line for line in lines if line["type"] == "outcome"]
        return self


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(tmp_path, monkeypatch)


def every_end() -> Iterator[tuple[Applied | None, BaseException | None, bool]]:
    for kinds, interrupted, cause, kept in product(
        SETS, (False, True), (None, GONE, UNSEATED), (True, False)
    ):
        outcomes = tuple(Outcome(f"t{n}", kind, "why") for n, kind in enumerate(kinds))
        yield Applied(outcomes, interrupted, cause), None, kept
    finding = Finding("plan-stale", "it moved", "plan again")
    errors = (RefusedPlanError, StalePlanError, LockHeldError, LockLostError, ClusterError)
    ends = (*(kind([finding]) for kind in errors), KeyboardInterrupt())
    for error, kept in product(ends, (True, False)):
        yield None, error, kept
    yield None, ReconcilerError("odd"), True


def test_all_that_a_run_leaves_behind_says_the_same(run: Run) -> None:
    for applied, error, kept in every_end():
        run.end(applied, error, kept=kept)
        where = (applied, error, kept, run.last_line)
        ended = run.record["ended"]
        head = "" if ended == "done" else "Nothing to do." if ended == "nothing to do" else None
        assert run.last_line.startswith(f"{ended.capitalize()}. " if head is None else head), where
        counts = ", ".join(f"{n} {kind}" for kind, n in run.record["outcomes"].items())
        assert run.last_line.endswith(f"Applied: {counts}") or not counts, where
        assert {line["topic"]: line["kind"] for line in run.said} == run.record["topics"], where
        for audited in run.audited:
            same = ("ended", "error", "outcomes", "topics")
            assert {key: audited[key] for key in same} == {key: run.record[key] for key in same}, (
                where
            )
        assert ("error: " in run.err) == (run.record["error"] is not None), where
        assert run.record["error"] is None or run.record["error"] in run.err, where


def test_a_run_exits_0_only_if_everything_is_as_planned_and_nothing_went_wrong(run: Run) -> None:
    for applied, error, kept in every_end():
        run.end(applied, error, kept=kept)
        kinds = {outcome.kind for outcome in applied.outcomes} if applied else set()
        well = applied is not None and kinds <= WELL and not applied.interrupted
        well = well and applied is not None and applied.cause is None and kept
        where = (applied, error, kept, run.record["ended"])
        assert (run.code == 0) == well == (run.record["ended"] in ("done", "nothing to do")), where
        assert not (run.code == 0 and "error: " in run.err), where


def test_the_exit_code_says_who_was_interrupted_and_what_nobody_knows(run: Run) -> None:
    for applied, error, kept in every_end():
        run.end(applied, error, kept=kept)
        interrupted = applied.interrupted if applied else isinstance(error, KeyboardInterrupt)
        unknown = OutcomeKind.UNKNOWN in {o.kind for o in (applied.outcomes if applied else ())}
        expected = 130 if interrupted else 75 if unknown else run.code
        assert (run.code, run.code in (0, 1, 2, 75, 130)) == (expected, True), (
            applied,
            error,
            kept,
        )
        if unknown:
            assert "1 unknown" in run.last_line


def test_moves_that_go_on_are_said_before_what_failed(run: Run) -> None:
    for applied, error, kept in every_end():
        run.end(applied, error, kept=kept)
        kinds = {outcome.kind for outcome in applied.outcomes} if applied else set()
        other = applied is None or applied.interrupted or applied.cause is not None
        goes_on = not other and bool(kinds & UNFINISHED) and OutcomeKind.UNKNOWN not in kinds
        assert (run.code == 2) == goes_on == (run.record["ended"] == "unfinished"), (kinds, kept)


def test_a_lost_record_outweighs_success_alone(run: Run) -> None:
    for applied, error, kept in every_end():
        if kept:
            with_record = run.end(applied, error, kept=True).record["ended"]
            without = run.end(applied, error, kept=False).record["ended"]
            if isinstance(error, ReconcilerError) and not hasattr(error, "findings"):
                continue  # one that the audit topic is not asked to keep
            if with_record in ("done", "nothing to do"):
                assert without == "audit lost"
            else:
                assert without == with_record
