"""`reconciler fleet plan`: what would change on every cluster, and a plan file for each."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
from reconciler.cli.options import Command, detailed_exitcode_option
from reconciler.cli.plans import PENDING, PlanFiles
from reconciler.cli.terminal import paint
from reconciler.errors import UsageError
from reconciler.fleet.lake.attempts import PLANNED
from reconciler.fleet.session import Engine
from reconciler.styling import set_columns
from reconciler.units import approximate_duration, approximate_size, count

if TYPE_CHECKING:
    from pyspark.sql import Row


@click.command(cls=Command)
@click.argument("estate", default="topics", type=click.Path(exists=True))
@lake_option
@collection_option
@click.option("--live", is_flag=True, help="Collect first, and plan that collection.")
@reading_options
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Directory for the plans."
)
@click.option("--moves", is_flag=True, help="Show and save the plans of moves instead.")
@detailed_exitcode_option
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For a terminal, or for programs.",
)
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
    moves: bool,
    detailed_exitcode: bool,
    output: str,
    form: str,
    engine: Engine,
) -> int:
    """Plan every cluster of a collection, by the same code as `reconciler plan`.

    Each file of --out is a plan that `reconciler apply` takes. With --moves these are the plans
    that move replicas, of the clusters that allow moves. Exits 0 on success, 1 if a cluster could
    not be planned or something is refused. ESTATE defaults to topics.
    """
    from reconciler.api.connections import find_cluster
    from reconciler.api.planning import load_estate
    from reconciler.fleet.jobs import plan_collection
    from reconciler.fleet.tables import MOVE_PLANS, PLANS

    if live and collection:
        raise UsageError("--live makes its own collection; leave out --collection")
    if not live:
        refuse_asked(context)
    reading = prepare_reading(estate, asked) if live else None
    loaded = reading.estate if reading else load_estate(estate)
    for name in asked.clusters:
        find_cluster(loaded, name)
    files = None if out is None else PlanFiles(out, is_many=True)
    if files is not None:
        files.check()
    with spark_job(engine) as job:
        lake = open_lake(job.session, root, form)
        if reading:
            collection = reading.collect(lake, name_now(), job.announce).attempt.collection
        made = plan_collection(
            lake, loaded, collection, clusters=asked.clusters, announce=job.announce
        )
        plans, moving = (
            sorted(lake.read(table, made).collect(), key=lambda row: row["cluster"])
            for table in (PLANS, MOVE_PLANS)
        )
    rows = moving if moves else plans
    if output == "json":
        click.echo(_encode_plans(plans, moving))
    elif moves:
        _print_move_plans(plans, moving)
    else:
        print_plans(plans, moving)
        click.echo(f"\n{count(len(plans), 'cluster')}: {sum_up(plans)}")
    if files is not None:
        save_plans(files, [row["cluster"] for row in plans], rows)
    # A cluster without a reading has no plan of moves at all, and that must not look like success.
    if any(row["status"] != PLANNED for row in plans) or any(map(is_troubled, rows)):
        return 1
    return PENDING if detailed_exitcode and any(map(_is_pending, rows)) else 0


def _encode_plans(plans: Sequence[Row], moving: Sequence[Row]) -> str:
    """Encode both kinds of plans, without the plan files, which --out saves."""
    listed = {
        name: [
            {key: value for key, value in row.asDict(recursive=True).items() if key != "plan"}
            for row in rows
        ]
        for name, rows in (("plans", plans), ("move_plans", moving))
    }
    return json.dumps({"format_version": "1.0", **listed}, indent=2, ensure_ascii=False)


def save_plans(files: PlanFiles, clusters: Sequence[str], rows: Sequence[Row]) -> None:
    """Write the plan of each cluster, and remove the file of one that has no plan now.

    `rows`: those of `plans`, or of `move_plans`. Errors: UsageError.
    """
    made_of = {row["cluster"]: row["plan"] for row in rows}
    for cluster in clusters:
        if text := made_of.get(cluster):
            files.keep(cluster, text)
        else:
            files.clear(cluster)


def print_plans(rows: Sequence[Row], moving: Sequence[Row] = ()) -> None:
    """Print the plan of each cluster in a line, its refusals, and whether moves are pending."""
    moves = {row["cluster"]: row for row in moving}
    lines = []
    for row in rows:
        lines.append((row["cluster"], _describe(row)))
        lines += [("", paint("red", refusal)) for refusal in row["refusals"] or ()]
        if (found := moves.get(row["cluster"])) and not _is_idle(found):
            lines.append(("", f"{_describe_moves(found)}, shown by --moves"))
    for line in set_columns(lines):
        click.echo(line, color=True)


def sum_up(rows: Sequence[Row]) -> str:
    """Describe the plans of a fleet in one line. `rows`: those of `plans`."""
    changed = sum(row["changed"] or 0 for row in rows)
    refused = sum(row["refused"] or 0 for row in rows)
    failed = sum(row["status"] != PLANNED for row in rows)
    said = f"{count(changed, 'topic')} to change, {refused:,} refused"
    return said + (f", {count(failed, 'cluster')} not planned" if failed else "")


def _describe(row: Row) -> str:
    if row["status"] != PLANNED:
        return paint("red", f"{row['status']}  {row['error']}")
    if not row["changed"] and not _is_refused(row):
        return paint("green", f"no changes, {count(row['unchanged'], 'topic')} as specified")
    refused = f", {row['refused']:,} refused" if row["refused"] else ""
    refused += ", refused as a whole" if row["refusals"] else ""
    skew = f"leaders max − min {row['leader_skew_before']} → {row['leader_skew_after']}"
    return paint("yellow", f"{row['changed']:,} to change{refused}") + f"  {skew}"


def _print_move_plans(plans: Sequence[Row], moving: Sequence[Row]) -> None:
    """Print the plans of moves, and the clusters that allow none or could not be planned."""
    moves = {row["cluster"]: row for row in moving}
    lines = []
    for row in plans:
        found = moves.get(row["cluster"])
        if found is None:
            failed = row["status"] != PLANNED
            lines.append((row["cluster"], _describe(row) if failed else "allows no moves"))
            continue
        lines.append((row["cluster"], _describe_moves(found)))
        lines += [("", paint("red", refusal)) for refusal in found["refusals"] or ()]
    for line in set_columns(lines):
        click.echo(line, color=True)
    replicas = sum(row["replicas"] or 0 for row in moving)
    copied = approximate_size(sum(row["copied_bytes"] or 0 for row in moving))
    said = f"{count(len(moving), 'cluster')} that {'allows' if len(moving) == 1 else 'allow'} moves"
    click.echo(f"\n{said}: {count(replicas, 'replica')} to copy, {copied}")


def _describe_moves(row: Row) -> str:
    """Describe a plan of moves: what it changes, what it copies, and for how long."""
    if row["status"] != PLANNED:
        return paint("red", f"moves: {row['status']}  {row['error']}")
    if _is_idle(row):
        return paint("green", "nothing to move")
    said = [f"moves: {count(row['partitions'], 'partition')} of {count(row['changed'], 'topic')}"]
    if row["cordons"]:
        said.append(f"{count(row['cordons'], 'broker')} to cordon")
    if row["refused"]:
        said.append(f"{count(row['refused'], 'topic')} refused")
    if row["refusals"]:
        said.append("refused as a whole")
    if row["replicas"]:
        size = approximate_size(row["copied_bytes"] or 0)
        said.append(f"{count(row['replicas'], 'replica')} to copy, {size}")
    if row["seconds"]:
        said.append(f"about {approximate_duration(row['seconds'])}")
    if row["peak_share"] is not None:
        said.append(f"fullest disk at {row['peak_share']:.0%}")
    return paint("yellow", " · ".join(said))


def _is_idle(row: Row) -> bool:
    return row["status"] == PLANNED and not _is_pending(row) and not _is_refused(row)


def _is_pending(row: Row) -> bool:
    """Return whether a plan of changes, or of moves, changes anything; one may only cordon."""
    return bool(row["changed"] or row.asDict().get("cordons"))


def is_troubled(row: Row) -> bool:
    """Return whether there is no plan, or something in it is refused."""
    return row["status"] != PLANNED or _is_refused(row)


def _is_refused(row: Row) -> bool:
    return bool(row["refused"] or row["refusals"])
