"""`reconciler plan`: show exactly what would change, and change nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler import api
from reconciler.cli import options
from reconciler.cli.terminal import print_note, wants_colour, working
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.model import Plan
    from reconciler.spec import Estate

PENDING = 2


@click.command()
@options.estate_argument
@options.cluster_option
@options.bootstrap_option
@options.topic_option
@options.against_option
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Save the plan.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 when changes are pending.")
def command(
    estate: Path,
    cluster: str,
    bootstrap_servers: str | None,
    topic: str,
    against: Path | None,
    form: api.PlanFormat,
    out: Path | None,
    detailed_exitcode: bool,
) -> int:
    """Check every spec in ESTATE, compare with a cluster, and print what would change.

    Exits 0 when that went well, 1 on an error or where something is refused. With --against no
    network is used.
    """
    plan = make_plan(estate, cluster, bootstrap_servers, topic, against)[1]
    click.echo(api.render_plan(plan, form, colour=wants_colour(sys.stdout)), nl=False, color=True)
    if out is not None:
        save_plan(plan, out)
    return exit_code(plan, detailed=detailed_exitcode)


def make_plan(
    estate: Path,
    cluster: str,
    bootstrap_servers: str | None,
    topic: str,
    against: Path | None = None,
) -> tuple[Estate, Plan]:
    """Load, read and plan, saying what is going on where it takes a while."""
    if against is not None and bootstrap_servers is not None:
        raise UsageError("--against plans on a file; leave --bootstrap-servers out")
    loaded = api.load_estate(estate)
    api.find_cluster(loaded, cluster)
    if against is not None:
        return loaded, api.build_plan(loaded, cluster, api.read_snapshot(against), topics=topic)
    with working(f"reading {cluster}"):
        state = api.read_cluster(loaded, cluster, bootstrap_servers=bootstrap_servers)
    return loaded, api.build_plan(loaded, cluster, state, topics=topic)


def save_plan(plan: Plan, path: Path) -> None:
    """Write a plan file: whole, or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(api.render_plan(plan, "json"), encoding="utf-8")
    partial.replace(path)
    print_note(f"saved to {path}; apply it with: reconciler apply {path}")


def exit_code(plan: Plan, *, detailed: bool) -> int:
    """Return 1 where something is refused, 2 where changes are pending and that was asked."""
    from reconciler.plan import steps_of

    if any(topic.refusals for topic in plan.topics):
        return 1
    return PENDING if detailed and any(steps_of(topic) for topic in plan.topics) else 0
