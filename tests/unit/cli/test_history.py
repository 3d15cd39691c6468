"""`reconciler history` on journals: options, commits, saved plans, and the width of a terminal."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from shorthand import cluster, plan, spec

from reconciler.api.records import begin_record
from reconciler.api.rendering import render_plan
from reconciler.cli.app import run
from reconciler.cli.history import _read_since
from reconciler.cli.journal import Journal
from reconciler.errors import UsageError
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.run.ending import Applied, end_run
from reconciler.run.history import History, KeptRun, Run
from reconciler.show.history import render_history
from reconciler.styling import Paint

PLAN = plan([spec(partitions=3, replication_factor=1)], cluster())
NOW = datetime(2026, 3, 8, 12, tzinfo=UTC)
GIT = ("git", "-c", "user.name=Ana", "-c", "user.email=ana@example.com")


@pytest.fixture(autouse=True)
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the journal of one run, in the current directory."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "journal.jsonl", "shop.orders")
    return tmp_path / "journal.jsonl"


def write(file: Path, *names: str) -> None:
    outcomes = tuple(Outcome(name, OutcomeKind.DONE) for name in names)
    with Journal(file, begin_record(PLAN)) as journal:
        journal.conclude(end_run(Applied(outcomes)))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("7d", NOW - timedelta(days=7)),
        ("90min", NOW - timedelta(minutes=90)),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T03:00Z", datetime(2026, 3, 1, 3, tzinfo=UTC)),
        ("2026-03-01T03:00+02:00", datetime(2026, 3, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_time_is_read(text: str, at: datetime) -> None:
    assert _read_since(text, NOW) == at


@pytest.mark.parametrize("text", ["soon", "", "7", "9999999999999999999d", "2026-13-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write a duration, a day or a time: 7d, "):
        _read_since(text, NOW)


def test_a_plan_beside_the_journal_is_shown_with_its_run(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal.with_name("other.json").write_text("{}")
    journal.with_name("plan.json").write_text(render_plan(PLAN, "json"))
    assert run(["history", "--journal", str(journal), "--last"]) == 0
    out = capsys.readouterr().out
    assert f"The plan, from {journal.with_name('plan.json')}:\n\nprod · cluster-1 · " in out
    assert run(["history", "--journal", str(journal), "--format", "json"]) == 0
    (kept,) = json.loads(capsys.readouterr().out)["runs"]
    assert kept["plan_file"] == str(journal.with_name("plan.json"))


@pytest.mark.parametrize(
    ("message", "request_"),
    [
        ("Add orders (#42)\n\nmore (#7)", "#42"),
        ("Merge pull request #42 from shop/orders\n\nAdd orders", "#42"),
        ("Merge branch 'orders' into 'main'\n\nSee merge request shop/topics!42", "!42"),
        ("Add orders, see #42", None),
    ],
)
def test_the_request_is_in_the_message_of_the_commit(
    journal: Path, message: str, request_: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", message]):
        subprocess.run([*GIT, *command], check=True)
    asked = ["git", "rev-parse", "HEAD"]
    sha = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    journal.write_text(journal.read_text().replace('"commit": null', f'"commit": "{sha}"'))
    assert run(["history", "--journal", str(journal), "--format", "json"]) == 0
    (kept,) = json.loads(capsys.readouterr().out)["runs"]
    assert kept["commit"] == {
        "subject": message.partition("\n")[0],
        "request": request_,
        "merges": False,
    }


@pytest.mark.parametrize("commit", ["--output=x", "6f1e2d3c4b5a6f1e2d3c4b5a6f1e2d3c4b5a6f1e"])
def test_a_commit_that_is_not_here_has_no_subject(
    journal: Path, commit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    journal.write_text(journal.read_text().replace('"commit": null', f'"commit": "{commit}"'))
    assert run(["history", "--journal", str(journal), "--format", "json"]) == 0
    (kept,) = json.loads(capsys.readouterr().out)["runs"]
    assert (kept["run"]["commit"], kept["commit"]) == (commit, None)
    assert not Path("x").exists()


def test_a_variable_chooses_nothing_from_a_journal(
    journal: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RECONCILER_CLUSTER", "other")
    monkeypatch.setenv("RECONCILER_BOOTSTRAP_SERVERS", "broker-1:9092")
    assert run(["history", "--journal", str(journal)]) == 0
    assert " · 1 run · " in capsys.readouterr().out
    assert run(["history", "--journal", str(journal), "--cluster", "other"]) == 0
    assert " · no run · " in capsys.readouterr().out


def test_a_pattern_that_matches_nothing_is_an_error(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["history", "--journal", str(journal), "--topic", "nothing.*"]) == 64
    told = capsys.readouterr()
    said = f"no run of journal {journal} has a topic that matches --topic 'nothing.*'"
    assert (told.out, told.err) == ("", f"error: {said}\n")


def test_a_pattern_that_matches_only_older_runs_is_no_error(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--journal", str(journal), "--topic", "shop.*", "--since", "2999-01-01"]
    assert run(["history", *words]) == 0
    told = capsys.readouterr()
    assert told.out == f"journal {journal} · no run · times in UTC\n"
    assert told.err == "no run has a topic that matches shop.*\n"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "name a --cluster with an audit topic, or a --journal"),
        (
            ["--journal", "journal.jsonl", "--bootstrap-servers", "a:1"],
            "--journal reads a file; leave out --bootstrap-servers",
        ),
    ],
)
def test_what_to_read_is_named_once(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["history", *arguments]) == 64
    assert capsys.readouterr().err == f"error: {error}\n"


@pytest.mark.parametrize("full", [False, True])
def test_no_line_is_wider_than_a_terminal_and_no_control_character_is_printed(
    journal: Path, *, full: bool
) -> None:
    from reconciler.api.history import read_journal_runs

    write(journal, *(f"shop.orders-{number}" for number in range(40)), "shop.\x1b[31mred")
    runs: list[Run] = read_journal_runs(journal).runs
    history = History("journal", tuple(map(KeptRun, runs)), 2)
    text = render_history(history, Paint(wanted=False), full=full, width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert text.replace("\n", "").isprintable()
    assert "shop.\\x1b[31mred" in text or not full
