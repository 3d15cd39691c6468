"""`reconciler fleet metrics`: what a lake holds, for Prometheus."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli.figures import check_file
from reconciler.cli.fleet.options import engine_options, lake_option, open_lake, spark_job
from reconciler.cli.options import Command
from reconciler.cli.plans import write_whole
from reconciler.cli.terminal import print_note
from reconciler.fleet.session import Engine
from reconciler.metrics.text import render_metrics


@click.command(cls=Command)
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@lake_option
@engine_options
def command(file: Path, root: str, form: str, engine: Engine) -> int:
    """Write the latest collection, plans and audit of a lake as metrics to FILE.

    FILE is for the textfile collector of node_exporter, and is replaced at once.
    """
    from reconciler.fleet.metrics import gather_metrics

    check_file(file)
    with spark_job(engine) as job:
        lake = open_lake(job.session, root, form)
        text = render_metrics(gather_metrics(lake, job.announce))
    write_whole(file, text)
    print_note(f"wrote {file}")
    return 0
