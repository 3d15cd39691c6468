"""`reconciler moves export` and `import`: files of kafka-reassign-partitions, there and back."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from reconciler.api.planning import load_estate, plan_rows, read_for_moves, read_rows
from reconciler.api.rendering import PlanFormat, export_rows
from reconciler.cli import options
from reconciler.cli.plans import check_out, choose_output, offer_plan, read_plan
from reconciler.cli.terminal import working
from reconciler.errors import UsageError


@click.command(cls=options.Command)
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--before", is_flag=True, help="The rows before the plan, to go back to them.")
def export(plan: Path, *, before: bool) -> None:
    """Print the rows that the saved PLAN changes, as kafka-reassign-partitions reads them."""
    made = read_plan(plan)
    if made.moves is None:
        raise UsageError(f"{plan} is no plan of moves; reconciler plan --moves makes one")
    click.echo(export_rows(made, before=before), nl=False)


@click.command("import", cls=options.Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--estate",
    default="topics",
    type=click.Path(exists=True, path_type=Path),
    help="The estate that has the cluster.  [default: topics]",
)
@options.cluster_option
@options.bootstrap_option
@options.against_option
@options.plan_format_option
@options.out_option
@options.detailed_exitcode_option
def import_(
    file: Path,
    *,
    estate: Path,
    cluster: str,
    bootstrap_servers: str | None,
    against: Path | None,
    form: PlanFormat,
    out: Path | None,
    detailed_exitcode: bool,
) -> int:
    """Plan the moves to the rows of FILE, which kafka-reassign-partitions would make.

    Partitions that FILE does not name stay. Rows that the spec of their topic would change again
    are refused. `reconciler apply` makes the moves, throttled and safe to kill.
    """
    out, form = choose_output(out, form)
    check_out(out)
    rows = read_rows(file)
    loaded = load_estate(estate)
    plan = partial(plan_rows, loaded, cluster, rows=rows, source=str(file))
    with working(f"reading {cluster}"):
        state = read_for_moves(loaded, cluster, bootstrap_servers, against, plan)
        planned = plan(state)
    return offer_plan(planned, form, out, detailed=detailed_exitcode)
