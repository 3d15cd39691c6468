"""`reconciler snapshot`: a cluster's state as a file to plan on."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.api.connections import find_cluster
from reconciler.api.planning import load_estate
from reconciler.api.snapshots import take_snapshot, write_snapshot
from reconciler.cli import options
from reconciler.cli.terminal import print_note, working
from reconciler.diff.notes import note_traffic
from reconciler.model.moves import LoadKind
from reconciler.units import approximate_duration, count


@click.command(cls=options.Command)
@options.estate_argument
@options.cluster_option
@options.bootstrap_option
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the snapshot; - prints it.",
)
@click.option(
    "--measure",
    default="0",
    metavar="DURATION",
    callback=options.read_duration,
    help="Measure writes and reads of each partition for this long, such as 10m.",
)
@click.option(
    "--since",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An earlier snapshot: rates are computed from the difference.",
)
def command(
    estate: Path,
    cluster: str,
    bootstrap_servers: str | None,
    out: Path,
    measure: float,
    since: Path | None,
) -> None:
    """Write brokers, topics, replicas and configs of a cluster into a file.

    ESTATE has the connection settings. The file holds no records and no secrets; `plan
    --against`, `simulate` and `sandbox up --like` read it. ESTATE defaults to topics.
    """
    from reconciler.planfile.snapshot import encode_snapshot

    if measure and since is not None:
        raise click.UsageError("--measure and --since exclude each other")
    loaded = load_estate(estate)
    find_cluster(loaded, cluster)
    task = f"reading {cluster}"
    if measure:
        task += f", and measuring its traffic for {approximate_duration(measure)}"
    with working(task):
        state = take_snapshot(
            loaded, cluster, bootstrap_servers=bootstrap_servers, measure_s=measure, since=since
        )
    if out == options.STDOUT:
        click.echo(encode_snapshot(state), nl=False)
    else:
        write_snapshot(state, out)
    for note in (*state.notes, *note_traffic(state, tuple(LoadKind))):
        print_note(f"{note.severity}: {note}")
    brokers, topics = count(len(state.brokers), "broker"), count(len(state.topics), "topic")
    if out != options.STDOUT:
        print_note(f"{cluster}: {brokers} and {topics} saved to {out}")
