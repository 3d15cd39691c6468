"""`reconciler apply`: make the changes of a plan, and nothing else."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler import api
from reconciler.cli import options
from reconciler.cli.journal import Journal
from reconciler.cli.lock import WaitingNotes
from reconciler.cli.outcomes import print_outcomes
from reconciler.cli.planning import Wanted, load_planner
from reconciler.cli.saved import read_plan, refuse_other_specs
from reconciler.cli.terminal import print_error, print_note, wants_colour
from reconciler.errors import AuditError, FindingsError, ReconcilerError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from reconciler.apply import Applied
    from reconciler.cli.planning import Planner
    from reconciler.model import Plan
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
@options.clusters_option
@options.all_clusters_option
@options.bootstrap_option
@options.topic_option
@options.changed_since_option
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
    default="15s",
    show_default=True,
    help="How long to wait where another apply works on the cluster, such as 10m.",
)
@click.option("--no-lock", is_flag=True, help="Apply without the cluster's lock.")
def command(
    *,
    source: Path,
    estate: Path,
    clusters: tuple[str, ...],
    all_clusters: bool,
    bootstrap_servers: str | None,
    topic: str,
    changed_since: str | None,
    auto_approve: bool,
    skip_refused: bool,
    expect: str | None,
    journal: Path | None,
    lock_timeout: float,
    no_lock: bool,
) -> int:
    """Apply a saved PLAN, or plan SOURCE, an estate, afresh for --cluster and apply that.

    Several clusters are planned, approved and applied one after the other; what fails on one does
    not stop the others. Exits 0 when everything is as planned, 1 when something was refused or
    failed.
    """
    wanted = Wanted(
        source, clusters, all_clusters, bootstrap_servers, topic, changed_since=changed_since
    )
    patience_s = None if no_lock else lock_timeout
    asked = Asked(auto_approve, skip_refused, expect, journal, bootstrap_servers, patience_s)
    if source.is_file() and source.suffix not in (".yaml", ".yml"):
        return _apply_saved(wanted, estate, asked)
    wanted.check()
    if wanted.is_many and expect is not None:
        raise UsageError("--expect is the fingerprint of one plan; name one cluster")
    planner = load_planner(wanted)
    if wanted.is_many:
        return _apply_each(planner, asked)
    return _apply(planner.make_plan(planner.clusters[0]).plan, planner.estate, asked)


@dataclass(frozen=True, slots=True)
class Asked:
    """How a plan is to be applied; without the cluster's lock where `patience_s` is None."""

    auto_approve: bool
    skip_refused: bool
    expect: str | None
    journal: Path | None
    bootstrap_servers: str | None
    patience_s: float | None


def _apply_saved(wanted: Wanted, estate: Path, asked: Asked) -> int:
    """Apply the plan of a file, from the specs that it was made of."""
    if wanted.topic != "*" or wanted.changed_since is not None:
        raise UsageError("a saved plan is applied whole; leave --topic and --changed-since out")
    plan = read_plan(wanted.estate)
    if wanted.all_clusters or not {plan.cluster}.issuperset(wanted.clusters):
        others = ", ".join(wanted.clusters) or "all clusters"
        raise UsageError(f"the plan is for {plan.cluster}, not for {others}")
    loaded = api.load_estate(estate)
    refuse_other_specs(plan, estate)
    return _apply(plan, loaded, asked)


def _apply_each(planner: Planner, asked: Asked) -> int:
    """Go from cluster to cluster: an interrupt ends that, a failure does not."""
    codes: dict[str, int] = {}
    for cluster in planner.clusters:
        codes[cluster] = _try_to_apply(planner, cluster, asked)
        click.echo()
        if codes[cluster] == INTERRUPTED:
            break
    _summarise(planner.clusters, codes)
    return max(codes.values())


def _try_to_apply(planner: Planner, cluster: str, asked: Asked) -> int:
    try:
        return _apply(planner.make_plan(cluster).plan, planner.estate, asked)
    except ReconcilerError as error:
        print_error(f"{cluster}: {error}")
        return 1


def _summarise(clusters: Sequence[str], codes: Mapping[str, int]) -> None:
    """Say how each cluster fared, in a line."""
    words = {0: "as planned", 1: "not as planned, see above", INTERRUPTED: "interrupted"}
    for cluster in clusters:
        click.echo(f"{cluster}: {words[codes[cluster]] if cluster in codes else 'not begun'}")


def _apply(plan: Plan, loaded: Estate, asked: Asked) -> int:
    """Show a plan, have it approved, and apply it. Returns the exit code."""
    click.echo(api.render_plan(plan, colour=wants_colour(sys.stdout)), color=True)
    record = api.begin_record(plan)
    with Journal(asked.journal, record) as log:
        _expect(plan, asked.expect)
        if not _has_work(plan, skip_refused=asked.skip_refused):
            return 0
        if not asked.auto_approve and not _approve():
            print_note("nothing was changed")
            return 1
        with _ending_gently(), _showing_what_is_not_kept(log):
            applied = api.apply_plan(
                plan,
                loaded,
                bootstrap_servers=asked.bootstrap_servers,
                skip_refused=asked.skip_refused,
                observe=log.observe,
                lock_timeout_s=asked.patience_s,
                observe_wait=WaitingNotes(asked.patience_s or 0).observe,
                record=record,
            )
        log.conclude(applied)
    return _report(applied)


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
    print_outcomes(applied)
    if applied.cause is not None:
        print_error(str(applied.cause))
    return INTERRUPTED if applied.interrupted else 0 if applied.succeeded else 1
