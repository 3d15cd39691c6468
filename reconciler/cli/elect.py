"""`reconciler elect`: a plan that elects preferred leaders."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.api.connections import find_cluster
from reconciler.api.planning import load_estate, plan_elections
from reconciler.api.rendering import PlanFormat
from reconciler.cli import options
from reconciler.cli.plans import PlanFiles, Shown, choose_code, choose_output, print_plans
from reconciler.cli.terminal import working


@click.command(cls=options.Command)
@options.estate_argument
@options.cluster_option
@options.bootstrap_option
@options.choose_topics("Only live topics with such names; quote it; repeatable.")
@options.plan_format_option
@options.out_option
@options.detailed_exitcode_option
def command(
    estate: Path,
    cluster: str,
    *,
    bootstrap_servers: str | None,
    topic: str,
    form: PlanFormat,
    out: Path | None,
    detailed_exitcode: bool,
) -> int:
    """Plan an election of preferred leaders, for example after a broker restarted.

    Every live topic counts, in a file or not. `reconciler apply FILE` makes the elections; they
    move no data. A preferred leader that is dead or not in sync is left out and named.
    Exits 1 if the plan is refused.

    ESTATE has the connection settings. ESTATE defaults to topics.
    """
    from reconciler.model.steps import steps_of

    out, form = choose_output(out, form)
    files = None if out is None else PlanFiles(out, is_many=False)
    if files is not None:
        files.check()
    loaded = load_estate(estate)
    find_cluster(loaded, cluster)
    with working(f"reading {cluster}"):
        plan = plan_elections(loaded, cluster, topics=topic, bootstrap_servers=bootstrap_servers)
    elects = any(map(steps_of, plan.topics))
    if form == "text" and not elects:
        for planned in plan.topics:
            for note in planned.notes:
                click.echo(f"{planned.name}: {note.what}; {note.way_out} [{note.rule}]")
        click.echo("Nothing to elect.")
    else:
        print_plans([Shown(plan, str(out) if out else None)], form)
    if files is not None:
        files.save(plan)
    return choose_code([plan], detailed=detailed_exitcode)
