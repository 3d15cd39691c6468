"""Runs, read from the lines that a journal and an audit topic hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from shorthand import cluster, plan, spec

from reconciler.api.history import read_journal_runs, read_last_run
from reconciler.api.records import MOST_TOPICS, begin_record
from reconciler.cli.journal import Journal
from reconciler.errors import UsageError
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.planfile.history import read_record
from reconciler.run.ending import Applied, Ended, end_run

PLAN = plan([spec(partitions=3, replication_factor=1)], cluster())
FAILED = Outcome("shop.orders", OutcomeKind.FAILED, "no answer came")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the journal of a run that failed."""
    file = tmp_path / "journal.jsonl"
    write(file, FAILED)
    return file


def write(file: Path, *outcomes: Outcome) -> None:
    with Journal(file, begin_record(PLAN)) as journal:
        journal.conclude(end_run(Applied(outcomes)))


def test_a_run_has_what_its_lines_say(file: Path) -> None:
    (run,) = read_journal_runs(file).runs
    last = json.loads(file.read_text().splitlines()[-1])
    assert (run.verb, run.ended, run.cluster) == ("apply", Ended.FAILED, "prod")
    assert (run.fingerprint, run.steps) == (last["fingerprint"], {"create": 1})
    assert (run.topics, run.texts) == (
        {"shop.orders": OutcomeKind.FAILED},
        {"shop.orders": "no answer came"},
    )


def test_a_record_is_the_last_line(file: Path) -> None:
    (run,) = read_journal_runs(file).runs
    record = read_record(file.read_text().splitlines()[-1])
    assert record is not None
    assert (record.started, record.topics, record.texts) == (run.started, run.topics, {})


def test_a_run_without_a_last_line_was_killed_or_goes_on(file: Path) -> None:
    lines = file.read_text().splitlines()
    write(file, Outcome("shop.orders", OutcomeKind.DONE))
    file.write_text("\n".join([lines[0], *file.read_text().splitlines()[3:]]) + "\n")
    over, killed = read_journal_runs(file).runs
    assert (over.ended, killed.ended, killed.at) == (Ended.DONE, None, None)
    assert killed.changed


def test_runs_that_share_a_journal_keep_their_own_ends(file: Path) -> None:
    first = file.read_text().splitlines()
    file.write_text("")
    write(file, Outcome("shop.orders", OutcomeKind.DONE))
    second = file.read_text().splitlines()
    file.write_text("\n".join([first[0], second[0], *first[1:], *second[1:]]) + "\n")
    runs = read_journal_runs(file).runs
    assert [run.ended for run in runs] == [Ended.FAILED, Ended.DONE]
    assert [run.texts for run in runs] == [{"shop.orders": "no answer came"}, {}]


def test_the_last_run_is_the_newest_of_the_cluster_even_if_it_was_killed(file: Path) -> None:
    last = read_last_run(file, "prod")
    assert last is not None
    assert (last.ending.ended, last.ending.outcomes) == (Ended.FAILED, (FAILED,))
    assert read_last_run(file, "dev") is None
    lines = file.read_text().splitlines(keepends=True)
    write(file, Outcome("shop.orders", OutcomeKind.DONE))
    file.write_text("".join([*file.read_text().splitlines(keepends=True)[:4], *lines]))
    killed = read_last_run(file, "prod")
    assert killed is not None
    assert (killed.ending.ended, killed.duration_s) == (Ended.UNKNOWN, None)


def test_the_last_run_has_the_topics_that_its_record_leaves_out(file: Path) -> None:
    rule = "config-key"
    outcomes = [Outcome(f"t{n}", OutcomeKind.FAILED, "no", rule) for n in range(MOST_TOPICS + 2)]
    write(file, *outcomes)
    last = read_last_run(file, "prod")
    assert last is not None
    assert last.ending.outcomes == tuple(outcomes)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("burned", "it is not a JSON object with a type"),
        ("[]", "it is not a JSON object with a type"),
        ("{}", "it is not a JSON object with a type"),
        ('{"type": "outcome", "topic": "a", "text": ""}', "kind: Field required"),
    ],
)
def test_a_line_of_something_else_is_named(file: Path, line: str, reason: str) -> None:
    with file.open("a") as journal:
        journal.write(line + "\n")
    with pytest.raises(UsageError) as refused:
        read_journal_runs(file)
    assert str(refused.value) == f"{file}:4: this is no journal of apply: line 4: {reason}"


def bad_records(good: str) -> Iterator[str]:
    record = json.loads(good)
    yield "burned"
    yield json.dumps({**record, "type": "apply"})
    yield json.dumps({**record, "ended": "burned"})
    yield json.dumps({**record, "started": "2026-03-01T12:00:00"})
    yield json.dumps({**record, "topics": {"a": "burned"}})
    yield json.dumps({name: value for name, value in record.items() if name != "user"})


def test_what_is_no_record_is_none(file: Path) -> None:
    good = file.read_text().splitlines()[-1]
    assert read_record(good)
    assert [read_record(bad) for bad in bad_records(good)] == [None] * 6
