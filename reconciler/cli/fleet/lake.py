"""`reconciler fleet lake`: what a lake holds. `remove` takes a collection out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli.fleet.options import engine_options, lake_option, open_lake, spark_job
from reconciler.units import count

if TYPE_CHECKING:
    from reconciler.fleet import Engine


@click.group(name="lake")
def command() -> None:
    """Manage the collections of a lake."""


@command.command()
@click.argument("collection", metavar="COLLECTION")
@lake_option
@engine_options
def remove(collection: str, root: str, form: str, engine: Engine) -> int:
    """Remove COLLECTION, as 20261121T030000Z, and the plans, audits and history made of it.

    First no job can read it any more, then its files go. An attempt that a job is still writing
    stays. Spark is started only for a lake that is not on this machine.
    """
    from pathlib import Path

    from reconciler.fleet import LocalStore, is_path, plain_reasons, remove_collection

    if form == "parquet" and engine.remote is None and is_path(root):
        with plain_reasons():
            store = LocalStore(Path(root.removeprefix("file:")).absolute())
            removed = remove_collection(store, collection, root)
    else:
        with spark_job(engine) as job:
            removed = open_lake(job.session, root, form).remove(collection)
    kinds = sorted(one.what for one in removed)
    said = f"{count(len(kinds), 'attempt')} ({', '.join(kinds)})"
    click.echo(f"removed {collection} from {root}: {said}")
    return 0
