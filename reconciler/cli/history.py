"""`reconciler history`: earlier applies, their outcomes, and how to revert them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import options
from reconciler.cli.terminal import (
    choose_paint,
    fold_width,
    print_note,
    wants_colour,
    working,
)
from reconciler.errors import ReconcilerError, UsageError
from reconciler.units import SECOND, UnitError, parse_duration

if TYPE_CHECKING:
    from reconciler.api.history import Records
    from reconciler.model.plan import Plan
    from reconciler.run.history import CommitNote, Run

# As GitHub and GitLab write them: a squash, a merge of GitHub, a merge of GitLab.
_REQUESTS = (
    re.compile(r"\A[^\n]* \((#\d+)\)$", re.MULTILINE),
    re.compile(r"\AMerge pull request (#\d+) "),
    re.compile(r"^See merge request \S*(!\d+)$", re.MULTILINE),
)
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


@click.command(cls=options.Command)
@click.argument("estate", default="topics", type=click.Path(path_type=Path))
@click.option(
    "--cluster", metavar="NAME", help="The cluster whose audit topic is read; one per run."
)
@options.bootstrap_option
@click.option(
    "--journal",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read this journal of `apply --journal` instead; --cluster chooses its runs.",
)
@options.choose_topics("Only runs with topics whose names match; repeatable.")
@click.option(
    "--since",
    metavar="WHEN",
    help="Only runs since then, such as 7d, 2026-11-21 or 2026-11-21T03:00Z.",
)
@click.option("--plan", metavar="FINGERPRINT", help="Only runs of this plan, in full.")
@click.option("--last", is_flag=True, help="Only the last run, in full.")
@click.option(
    "--plans",
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="A saved plan, or a directory of them, to show with their runs.  [that of the journal]",
)
@click.option("--show", type=click.IntRange(1), default=20, show_default=True, help="How many.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="For a terminal, or for programs.",
)
def command(
    *,
    estate: Path,
    cluster: str | None,
    bootstrap_servers: str | None,
    journal: Path | None,
    topic: str,
    since: str | None,
    plan: str | None,
    last: bool,
    plans: Path | None,
    show: int,
    form: str,
) -> None:
    """Show earlier applies, the latest first: who ran them, of which commit, and the outcome.

    The audit topic of --cluster has a record of each run, and so has a journal. Reading the topic
    needs Read on it. In full, a run also has each topic, its plan where that was kept, and how to
    go back. ESTATE defaults to topics.
    """
    from reconciler.planfile.history import HistoryDocument
    from reconciler.run.history import History, KeptRun, choose_runs
    from reconciler.show.history import DIGITS, render_history

    start = None if since is None else _read_since(since, datetime.now(UTC))
    source, records = _read(estate, cluster, bootstrap_servers, journal, start)
    found = choose_runs(
        records.runs,
        topics=topic,
        since=start,
        plan=plan,
        cluster=cluster if journal is not None and options.is_given("cluster") else None,
    )
    # An audit topic is read from --since on only: what is older may match.
    if not found and (journal is not None or start is None):
        _refuse_unmatched(records, topic, source)
    shown = found[: 1 if last else show]
    saved = _find_plans(plans or (journal.parent if journal is not None else None), shown)
    kept = tuple(
        KeptRun(run, _read_commit(estate, run.commit), str(saved[place][0]) if place else None)
        for run in shown
        for place in [run.fingerprint if run.fingerprint in saved else None]
    )
    history = History(source, kept, len(found), records.unread)
    if form == "json":
        click.echo(HistoryDocument.write(history).model_dump_json(indent=2))
        return
    is_full = last or plan is not None
    on_stdout = choose_paint(sys.stdout)
    text = render_history(history, on_stdout, full=is_full, width=fold_width())
    click.echo(text, nl=False, color=on_stdout.wanted)
    if is_full:
        _print_plans({run.fingerprint: None for run in shown if run.fingerprint in saved}, saved)
    elif named := next((run.fingerprint for run in shown if run.changed and run.fingerprint), None):
        print_note(f"--plan {named[:DIGITS]} shows a run in full, and how to go back")
    if topic != "*" and not found:
        print_note(f"no run has a topic that matches {topic}")


def _refuse_unmatched(records: Records, topic: str, source: str) -> None:
    """Refuse globs that match no topic of any run: they are mistyped. Errors: UsageError."""
    from reconciler.run.history import choose_runs

    if topic != "*" and not choose_runs(records.runs, topics=topic):
        raise UsageError(f"no run of {source} has a topic that matches --topic {topic!r}")


def _read(
    estate: Path,
    cluster: str | None,
    bootstrap_servers: str | None,
    journal: Path | None,
    since: datetime | None,
) -> tuple[str, Records]:
    """Read all runs. Returns: what they were read from, and the runs. Errors: UsageError."""
    from reconciler.api.history import read_audit_runs, read_journal_runs

    if journal is not None:
        if options.is_given("bootstrap_servers"):
            raise UsageError("--journal reads a file; leave out --bootstrap-servers")
        return f"journal {journal}", read_journal_runs(journal)
    if cluster is None:
        raise UsageError("name a --cluster with an audit topic, or a --journal")
    from reconciler.api.connections import find_cluster, open_connection
    from reconciler.api.planning import load_estate

    loaded = load_estate(estate)
    find_cluster(loaded, cluster)
    with open_connection(loaded, cluster, bootstrap_servers) as connection:
        topic = connection.entry.audit_topic
        with working(f"reading {topic or cluster}"):
            records = read_audit_runs(connection, since)
    return f"{cluster} · audit topic {topic}", records


def _read_since(text: str, now: datetime) -> datetime:
    """Read a duration before now, a day or a time, which is UTC if it has no zone.

    Errors: UsageError.
    """
    try:
        return now - timedelta(seconds=parse_duration(text) / SECOND)
    except (UnitError, OverflowError):
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        way_out = "write a duration, a day or a time: 7d, 2026-11-21, 2026-11-21T03:00Z"
        raise UsageError(f"--since {text}: {way_out}") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _read_commit(estate: Path, commit: str | None) -> CommitNote | None:
    """Return what the repository here knows of a commit; None if it does not have it."""
    from reconciler.cli.git import Checkout, GitError
    from reconciler.run.history import CommitNote

    # A record is a text of others: nothing but the digits of a commit goes to git.
    if commit is None or not _COMMIT.fullmatch(commit):
        return None
    try:
        message, merges = Checkout(estate if estate.exists() else Path()).read_message(commit)
    except GitError:
        return None
    found = (pattern.search(message) for pattern in _REQUESTS)
    request = next((match[1] for match in found if match), None)
    return CommitNote(message.partition("\n")[0], request, merges)


def _find_plans(place: Path | None, runs: list[Run]) -> Mapping[str, tuple[Path, Plan]]:
    """Return the saved plans of runs by fingerprint, with their files."""
    wanted = {run.fingerprint for run in runs}
    if place is None or not wanted - {None}:
        return {}
    from reconciler.planfile.codec import fingerprint_plan

    found: dict[str, tuple[Path, Plan]] = {}
    for file, plan in _read_plans(place):
        fingerprint = fingerprint_plan(plan)
        if fingerprint in wanted:
            found.setdefault(fingerprint, (file, plan))
    return found


def _read_plans(place: Path) -> Iterator[tuple[Path, Plan]]:
    """Read every saved plan of a directory, or one file; files that are no plans are left out."""
    from reconciler.cli.plans import read_plan

    if place.is_file():
        yield place, read_plan(place)
        return
    for file in sorted(place.glob("*.json")):
        try:
            yield file, read_plan(file)
        except (ReconcilerError, OSError):
            continue


def _print_plans(named: Mapping[str | None, None], saved: Mapping[str, tuple[Path, Plan]]) -> None:
    from reconciler.api.rendering import render_plan

    for fingerprint in named:
        file, plan = saved[str(fingerprint)]
        text = render_plan(plan, colour=wants_colour(sys.stdout), width=fold_width())
        click.echo(f"\nThe plan, from {file}:\n\n{text}", color=True)
