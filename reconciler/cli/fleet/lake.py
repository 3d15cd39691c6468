"""`reconciler fleet lake`: list, check and remove the collections of a lake."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.fleet.options import engine_options, lake_option, open_lake, spark_job
from reconciler.cli.groups import Group
from reconciler.cli.options import Command
from reconciler.cli.terminal import print_note
from reconciler.errors import UsageError
from reconciler.fleet.session import Engine
from reconciler.styling import set_columns
from reconciler.units import approximate_size, count

if TYPE_CHECKING:
    from reconciler.fleet.lake.inventory import Holding, Keeping
    from reconciler.fleet.lake.stores import Store


@click.group(name="lake", cls=Group)
def command() -> None:
    """Manage the collections of a lake."""


@contextmanager
def _open_store(root: str, form: str, engine: Engine) -> Iterator[Store]:
    """Open the store of a lake. Spark is started only for a lake that is not on this machine."""
    from reconciler.fleet.lake.stores import LocalStore, is_path
    from reconciler.fleet.trouble import plain_reasons

    if form == "parquet" and engine.remote is None and is_path(root):
        with plain_reasons():
            yield LocalStore(Path(root.removeprefix("file:")).absolute())
    else:
        with spark_job(engine) as job:
            yield open_lake(job.session, root, form).store


@command.command(name="list", cls=Command)
@lake_option
@click.option(
    "--format",
    "shown_as",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For a terminal, or for programs.",
)
@engine_options
def list_(root: str, shown_as: str, form: str, engine: Engine) -> int:
    """List the collections of a lake, the latest last, and what they hold.

    Files and bytes include attempts that a newer one replaced, until they are removed.
    """
    from reconciler.fleet.lake.inventory import take_inventory

    with _open_store(root, form, engine) as store:
        held = take_inventory(store.list_published(), store.measure())
    if shown_as == "json":
        click.echo(json.dumps([asdict(one) for one in held], indent=2, sort_keys=True))
        return 0
    heads = ("collection", "commit", "clusters", "attempts", "files", "size")
    for line in set_columns([heads, *map(_describe, held)]):
        click.echo(line)
    return 0


def _describe(held: Holding) -> tuple[str, ...]:
    unread = f", {held.clusters_unread} unread" if held.clusters_unread else ""
    kinds = (name if n == 1 else f"{n} {name}" for name, n in sorted(held.attempts.items()))
    return (
        held.collection,
        (held.commit or "-")[:12],
        f"{held.clusters_read} read{unread}",
        ", ".join(kinds),
        f"{held.size.files:,}",
        approximate_size(held.size.size_bytes),
    )


@command.command(cls=Command)
@lake_option
@engine_options
def check(root: str, form: str, engine: Engine) -> int:
    """Verify that every collection is complete: count its rows, by table and cluster.

    The attempts that count are checked, as `list` shows them. Exits 1 if rows are missing, and
    names them.
    """
    from reconciler.fleet.lake.maintenance import check_lake

    with spark_job(engine) as job:
        proof = check_lake(open_lake(job.session, root, form), job.announce)
    for damage in proof.damaged:
        print_note(f"error: {damage} [lake-rows]")
    held = f"{count(proof.collections, 'collection')}, {count(proof.attempts, 'attempt')}"
    if proof.damaged:
        click.echo(f"{root} is damaged in {count(len(proof.damaged), 'place')}: {held}")
        return 1
    click.echo(f"{root} is complete: {held}, {count(proof.rows, 'row')}")
    return 0


@command.command(cls=Command)
@lake_option
@click.option("--days", type=click.IntRange(min=1), required=True, help="Number of days to keep.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@engine_options
def keep(root: str, days: int, yes: bool, form: str, engine: Engine) -> int:
    """Remove collections older than --days, with their plans and audits; shows them and asks.

    The history of what goes stays. The latest collection stays, and the last one that read a
    cluster, because the next reading is compared with it.
    """
    from reconciler.fleet.lake.inventory import choose_kept
    from reconciler.fleet.tracing import keep_collections

    before = datetime.now(UTC) - timedelta(days=days)
    with _open_store(root, form, engine) as store:
        keeping = choose_kept(store.list_published(), before)
    if keeping is None or not keeping.going:
        click.echo(f"nothing in {root} is older than {count(days, 'day')}, but what history needs")
        return 0
    _print_keeping(keeping)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                "keep asks for approval before it removes collections; in a job, pass --yes"
            )
        if not click.confirm(f"remove {count(len(keeping.going), 'collection')} from {root}?"):
            return 1
    with spark_job(engine) as job:
        removed = keep_collections(open_lake(job.session, root, form), keeping, job.announce)
    attempts = count(len(removed), "attempt")
    click.echo(f"removed {count(len(keeping.going), 'collection')} from {root}: {attempts}")
    return 0


def _print_keeping(keeping: Keeping) -> None:
    first, last = keeping.going[0], keeping.going[-1]
    click.echo(f"to remove: {count(len(keeping.going), 'collection')}, {first} to {last}")
    click.echo(f"to keep:   {keeping.oldest} and later")
    for collection, clusters in keeping.needed.items():
        click.echo(f"to keep:   {collection}, the last that read or named {', '.join(clusters)}")


@command.command(cls=Command)
@lake_option
@engine_options
def compact(root: str, form: str, engine: Engine) -> int:
    """Merge small files: the rows stay the same, and a job that reads now is not disturbed.

    The files that were merged go a day later, with the next job. Delta and Iceberg merge theirs by
    their own commands.
    """
    from reconciler.fleet.lake.maintenance import compact_lake
    from reconciler.fleet.tracing import MOST_PARTS, fold_history

    with spark_job(engine) as job:
        lake = open_lake(job.session, root, form)
        fold_history(lake, at_least=MOST_PARTS)
        done = compact_lake(lake, job.announce)
    if form != "parquet":
        click.echo(f"compacted {root} by {form}")
        return 0
    files = f"{done.files_before:,} files are now {done.files_after:,}"
    click.echo(f"compacted {count(done.attempts, 'attempt')} in {root}: {files}")
    return 0


@command.command(cls=Command)
@click.argument("collection", metavar="COLLECTION")
@lake_option
@engine_options
def remove(collection: str, root: str, form: str, engine: Engine) -> int:
    """Remove COLLECTION, as 20261121T030000Z, and the plans, audits and history made of it.

    First no job can read it any more, then its files go. An attempt that a job is still writing
    stays. Spark is started only for a lake that is not on this machine.
    """
    from reconciler.fleet.lake.lake import remove_collections

    with _open_store(root, form, engine) as store:
        removed = remove_collections(store, [collection], root)
    kinds = sorted(one.what for one in removed)
    said = f"{count(len(kinds), 'attempt')} ({', '.join(kinds)})"
    click.echo(f"removed {collection} from {root}: {said}")
    return 0
