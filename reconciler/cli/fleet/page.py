"""`reconciler fleet page`: a collection as one HTML page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
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
from reconciler.cli.options import Command
from reconciler.cli.plans import write_whole
from reconciler.cli.terminal import print_note
from reconciler.errors import UsageError
from reconciler.fleet.session import Engine

if TYPE_CHECKING:
    from reconciler.fleet.lake.lake import Lake


@click.command(cls=Command)
@lake_option
@collection_option
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the page, such as fleet.html.",
)
@engine_options
def command(root: str, collection: str | None, out: Path, form: str, engine: Engine) -> int:
    """Write a collection as one page that a browser opens without a server.

    It shows the plans, the drift and the audit that the lake holds of it, and says which it lacks.
    """
    check_page(out)
    with spark_job(engine) as job:
        lake = open_lake(job.session, root, form)
        written = write_page(lake, collection, out, job.announce)
    print_note(f"wrote {written}")
    return 0


def check_page(out: Path) -> None:
    """Refuse a page that has no directory, before Spark starts. Errors: UsageError."""
    if not out.absolute().parent.is_dir():
        raise UsageError(f"{out} cannot be written: {out.parent} is not a directory")


def write_page(
    lake: Lake, collection: str | None, out: Path, announce: Callable[[str], None]
) -> str:
    """Write the page of a collection. Returns: its file, size and collection."""
    from reconciler.fleet.page.gather import gather_page
    from reconciler.fleet.page.html import render_page

    made_at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    page = gather_page(lake, collection, made_at, announce)
    html = render_page(page)
    write_whole(out, html)
    return f"{out}, {len(html.encode()) / 1e6:.1f} MB: {page.collection}"
