"""`reconciler fleet plan`: what would change on every cluster, and a plan file for each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.fleet.options import (
    collection_option,
    engine_options,
    lake_option,
    open_lake,
    spark_job,
)
from reconciler.cli.fleet.reading import (
    ReadOptions,
    name_now,
    prepare_reading,
    reading_options,
    refuse_asked,
)
from reconciler.cli.plans import PlanFiles
from reconciler.cli.terminal import paint
from reconciler.errors import UsageError
from reconciler.fleet import PLANNED
from reconciler.styling import set_columns
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Row

    from reconciler.fleet import Engine

PENDING = 2


@click.command()
@click.argument("estate", default="topics", type=click.Path(exists=True))
@lake_option
@collection_option
@click.option("--live", is_flag=True, help="Collect first, and plan that.")
@reading_options
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Save the plans there."
)
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 when changes are pending.")
@engine_options
@click.pass_context
def command(
    context: click.Context,
    *,
    estate: str,
    root: str,
    collection: str | None,
    live: bool,
    asked: ReadOptions,
    out: Path | None,
    detailed_exitcode: bool,
    form: str,
    engine: Engine,
) -> int:
    """Plan every cluster of a collection, by the same code as `reconciler plan`.

    Each file of --out is a plan that `reconciler apply` takes. Exits 0 on success, 1
    if a cluster could not be planned or something is refused. ESTATE defaults to topics.
    """
    from reconciler.api import load_estate
    from reconciler.fleet import plan_collection

    if live and collection:
        raise UsageError("--live makes its own collection; leave out --collection")
    if not live:
        refuse_asked(context)
    reading = prepare_reading(estate, asked) if live else None
    loaded = reading.estate if reading else load_estate(estate)
    files = None if out is None else PlanFiles(out, is_many=True)
    if files is not None:
        files.check()
    with spark_job(engine) as job:
        lake = open_lake(job.session, root, form)
        if reading:
            collection = reading.collect(lake, name_now(), job.announce).attempt.collection
        plans = plan_collection(
            lake, loaded, collection, clusters=asked.clusters, announce=job.announce
        )
        rows = sorted(plans.collect(), key=lambda row: row["cluster"])
    _print_plans(rows)
    if files is not None:
        for row in rows:
            if row["plan"] is None:
                files.clear(row["cluster"])
            else:
                files.keep(row["cluster"], row["plan"])
    if any(row["status"] != PLANNED or _is_refused(row) for row in rows):
        return 1
    return PENDING if detailed_exitcode and any(row["changed"] for row in rows) else 0


def _print_plans(rows: Sequence[Row]) -> None:
    lines = []
    for row in rows:
        lines.append((row["cluster"], _describe(row)))
        lines += [("", paint("red", refusal)) for refusal in row["refusals"] or ()]
    for line in set_columns(lines):
        click.echo(line, color=True)
    changed = sum(row["changed"] or 0 for row in rows)
    refused = sum(row["refused"] or 0 for row in rows)
    failed = sum(row["status"] != PLANNED for row in rows)
    said = (
        f"{count(len(rows), 'cluster')}: {count(changed, 'topic')} to change, {refused:,} refused"
    )
    click.echo(f"\n{said}" + (f", {count(failed, 'cluster')} not planned" if failed else ""))


def _describe(row: Row) -> str:
    if row["status"] != PLANNED:
        return paint("red", f"{row['status']}  {row['error']}")
    if not row["changed"] and not _is_refused(row):
        return paint("green", f"no changes, {row['unchanged']:,} topics as specified")
    refused = f", {row['refused']:,} refused" if row["refused"] else ""
    refused += ", refused as a whole" if row["refusals"] else ""
    skew = f"leaders max − min {row['leader_skew_before']} → {row['leader_skew_after']}"
    return paint("yellow", f"{row['changed']:,} to change{refused}") + f"  {skew}"


def _is_refused(row: Row) -> bool:
    return bool(row["refused"] or row["refusals"])
