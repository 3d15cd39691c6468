"""`reconciler apply`: make the changes of a plan, and nothing else."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler import api
from reconciler.cli import options
from reconciler.cli.journal import Journal
from reconciler.cli.lock import WaitingNotes
from reconciler.cli.plan import make_plan
from reconciler.cli.show import read_plan
from reconciler.cli.terminal import paint, print_error, print_note, wants_colour
from reconciler.errors import AuditError, FindingsError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.apply import Applied
    from reconciler.model import Outcome, Plan
    from reconciler.spec import Estate

INTERRUPTED = 130


@click.command()
@click.argument("source", default="topics", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--estate",
    type=click.Path(path_type=Path),
    default=Path("topics"),
    show_default=True,
    help="Where clusters.yaml is, beside a saved plan.",
)
@click.option("--cluster", metavar="NAME", help="Which cluster; a saved plan names its own.")
@options.bootstrap_option
@options.topic_option
@click.option("--auto-approve", is_flag=True, help="Do not ask; for CI.")
@click.option("--skip-refused", is_flag=True, help="Do the rest where topics are refused.")
@click.option("--expect", metavar="FINGERPRINT", help="Go on only if this is the plan.")
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append who, what, progress and outcomes to FILE, as JSON lines.",
)
@click.option(
    "--lock-timeout",
    metavar="DURATION",
    callback=options.read_duration,
    default="0",
    show_default=True,
    help="How long to wait where another apply works on the cluster, such as 10m.",
)
@click.option("--no-lock", is_flag=True, help="Apply without the cluster's lock.")
def command(
    *,
    source: Path,
    estate: Path,
    cluster: str | None,
    bootstrap_servers: str | None,
    topic: str,
    auto_approve: bool,
    skip_refused: bool,
    expect: str | None,
    journal: Path | None,
    lock_timeout: float,
    no_lock: bool,
) -> int:
    """Apply a saved PLAN, or plan SOURCE, an estate, afresh for --cluster and apply that.

    Exits 0 when everything is as planned, 1 when something was refused or failed.
    """
    loaded, plan = _obtain(source, estate, cluster, bootstrap_servers, topic)
    record = api.begin_record(plan)
    with Journal(journal, record) as log:
        _expect(plan, expect)
        if not _has_work(plan, skip_refused=skip_refused):
            return 0
        if not auto_approve and not _approve():
            print_note("nothing was changed")
            return 1
        with _ending_gently(), _showing_what_is_not_kept(log):
            applied = api.apply_plan(
                plan,
                loaded,
                bootstrap_servers=bootstrap_servers,
                skip_refused=skip_refused,
                observe=log.observe,
                lock_timeout_s=None if no_lock else lock_timeout,
                observe_wait=WaitingNotes(lock_timeout).observe,
                record=record,
            )
        log.conclude(applied)
    return _report(applied)


def _obtain(
    source: Path, estate: Path, cluster: str | None, servers: str | None, topic: str
) -> tuple[Estate, Plan]:
    """Read the saved plan, or make one, and show it."""
    if source.is_file() and source.suffix not in (".yaml", ".yml"):
        plan = read_plan(source)
        if cluster not in (None, plan.cluster):
            raise UsageError(f"the plan is for {plan.cluster}, not for {cluster}")
        loaded = api.load_estate(estate)
    else:
        if cluster is None:
            raise UsageError("name the cluster: --cluster NAME")
        loaded, _, plan = make_plan(source, cluster, servers, topic)
    colour = wants_colour(sys.stdout)
    click.echo(api.render_plan(plan, colour=colour), color=True)
    return loaded, plan


def _expect(plan: Plan, expected: str | None) -> None:
    """Go on only with the plan that was approved."""
    from reconciler.errors import Finding
    from reconciler.plan import fingerprint_plan

    found = fingerprint_plan(plan)
    if expected is not None and found != expected:
        what = f"the plan's fingerprint is {found}, not the approved {expected}"
        way_out = "read the plan above, and approve that one"
        raise FindingsError([Finding("plan-unexpected", what, way_out)])


def _has_work(plan: Plan, *, skip_refused: bool) -> bool:
    """Tell whether there is something to do. Errors: RefusedPlanError, the plan being shown."""
    from reconciler.errors import RefusedPlanError
    from reconciler.plan import list_refusals, steps_of

    if refusals := list_refusals(plan, skip_refused=skip_refused):
        raise RefusedPlanError(refusals)
    return any(steps_of(topic) for topic in plan.topics)


def _approve() -> bool:
    """Ask the person; where there is none, say how to go on without."""
    if not sys.stdin.isatty():
        raise UsageError("nobody is here to approve the plan; pass --auto-approve")
    return click.confirm("Apply this?", err=True)


@contextmanager
def _ending_gently() -> Iterator[None]:
    """Take SIGTERM, by which CI ends its jobs, as Ctrl-C is taken: with a report."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _showing_what_is_not_kept(log: Journal) -> Iterator[None]:
    """Print the record that the audit topic did not take: the outcomes stand all the same."""
    try:
        yield
    except AuditError as error:
        from reconciler.apply import Applied

        if isinstance(error.applied, Applied):
            log.conclude(error.applied)
            _report(error.applied)
        click.echo(error.record, err=True)
        raise


def _report(applied: Applied) -> int:
    """Print what became of every topic. Returns the exit code."""
    _print_outcomes(applied)
    if applied.cause is not None:
        print_error(str(applied.cause))
    return INTERRUPTED if applied.interrupted else 0 if applied.succeeded else 1


def _print_outcomes(applied: Applied) -> None:
    for outcome in applied.outcomes:
        click.echo(_line(outcome), color=True)
    counts = Counter(str(outcome.kind) for outcome in applied.outcomes)
    said = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
    click.echo(f"\n{'Interrupted. ' if applied.interrupted else ''}Applied: {said}")


def _line(outcome: Outcome) -> str:
    tones = {"done": "green", "already done": "green", "half done": "yellow", "failed": "red"}
    tone = tones.get(str(outcome.kind), "yellow")
    said = f"  {outcome.text}" if outcome.text else ""
    return f"{paint(tone, f'{outcome.kind:<13}')} {outcome.topic}{said}"
