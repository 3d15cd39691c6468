"""`reconciler plan`: show exactly what would change, and change nothing."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from reconciler import api
from reconciler.cli import options
from reconciler.cli.terminal import print_note, screen_width, wants_colour, working
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconciler.model import ClusterState, Plan
    from reconciler.plan.explain import Matrix
    from reconciler.plan.weigh import Weigh
    from reconciler.spec import Estate

PENDING = 2


@click.command()
@options.estate_argument
@options.cluster_option
@options.bootstrap_option
@options.topic_option
@options.against_option
@click.option(
    "--weigh",
    type=click.Choice(["count", "size", "rate"]),
    default="count",
    help="Level the cluster by replicas, or by their size or rate in the snapshot.",
)
@options.plan_format_option
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Save the plan.")
@click.option("--explain", multiple=True, metavar="TOPIC", help="Show why it is placed like that.")
@click.option(
    "--svg",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the explained topic.",
)
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 when changes are pending.")
def command(
    estate: Path,
    cluster: str,
    *,
    bootstrap_servers: str | None,
    topic: str,
    against: Path | None,
    weigh: Weigh,
    form: api.PlanFormat,
    out: Path | None,
    explain: tuple[str, ...],
    svg: Path | None,
    detailed_exitcode: bool,
) -> int:
    """Check every spec in ESTATE, compare with a cluster, and print what would change.

    Exits 0 when that went well, 1 on an error or where something is refused. With --against no
    network is used.
    """
    _check_explain(explain, svg, topic, form)
    loaded, state, plan = make_plan(estate, cluster, bootstrap_servers, topic, against, weigh)
    matrices = [api.explain_topic(loaded, cluster, state, plan, name) for name in explain]
    print_plan(plan, form, str(out) if out else None)
    if form == "text":
        _explain(matrices)
    if svg is not None:
        _write_whole(svg, api.draw_explanation(matrices[0]))
    if out is not None:
        save_plan(plan, out)
    return exit_code(plan, detailed=detailed_exitcode)


def print_plan(plan: Plan, form: api.PlanFormat, saved: str | None) -> None:
    """Print a plan, which is kept at `saved`, and tell a workflow where that is asked for."""
    colour = wants_colour(sys.stdout)
    click.echo(api.render_plan(plan, form, colour=colour, saved=saved), nl=False, color=True)
    if form == "github":
        from reconciler.cli.workflow import report_plan

        report_plan(plan, saved)


def _explain(matrices: Iterable[Matrix]) -> None:
    colour = wants_colour(sys.stdout)
    for matrix in matrices:
        text = api.render_explanation(matrix, width=screen_width(), colour=colour)
        click.echo(f"\n{text}", nl=False, color=True)


def _check_explain(
    explain: tuple[str, ...], svg: Path | None, glob: str, form: api.PlanFormat
) -> None:
    """Refuse what could not be shown, before anything is read."""
    if svg is not None and len(explain) != 1:
        raise UsageError("--svg draws one topic; name it with --explain TOPIC")
    if explain and form != "text" and svg is None:
        raise UsageError(f"--explain is for people at a terminal; leave --format {form} out")
    for name in explain:
        if not fnmatchcase(name, glob):
            raise UsageError(f"--topic {glob} leaves out {name}, so there is nothing to explain")


class Planned(NamedTuple):
    """A plan, and what it was made from."""

    estate: Estate
    state: ClusterState
    plan: Plan


def make_plan(
    estate: Path,
    cluster: str,
    bootstrap_servers: str | None,
    topic: str,
    against: Path | None = None,
    weigh: Weigh = "count",
) -> Planned:
    """Load, read and plan, saying what is going on where it takes a while."""
    if against is not None and bootstrap_servers is not None:
        raise UsageError("--against plans on a file; leave --bootstrap-servers out")
    loaded = api.load_estate(estate)
    api.find_cluster(loaded, cluster)
    if against is not None:
        state = api.read_snapshot(against)
    else:
        with working(f"reading {cluster}"):
            state = api.read_cluster(loaded, cluster, bootstrap_servers=bootstrap_servers)
    return Planned(loaded, state, api.build_plan(loaded, cluster, state, topics=topic, weigh=weigh))


def save_plan(plan: Plan, path: Path) -> None:
    """Write a plan file: whole, or not at all."""
    _write_whole(path, api.render_plan(plan, "json"))
    print_note(f"saved to {path}; apply it with: reconciler apply {path}")


def _write_whole(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def exit_code(plan: Plan, *, detailed: bool) -> int:
    """Return 1 where something is refused, 2 where changes are pending and that was asked."""
    from reconciler.plan import list_refusals, steps_of

    if list_refusals(plan):
        return 1
    return PENDING if detailed and any(steps_of(topic) for topic in plan.topics) else 0
