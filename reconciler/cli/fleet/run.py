"""`reconciler fleet run`: a night of a fleet in one session of Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import click

from reconciler.cli.fleet.audit import print_causes
from reconciler.cli.fleet.collect import print_readings
from reconciler.cli.fleet.options import engine_options, lake_option, open_lake, spark_job
from reconciler.cli.fleet.page import check_page, write_page
from reconciler.cli.fleet.plan import is_troubled, print_plans, save_plans, sum_up
from reconciler.cli.fleet.reading import (
    ReadOptions,
    choose_name,
    prepare_reading,
    reading_options,
)
from reconciler.cli.options import Command
from reconciler.cli.plans import PlanFiles
from reconciler.errors import Severity
from reconciler.fleet.lake.attempts import READ
from reconciler.fleet.session import Engine
from reconciler.styling import set_columns
from reconciler.units import count

SHOWN = 5
"""How many findings of a rule are printed."""


@click.command(cls=Command)
@click.argument("estate", default="topics", type=click.Path(exists=True))
@lake_option
@click.option(
    "--collection",
    metavar="WHEN",
    help="Name of the collection, such as 20261121T030000Z.  [default: now]",
)
@reading_options
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Directory for the plans."
)
@click.option(
    "--page",
    "page_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the page.",
)
@engine_options
def command(
    estate: str,
    *,
    root: str,
    collection: str | None,
    asked: ReadOptions,
    out: Path | None,
    page_file: Path | None,
    form: str,
    engine: Engine,
) -> int:
    """Collect, plan, audit and compare every cluster of ESTATE, and write the page.

    The lake then holds what `collect`, `plan`, `audit` and `history` would have added one by one;
    Spark starts only once. It prints what needs attention; the page and the single jobs show the
    rest. Exits 0 if everything is healthy, 1 if a cluster was not read or planned, something is
    refused, or the audit found an error. ESTATE defaults to topics.
    """
    from reconciler.fleet.audit.audit import count_severities, summarise_causes
    from reconciler.fleet.audit.rules import AUDIT_RULES
    from reconciler.fleet.jobs import audit_collection, plan_collection
    from reconciler.fleet.tables import EVENTS, FINDINGS, PLANS
    from reconciler.fleet.tracing import read_history, trace_collections

    when = choose_name(collection, root)
    if page_file is not None:
        check_page(page_file)
    files = None if out is None else PlanFiles(out, is_many=True)
    if files is not None:
        files.check()
    reading = prepare_reading(estate, asked)
    # Printed also if a later stage fails: what the earlier ones published stays in the lake.
    with Stages() as stages, spark_job(engine) as job:
        lake = open_lake(job.session, root, form)
        with stages.run("collect") as say:
            readings = reading.collect(lake, when, job.announce).readings
            unread = [row for row in readings if row["status"] != READ]
            say(count(len(readings), "cluster") + (f", {len(unread)} not read" if unread else ""))
        with stages.run("plan") as say:
            made = plan_collection(
                lake, reading.estate, when, clusters=asked.clusters, announce=job.announce
            )
            plans = sorted(lake.read(PLANS, made).collect(), key=lambda row: row["cluster"])
            say(sum_up(plans))
        with stages.run("audit") as say:
            made = audit_collection(lake, reading.estate, when, announce=job.announce)
            found = summarise_causes(lake.read(FINDINGS, made), SHOWN)
            severities = count_severities(found)
            say(", ".join(count(number, str(which)) for which, number in severities.items()))
        with stages.run("history") as say:
            made = trace_collections(lake, announce=job.announce)
            events = read_history(lake, made)[EVENTS.name]
            happened = events.where(f"first_seen = '{when}'").count()
            say(f"{count(happened, 'event')} since the collection before")
        if page_file is not None:
            with stages.run("page") as say:
                say(write_page(lake, when, page_file, job.announce))
    if files is not None:
        save_plans(files, [row["cluster"] for row in plans], plans)
    troubled = [row for row in plans if is_troubled(row)]
    errors = [one for one in found if AUDIT_RULES[one.rule].severity is Severity.ERROR]
    if unread:
        click.echo()
        print_readings(unread)
    if troubled:
        click.echo()
        print_plans(troubled)
    if errors:
        click.echo()
        print_causes(errors)
    return 1 if unread or troubled or errors else 0


class Stages:
    """The stages that have ended: what each found, and how long it took; printed at the end."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for line in set_columns(self._rows):
            click.echo(line, color=True)

    @contextmanager
    def run(self, name: str) -> Iterator[Callable[[str], None]]:
        """Time a stage. Yields: the receiver of the line on what it found."""
        began, found = time.monotonic(), [""]
        yield found.append
        self._rows.append((name, found[-1], f"{time.monotonic() - began:.1f} s"))
