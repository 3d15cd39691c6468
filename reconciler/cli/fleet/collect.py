"""`reconciler fleet collect`: add a snapshot of every cluster to the lake."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from reconciler.cli.fleet.options import (
    announce,
    engine_options,
    lake_option,
    open_lake,
    read_addresses,
    spark_job,
)
from reconciler.cli.terminal import paint
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from reconciler.fleet.session import Engine
    from reconciler.spec import Estate


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
@engine_options
def command(
    estate: str,
    root: str,
    collection: str | None,
    clusters: tuple[str, ...],
    commit: str | None,
    addresses: tuple[str, ...],
    ranges: int,
    form: str,
    engine: Engine,
) -> int:
    """Read every cluster of ESTATE and its specs, and add both to the lake.

    Exits 0 when every cluster was read, 1 when some could not be; what was read is kept.
    """
    from reconciler.fleet.jobs import collect_fleet
    from reconciler.fleet.source.spec_tree import open_estate

    servers = read_addresses(addresses)
    with open_estate(".", commit, estate) as loaded, spark_job(engine) as session:
        lake = open_lake(session, root, form)
        facts = _read(session, loaded, clusters or loaded.declared, servers, ranges)
        specs = _load_specs(session, estate, commit)
        when = collection or datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        done = collect_fleet(lake, facts, specs, when, commit=commit, announce=announce)
    _print_readings(done.readings)
    click.echo(f"\ncollected {done.attempt.collection} into {root}")
    return 0 if all(row["status"] == "read" for row in done.readings) else 1


def _read(
    session: SparkSession,
    estate: Estate,
    clusters: Sequence[str],
    servers: Mapping[str, str],
    ranges: int,
) -> DataFrame:
    from reconciler.api import find_cluster
    from reconciler.fleet.source.kafka_metadata import KafkaMetadata, choose_clusters

    if not clusters:
        raise UsageError("clusters.yaml names no cluster, so there is no fleet")
    session.dataSource.register(KafkaMetadata)
    chosen = choose_clusters([find_cluster(estate, name) for name in clusters], servers, ranges)
    return session.read.format(KafkaMetadata.name()).options(**chosen).load()


def _load_specs(session: SparkSession, estate: str, commit: str | None) -> DataFrame:
    from reconciler.fleet.source.spec_tree import SpecTree

    session.dataSource.register(SpecTree)
    reader = session.read.format(SpecTree.name()).option("estate", estate)
    return (reader.option("commit", commit) if commit else reader).load()


def _print_readings(readings: Sequence[Row]) -> None:
    width = max(len(row["cluster"]) for row in readings)
    for row in readings:
        well = row["status"] == "read"
        said = f"{row['read_ms'] / 1000:.1f} s" if well else row["error"]
        status = paint("green" if well else "red", f"{row['status']:<16}")
        click.echo(f"{row['cluster']:<{width}}  {status}  {said}", color=True)
