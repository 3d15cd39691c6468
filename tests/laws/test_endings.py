"""Laws of an ending: exit code, last line, journal and audit record of a run say the same.

All combinations of outcomes, of what stopped the run, and of an audit topic that takes the record.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from itertools import chain, combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from shorthand import cluster, plan, spec
from sizes import choose

from reconciler.api.auditing import Audit
from reconciler.cli.apply import ApplyOptions, _apply
from reconciler.errors import (
    ClusterError,
    Finding,
    LockHeldError,
    LockLostError,
    OutdatedPlanError,
    ReconcilerError,
    RefusedPlanError,
    StalePlanError,
)
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.run.ending import Applied, end_run
from reconciler.spec.estate import Estate

if TYPE_CHECKING:
    from reconciler.kafka.connection import Connection

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


@dataclass(frozen=True)
class Ending:
    """How a run was made to end, and all that it left behind."""

    applied: Applied | None
    error: BaseException | None
    kept: bool
    code: int
    last_line: str
    err: str
    record: dict[str, Any]
    said: tuple[dict[str, Any], ...]
    audited: tuple[dict[str, Any], ...]

    @property
    def where(self) -> object:
        return self.applied, self.error, self.kept, self.last_line

    @property
    def kinds(self) -> set[OutcomeKind]:
        return {outcome.kind for outcome in self.applied.outcomes} if self.applied else set()


def end(
    journal: Path, applied: Applied | None, error: BaseException | None, *, kept: bool
) -> Ending:
    """Run the command line on work that ends like this."""
    audited = []

    def write(_connection: object, _topic: str, _key: str, text: str) -> None:
        if not kept:
            raise ClusterError([LOST])
        audited.append(json.loads(text))

    def apply_plan(*_: object, record: Any, **__: object) -> Applied | None:
        audit = Audit(cast("Connection", Cluster()), record)
        with audit.keep_errors():
            if error is not None:
                raise error
        audit.keep(end_run(applied))
        return applied

    out, err = io.StringIO(), io.StringIO()
    asked = ApplyOptions(True, False, None, journal, None, None)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr("reconciler.kafka.writer.write_audit_record", write)
        patch.setattr("reconciler.cli.apply.apply_plan", apply_plan)
        code = _apply(PLAN, cast("Estate", None), asked).exit_code
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    said = tuple(line for line in lines if line["type"] == "outcome")
    last_line = out.getvalue().splitlines()[-1]
    return Ending(
        applied, error, kept, code, last_line, err.getvalue(), lines[-1], said, tuple(audited)
    )


def every_end() -> Iterator[tuple[Applied | None, BaseException | None, bool]]:
    for kinds, interrupted, cause, kept in product(
        SETS, (False, True), (None, GONE, UNSEATED), (True, False)
    ):
        outcomes = tuple(Outcome(f"t{n}", kind, "why") for n, kind in enumerate(kinds))
        yield Applied(outcomes, interrupted, cause), None, kept
    finding = Finding("plan-stale", "it moved", "plan again")
    stopped = (RefusedPlanError, StalePlanError, OutdatedPlanError)
    errors = (*stopped, LockHeldError, LockLostError, ClusterError)
    ends = (*(kind([finding]) for kind in errors), KeyboardInterrupt())
    for error, kept in product(ends, (True, False)):
        yield None, error, kept
    yield None, ReconcilerError("odd"), True


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ending, ...]:
    """Every ending, run once for all laws."""
    directory = tmp_path_factory.mktemp("journals")
    return tuple(
        end(directory / f"{n}.jsonl", applied, error, kept=kept)
        for n, (applied, error, kept) in enumerate(every_end())
    )


def test_all_that_a_run_leaves_behind_says_the_same(endings: tuple[Ending, ...]) -> None:
    for run in endings:
        where = run.where
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
        said = {f"error: {line}" for line in (run.record["error"] or "").splitlines()}
        assert said <= set(run.err.splitlines()), where


def test_a_run_exits_0_only_if_everything_is_as_planned_and_nothing_went_wrong(
    endings: tuple[Ending, ...],
) -> None:
    for run in endings:
        well = run.applied is not None and run.kinds <= WELL and not run.applied.interrupted
        well = well and run.applied is not None and run.applied.cause is None and run.kept
        where = run.where
        assert (run.code == 0) == well == (run.record["ended"] in ("done", "nothing to do")), where
        assert not (run.code == 0 and "error: " in run.err), where


def test_the_exit_code_says_who_was_interrupted_and_what_nobody_knows(
    endings: tuple[Ending, ...],
) -> None:
    for run in endings:
        stopped = isinstance(run.error, KeyboardInterrupt)
        interrupted = run.applied.interrupted if run.applied else stopped
        unknown = OutcomeKind.UNKNOWN in run.kinds
        expected = 130 if interrupted else 75 if unknown else run.code
        assert (run.code, run.code in (0, 1, 2, 75, 130)) == (expected, True), run.where
        if unknown:
            assert "1 unknown" in run.last_line


def test_moves_that_go_on_are_said_before_what_failed(endings: tuple[Ending, ...]) -> None:
    for run in endings:
        applied, kinds = run.applied, run.kinds
        other = applied is None or applied.interrupted or applied.cause is not None
        goes_on = not other and bool(kinds & UNFINISHED) and OutcomeKind.UNKNOWN not in kinds
        assert (run.code == 2) == goes_on == (run.record["ended"] == "unfinished"), run.where


def test_a_lost_record_outweighs_success_alone(endings: tuple[Ending, ...]) -> None:
    lost = {(run.applied, run.error): run.record["ended"] for run in endings if not run.kept}
    for run in endings:
        if isinstance(run.error, ReconcilerError) and not hasattr(run.error, "findings"):
            continue  # one that the audit topic is not asked to keep
        if run.kept:
            without = lost[run.applied, run.error]
            if run.record["ended"] in ("done", "nothing to do"):
                assert without == "audit lost"
            else:
                assert without == run.record["ended"]
