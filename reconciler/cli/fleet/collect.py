"""`reconciler fleet collect`: add a snapshot of every cluster to the lake."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.fleet.options import (
    announce,
    engine_options,
    lake_option,
    open_lake,
    read_addresses,
    spark_job,
)
from reconciler.cli.git import Checkout, GitError, read_commit
from reconciler.cli.terminal import paint, print_note
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from reconciler.fleet.session import Engine
    from reconciler.fleet.source.spec_tree import Tree
    from reconciler.model import Commit
    from reconciler.spec import ClusterEntry, Estate


@click.command()
@click.argument("estate", default="topics", type=click.Path(exists=True))
@lake_option
@click.option("--collection", metavar="WHEN", help="Name it, as 20261121T030000Z.  [default: now]")
@click.option("--cluster", "clusters", multiple=True, metavar="NAME", help="Only these.")
@click.option("--commit", metavar="REF", help="The specs as they are there, in git.")
@click.option("--bootstrap-servers", "addresses", multiple=True, metavar="NAME=HOST:PORT,…")
@click.option(
    "--ranges", type=click.IntRange(1, 1000), default=1, help="Split each cluster's topics."
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="As long may the reading of a cluster take.",
)
@engine_options
def command(
    estate: str,
    *,
    root: str,
    collection: str | None,
    clusters: tuple[str, ...],
    commit: str | None,
    addresses: tuple[str, ...],
    ranges: int,
    time_limit: float,
    form: str,
    engine: Engine,
) -> int:
    """Read every cluster of ESTATE and its specs, and add both to the lake.

    Exits 0 when every cluster was read, 1 when some could not be; what was read is kept.
    """
    from reconciler.fleet.jobs import collect_fleet
    from reconciler.fleet.lake import start_attempt, write_commit
    from reconciler.fleet.source.kafka_metadata import choose_clusters
    from reconciler.fleet.source.spec_tree import find_tree

    start_attempt(when := collection or datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ"))
    read_at = _find_commit(estate, commit)
    tree = find_tree(estate, read_at.sha if commit and read_at else None)
    entries = _choose_entries(tree.load(), clusters)
    chosen = choose_clusters(entries, read_addresses(addresses), ranges, time_limit)
    with spark_job(engine) as session:
        lake = open_lake(session, root, form)
        facts, specs = _read(session, chosen), _load_specs(session, tree)
        sha = write_commit(read_at)
        done = collect_fleet(lake, facts, specs, when, commit=sha, announce=announce)
    _print_readings(done.readings)
    click.echo(f"\ncollected {done.attempt.collection} into {root}")
    return 0 if all(row["status"] == "read" for row in done.readings) else 1


def _choose_entries(estate: Estate, clusters: Sequence[str]) -> list[ClusterEntry]:
    from reconciler.api import find_cluster

    if not (clusters or estate.declared):
        raise UsageError("clusters.yaml names no cluster, so there is no fleet")
    return [find_cluster(estate, name) for name in clusters or estate.declared]


def _find_commit(estate: str, ref: str | None) -> Commit | None:
    """Return the commit that was asked for, or the one that the files lie at, if git can tell."""
    from reconciler.model import Commit

    if ref is not None:
        return Commit(Checkout(Path(estate)).find_commit(ref))
    try:
        return read_commit(Path(estate))
    except GitError as error:
        if error.is_surprising:
            print_note(f"the collection names no commit of its specs: {error}")
        return None


def _read(session: SparkSession, chosen: Mapping[str, str]) -> DataFrame:
    from reconciler.fleet.source.kafka_metadata import KafkaMetadata

    session.dataSource.register(KafkaMetadata)
    return session.read.format(KafkaMetadata.name()).options(**chosen).load()


def _load_specs(session: SparkSession, tree: Tree) -> DataFrame:
    from reconciler.fleet.source.spec_tree import SpecTree

    session.dataSource.register(SpecTree)
    return session.read.format(SpecTree.name()).options(**tree.list_options()).load()


def _print_readings(readings: Sequence[Mapping[str, Any]]) -> None:
    width = max(len(row["cluster"]) for row in readings)
    for row in readings:
        well = row["status"] == "read"
        said = f"{row['read_ms'] / 1000:.1f} s" if well else row["error"]
        status = paint("green" if well else "red", f"{row['status']:<16}")
        click.echo(f"{row['cluster']:<{width}}  {status}  {said}", color=True)
