"""`reconciler plan`: show exactly what would change, and change nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.api.rendering import PlanFormat, draw_explanation, explain_topic, render_explanation
from reconciler.cli import options
from reconciler.cli.planning import Made, Planner, Wanted, load_planner, report_failures
from reconciler.cli.plans import (
    PlanFiles,
    Shown,
    choose_code,
    choose_output,
    print_plans,
    write_whole,
)
from reconciler.cli.terminal import screen_width, wants_colour
from reconciler.errors import UsageError
from reconciler.model.moves import LoadKind
from reconciler.model.plan import is_chosen

if TYPE_CHECKING:
    from reconciler.show.explain.matrix import Matrix


@click.command(cls=options.Command)
@options.estate_argument
@options.clusters_option
@options.all_clusters_option
@options.bootstrap_option
@options.topic_option
@options.changed_since_option
@options.base_option
@options.against_option
@options.approved_option
@click.option(
    "--only",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Plan only the topics in this file, saved by report accepted --out.",
)
@click.option(
    "--by",
    type=click.Choice([str(kind) for kind in LoadKind]),
    help="Balance the cluster by this, also where topics are placed; write and read need a "
    "snapshot with rates. Default: the first of balance.by if that is count or disk, or count.",
)
@click.option(
    "--moves",
    is_flag=True,
    help="Plan only moves of existing replicas, where the cluster allows them.",
)
@options.plan_format_option
@options.unmanaged_option
@click.option(
    "--out",
    metavar="FILE|DIR",
    type=click.Path(path_type=Path),
    help="Save the plan; those of several clusters as DIR/NAME.json; - prints the file.",
)
@click.option(
    "--explain",
    multiple=True,
    metavar="TOPIC",
    help="Explain the placement of this topic; repeatable.",
)
@click.option(
    "--svg",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the explained topic.",
)
@click.option(
    "--metrics",
    "metrics_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write health, skew, drift and findings as metrics, for a textfile collector.",
)
@options.detailed_exitcode_option
def command(
    estate: Path,
    clusters: tuple[str, ...],
    *,
    all_clusters: bool,
    bootstrap_servers: str | None,
    topic: str,
    changed_since: str | None,
    base: str | None,
    against: Path | None,
    approved: Path | None,
    only: Path | None,
    by: str | None,
    moves: bool,
    form: PlanFormat,
    unmanaged: bool,
    out: Path | None,
    explain: tuple[str, ...],
    svg: Path | None,
    metrics_file: Path | None,
    detailed_exitcode: bool,
) -> int:
    """Check every spec in ESTATE, compare with clusters, and print what would change.

    Exits 0 on success, 1 on an error or if something is refused. --against uses no network.
    Several clusters are read in parallel; one that fails does not hide the others.
    ESTATE defaults to topics.
    """
    wanted = Wanted(
        estate,
        clusters,
        all_clusters,
        bootstrap_servers,
        topic,
        changed_since,
        against,
        LoadKind(by) if by else None,
        approved,
        moves,
        base,
        only,
    )
    wanted.check()
    out, form = choose_output(out, form)
    _check_explain(explain, svg, form, wanted)
    files = None if out is None else PlanFiles(out, wanted.is_many)
    if files is not None:
        files.check()
    if metrics_file is not None:
        from reconciler.cli.figures import check_metrics

        check_metrics(metrics_file, wanted)
    planner = load_planner(wanted)
    made = planner.make_plans() if metrics_file is None else _measure(planner, metrics_file)
    matrices = [
        explain_topic(planner.estate, p.cluster, p.state, p.plan, name)
        for p in made.plans
        for name in explain
    ]
    paths = [str(files.place(planned.cluster)) if files else None for planned in made.plans]
    shown = [Shown(planned.plan, path) for planned, path in zip(made.plans, paths, strict=True)]
    print_plans(shown, form, unmanaged=unmanaged)
    if form == "text":
        _explain(matrices)
    if svg is not None:
        write_whole(svg, draw_explanation(matrices[0]))
    if files is not None:
        for planned in made.plans:
            files.save(planned.plan)
        for failure in made.failures:
            files.clear(failure.cluster)
    report_failures(made)
    return exit_code(made, detailed=detailed_exitcode)


def _measure(planner: Planner, file: Path) -> Made:
    """Plan, and write the metrics. Errors: those of planning, after they are in the metrics."""
    from reconciler.cli.figures import write_metrics

    made = planner.try_plans()
    write_metrics(made, file)
    if made.failures and not planner.wanted.is_many:
        raise made.failures[0].error
    return made


def _explain(matrices: Iterable[Matrix]) -> None:
    colour = wants_colour(sys.stdout)
    for matrix in matrices:
        text = render_explanation(matrix, width=screen_width(), colour=colour)
        click.echo(f"\n{text}", nl=False, color=True)


def _check_explain(
    explain: tuple[str, ...], svg: Path | None, form: PlanFormat, wanted: Wanted
) -> None:
    """Refuse invalid combinations of options, before anything is read."""
    if svg is not None and len(explain) != 1:
        raise UsageError("--svg draws one topic; name it with --explain TOPIC")
    if explain and form != "text" and svg is None:
        raise UsageError(f"--explain is for people at a terminal; leave --format {form} out")
    if explain and wanted.moves:
        raise UsageError("--explain is about new replicas, and --moves adds none; leave it out")
    if explain and wanted.is_many:
        raise UsageError("--explain is about one cluster; name only that with --cluster")
    for name in explain:
        if not is_chosen(name, wanted.topic):
            what = f"--topic {wanted.topic} leaves out {name}"
            raise UsageError(f"{what}, so there is nothing to explain")


def exit_code(made: Made, *, detailed: bool) -> int:
    """Return 1 if something failed or is refused, 2 if changes are pending, if asked."""
    code = choose_code([planned.plan for planned in made.plans], detailed=detailed)
    return 1 if made.failures else code
