"""`reconciler fleet generate`: a fleet that does not exist, to try the pipeline on."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli.fleet.options import (
    engine_options,
    lake_option,
    open_lake,
    spark_job,
)
from reconciler.cli.fleet.reading import choose_name
from reconciler.cli.options import Command
from reconciler.cli.terminal import print_note
from reconciler.fleet.session import Engine
from reconciler.units import count

AT_LEAST_ONE = click.IntRange(min=1)


@click.command(cls=Command)
@lake_option
@click.option(
    "--clusters", type=AT_LEAST_ONE, default=10, show_default=True, help="Number of clusters."
)
@click.option(
    "--topics",
    type=AT_LEAST_ONE,
    default=2_000,
    show_default=True,
    help="Number of live topics.",
)
@click.option(
    "--partitions",
    type=AT_LEAST_ONE,
    default=30_000,
    show_default=True,
    help="Number of live partitions.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Seed of the random numbers.",
)
@click.option(
    "--collection",
    metavar="WHEN",
    help="Name of the collection, such as 20261121T030000Z.  [default: now]",
)
@click.option(
    "--estate",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write clusters.yaml there, and the topics where they are few.",
)
@click.option(
    "--troubles",
    is_flag=True,
    help="Add clusters with every problem that fleet audit finds, and a collection of a day "
    "before.",
)
@engine_options
def command(
    root: str,
    clusters: int,
    topics: int,
    partitions: int,
    seed: int,
    collection: str | None,
    *,
    estate: Path | None,
    troubles: bool,
    form: str,
    engine: Engine,
) -> int:
    """Add a synthetic fleet to the lake, with some drift of each kind between specs and clusters.

    The counts are totals over all clusters, and exact; the clusters of --troubles are added to
    them. The same seed gives the same rows. Every reading is marked as synthetic.
    """
    from reconciler.fleet.generator.job import (
        GENERATED_ROOT,
        MOST_TOPICS_IN_FILES,
        generate_fleet,
        write_estate,
    )
    from reconciler.fleet.generator.shapes import FleetSize
    from reconciler.fleet.generator.troubles import list_troubles

    size = FleetSize(clusters, topics, partitions, seed)
    when = choose_name(collection, root)
    troubled = list_troubles() if troubles else ()
    if estate is not None and write_estate(size, estate, troubled):
        print_note(f"wrote the estate to {estate}")
    elif estate is not None:
        why = f"more than {MOST_TOPICS_IN_FILES:,} topics have their specs in the lake alone"
        print_note(f"wrote {estate}/clusters.yaml; {why}")
    with spark_job(engine) as job:
        lake = open_lake(job.session, root, form)
        place = GENERATED_ROOT if estate is None else str(estate)
        made = generate_fleet(
            lake, size, when, root=place, troubles=troubled, announce=job.announce
        )
    counts = ", ".join(
        map(count, (clusters, topics, partitions), ("cluster", "topic", "partition"))
    )
    if troubled:
        counts += f" and {count(len(troubled), 'cluster')} with problems"
    click.echo(f"generated {counts} (seed {seed}) as {made.collection} into {root}")
    return 0
