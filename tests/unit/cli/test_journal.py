"""The bar of an apply counts each step once; the journal says who, what and how it ended."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from shorthand import cluster, plan, spec

from reconciler.api.records import begin_record
from reconciler.cli.journal import Journal
from reconciler.errors import (
    AuditError,
    Finding,
    LockHeldError,
    LockLostError,
    ReconcilerError,
    RefusedPlanError,
    StalePlanError,
)
from reconciler.model.outcomes import AnswerKind, Outcome, OutcomeKind
from reconciler.model.plan import Commit
from reconciler.run.ending import Applied, end_run
from reconciler.run.events import StepAnswered, StepsWait

LOST, ACCEPTED = AnswerKind.LOST, AnswerKind.ACCEPTED
PLAN = plan([spec(partitions=3, replication_factor=1)], cluster())
RECORD = begin_record(replace(PLAN, commit=Commit("abcdef")))
DONE = Outcome("shop.orders", OutcomeKind.DONE)
FAILED = Outcome("shop.orders", OutcomeKind.FAILED, "no answer came")
FINDING = Finding("plan-stale", "shop.orders: it moved", "plan again")


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Journal]:
    """Return a journal that a person is looking at."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Journal(None, RECORD) as journal:
        journal.show_progress()
        yield journal


def tell(journal: Journal, phase: str, names: Sequence[str], kind: AnswerKind = ACCEPTED) -> None:
    """Tell the answers of one round of a phase."""
    for name in names:
        journal.observe(StepAnswered(phase, name, len(names), kind))


def shown(journal: Journal) -> list[tuple[float, float | None]]:
    assert journal._bars is not None
    return [(task.completed, task.total) for task in journal._bars.tasks]


def test_a_step_that_is_lost_and_sent_again_counts_once(journal: Journal) -> None:
    tell(journal, "create", ["a", "b", "c"], LOST)
    tell(journal, "create", ["b", "c"], LOST)
    tell(journal, "create", ["c"])
    assert shown(journal) == [(3, 3)]


def test_a_phase_under_way_shows_what_is_answered(journal: Journal) -> None:
    for name in ("a", "b"):
        journal.observe(StepAnswered("create", name, 5, ACCEPTED))
    assert shown(journal) == [(2, 5)]


def test_every_phase_has_a_bar(journal: Journal) -> None:
    tell(journal, "create", ["a", "b"])
    tell(journal, "verify", ["a", "b"])
    assert shown(journal) == [(2, 2), (2, 2)]


def test_a_topic_with_several_steps_to_ask_about_fills_the_bar(journal: Journal) -> None:
    tell(journal, "validate", ["a", "b", "a"])
    assert shown(journal) == [(3, 3)]
    tell(journal, "validate", ["a", "a"])
    assert shown(journal) == [(3, 3)]


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def end(path: Path, applied: Applied | None = None, error: BaseException | None = None) -> object:
    """Write the journal of one run down, and return how it says that the run ended."""
    with Journal(path, RECORD) as journal:
        journal.conclude(end_run(applied, error))
    return read(path)[-1]["ended"]


def test_one_line_says_everything_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    assert end(path, Applied((DONE,))) == "done"
    first, outcome, last = read(path)
    assert (first["type"], outcome["type"], last["type"]) == ("apply", "outcome", "applied")
    assert {**last, "at": first["at"], "type": "apply"} == {**last, **first}
    assert last["started"] == first["at"]
    told = ("cluster", "cluster_id", "commit", "steps", "refused", "outcomes", "topics", "error")
    assert {name: last[name] for name in told} == {
        "cluster": "prod",
        "cluster_id": "cluster-1",
        "commit": "abcdef",
        "steps": {"create": 1},
        "refused": 0,
        "outcomes": {"done": 1},
        "topics": {"shop.orders": "done"},
        "error": None,
    }


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (RefusedPlanError([FINDING]), "refused"),
        (StalePlanError([FINDING]), "stale"),
        (LockHeldError([FINDING]), "locked"),
        (LockLostError([FINDING]), "lock lost"),
        (KeyboardInterrupt(), "interrupted"),
        (ReconcilerError("no such thing"), "error"),
    ],
)
def test_an_error_is_an_end_as_well(tmp_path: Path, error: BaseException, ended: str) -> None:
    path = tmp_path / "journal.jsonl"
    assert end(path, error=error) == ended
    assert read(path)[-1]["error"] == (str(error) or "interrupted")


def test_an_error_that_nobody_expects_is_an_end_as_well(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with pytest.raises(ZeroDivisionError), Journal(path, RECORD):
        raise ZeroDivisionError("odd")
    assert (read(path)[-1]["ended"], read(path)[-1]["error"]) == ("error", "odd")


@pytest.mark.parametrize(
    ("applied", "ended"),
    [
        (None, "nothing to do"),
        (Applied((FAILED,)), "failed"),
        (Applied((DONE,), interrupted=True), "interrupted"),
        (Applied((DONE,), cause=LockLostError([FINDING])), "lock lost"),
    ],
)
def test_what_came_of_it_is_named(tmp_path: Path, applied: Applied | None, ended: str) -> None:
    assert end(tmp_path / "journal.jsonl", applied) == ended


def test_a_record_that_was_not_kept_elsewhere_is_kept_here(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    assert end(path, error=AuditError([FINDING], end_run(Applied((DONE,))))) == "audit lost"
    assert read(path)[-1]["topics"] == {"shop.orders": "done"}


def test_several_runs_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    end(path, Applied((DONE,)))
    end(path, error=StalePlanError([FINDING]))
    assert [line["ended"] for line in read(path) if line["type"] == "applied"] == ["done", "stale"]


def test_what_is_not_as_planned_is_never_left_out(tmp_path: Path) -> None:
    done = [Outcome(f"t{number:04}", OutcomeKind.DONE) for number in range(1_500)]
    failed = Outcome("t9999", OutcomeKind.FAILED, "no answer came")
    path = tmp_path / "journal.jsonl"
    end(path, Applied((*done, failed)))
    last = read(path)[-1]
    assert last["outcomes"] == {"done": 1_500, "failed": 1}
    assert (len(last["topics"]), last["topics_left_out"]) == (1_000, 501)  # type: ignore[arg-type]
    assert "t9999" in last["topics"]  # type: ignore[operator]


def test_a_pause_that_keeps_to_rates_is_said_and_written_once_in_half_a_minute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, RECORD) as journal:
        journal.show_progress()
        for seconds in (280, 270):
            journal.observe(StepsWait("create", seconds, 12, by_rates=True))
    said = "keeping to the rates of the cluster: 12 steps left, waiting 5 min\n"
    assert capsys.readouterr().err == said
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    (noted,) = (line for line in lines if line["type"] == "rates")
    assert (noted["phase"], noted["seconds"], noted["left"]) == ("create", 280, 12)
