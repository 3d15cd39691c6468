"""`reconciler health`: what is wrong with a cluster, by name."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reconciler.api.health import report_health
from reconciler.api.planning import load_estate
from reconciler.cli import options
from reconciler.cli.terminal import choose_paint, fold_width, working

AT_RISK = 2
"""The exit code if data or availability is at risk."""


@click.command(cls=options.Command)
@options.estate_argument
@options.cluster_option
@options.bootstrap_option
@click.option(
    "--against",
    metavar="SNAPSHOT",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Judge this snapshot instead of the cluster.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For a terminal, or for programs; json lists every name.",
)
def command(
    estate: Path, cluster: str, bootstrap_servers: str | None, against: Path | None, form: str
) -> int:
    """Show what is wrong with a cluster: partitions, brokers and disks by name. Read-only.

    Offline, unwritable and under-replicated partitions, dead brokers, failed and nearly full log
    directories are a risk; moves, throttles, preferred leaders that do not lead, cordoned and
    fenced brokers are notes. ESTATE has the connection settings. ESTATE defaults to topics.

    Exits 2 if data or availability is at risk, 1 if the cluster could not be read, else 0.
    """
    loaded = load_estate(estate)
    with working(f"reading {cluster}"):
        report = report_health(
            loaded, cluster, bootstrap_servers=bootstrap_servers, against=against
        )
    if form == "json":
        from reconciler.planfile.health_document import HealthDocument

        click.echo(HealthDocument.write(report).model_dump_json(indent=2))
    else:
        from reconciler.show.health import render_health

        on_stdout = choose_paint(sys.stdout)
        text = render_health(report, on_stdout, width=fold_width())
        click.echo(text, nl=False, color=on_stdout.wanted)
    if report.health.at_risk:
        return AT_RISK
    return int(report.is_partial)
