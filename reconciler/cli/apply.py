"""`reconciler apply`: make the changes of a plan, and nothing else."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler import api
from reconciler.cli import options
from reconciler.cli.journal import Journal
from reconciler.cli.planning import Wanted, load_planner
from reconciler.cli.saved import read_plan, refuse_other_specs
from reconciler.cli.terminal import paint, print_error, print_note, wants_colour
from reconciler.errors import FindingsError, ReconcilerError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from reconciler.apply import Applied
    from reconciler.cli.planning import Planner
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
    help="Append progress and outcomes to FILE, as JSON lines.",
)
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
) -> int:
    """Apply a saved PLAN, or plan SOURCE, an estate, afresh for --cluster and apply that.

    Several clusters are planned, approved and applied one after the other; what fails on one does
    not stop the others. Exits 0 when everything is as planned, 1 when something was refused or
    failed.
    """
    wanted = Wanted(
        source, clusters, all_clusters, bootstrap_servers, topic, changed_since=changed_since
    )
    asked = Asked(auto_approve, skip_refused, expect, journal, bootstrap_servers)
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
    """How a plan is to be applied."""

    auto_approve: bool
    skip_refused: bool
    expect: str | None
    journal: Path | None
    bootstrap_servers: str | None


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
    _expect(plan, asked.expect)
    if not _has_work(plan, skip_refused=asked.skip_refused):
        return 0
    if not asked.auto_approve and not _approve():
        print_note("nothing was changed")
        return 1
    with Journal(asked.journal) as log, _ending_gently():
        applied = api.apply_plan(
            plan,
            loaded,
            bootstrap_servers=asked.bootstrap_servers,
            skip_refused=asked.skip_refused,
            observe=log.observe,
        )
        log.conclude(applied)
    _print_outcomes(applied)
    return INTERRUPTED if applied.interrupted else 0 if applied.succeeded else 1


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
