"""`reconciler fleet collect`: add a snapshot of every cluster to the lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from reconciler.cli.fleet.options import engine_options, lake_option, open_lake, spark_job
from reconciler.cli.fleet.reading import (
    ReadOptions,
    choose_name,
    prepare_reading,
    reading_options,
)
from reconciler.cli.options import Command
from reconciler.cli.terminal import paint
from reconciler.fleet.lake.attempts import READ
from reconciler.fleet.session import Engine
from reconciler.styling import set_columns


@click.command(cls=Command)
@click.argument("estate", default="topics", type=click.Path(exists=True))
@lake_option
@click.option(
    "--collection",
    metavar="WHEN",
    help="Name of the collection, such as 20261121T030000Z.  [default: now]",
)
@reading_options
@engine_options
def command(
    estate: str,
    *,
    root: str,
    collection: str | None,
    asked: ReadOptions,
    form: str,
    engine: Engine,
) -> int:
    """Read every cluster of ESTATE and its specs, and add both to the lake.

    Exits 0 when every cluster was read, 1 when some could not be; what was read is kept.
    ESTATE defaults to topics.
    """
    when = choose_name(collection, root)
    reading = prepare_reading(estate, asked)
    with spark_job(engine) as job:
        done = reading.collect(open_lake(job.session, root, form), when, job.announce)
    print_readings(done.readings)
    click.echo(f"\ncollected {done.attempt.collection} into {root}")
    return 0 if all(row["status"] == READ for row in done.readings) else 1


def print_readings(readings: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for each cluster: how long it took to read, or why it could not be read."""
    rows = []
    for row in readings:
        well = row["status"] == READ
        status = paint("green" if well else "red", row["status"])
        said = f"{row['read_ms'] / 1000:.1f} s" if well else row["error"]
        rows.append((row["cluster"], status, said))
    for line in set_columns(rows, least=(0, 16)):
        click.echo(line, color=True)
