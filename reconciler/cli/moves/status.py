"""`reconciler moves status`: replicas that are being moved on a cluster, whoever started that."""

from __future__ import annotations

import shutil
import sys
from itertools import accumulate
from math import ceil
from pathlib import Path

import click

from reconciler.api.moves import watch_moves
from reconciler.cli.moves.target import (
    IN_FLIGHT,
    cluster_option,
    connect_moves,
    estate_argument,
)
from reconciler.cli.options import Command, bootstrap_option
from reconciler.cli.terminal import can_redraw, choose_paint, fold_width, working
from reconciler.errors import Severity
from reconciler.moves.progress import MovesReport
from reconciler.planfile.moves_in_flight import MovesDocument
from reconciler.show.moves_in_flight import render_moves, summarise_moves
from reconciler.styling import ERASE_BELOW, measure, move_up
from reconciler.units import count

DEFAULT_WATCH_S = 5
MOST_LISTED = (None, 20, 10, 5)
"""How many partitions are listed on a screen: the first of these numbers that fits, or the last."""


@click.command(name="status", cls=Command)
@estate_argument
@cluster_option
@bootstrap_option
@click.option(
    "--watch",
    "every_s",
    is_flag=False,
    flag_value=str(DEFAULT_WATCH_S),
    metavar="[SECONDS]",
    type=click.IntRange(1, 3600),
    help=f"Refresh until nothing is in flight.  [every {DEFAULT_WATCH_S} s]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For a terminal, or for programs; with --watch, one line of JSON for each reading.",
)
def command(
    estate: Path | None,
    cluster: str | None,
    bootstrap_servers: str | None,
    every_s: int | None,
    form: str,
) -> int:
    """Show moves in flight, the slowest one, and throttles.

    It shows what runs on the cluster, whoever started it, and throttles that nothing uses any more.
    With --cluster, ESTATE has the connection settings; without, --bootstrap-servers is the address.
    ESTATE defaults to topics. Exits 2 while something is in flight or left over.
    """
    with connect_moves(estate, cluster, bootstrap_servers) as connection:
        reports = watch_moves(connection, every_s or 0)
        with working(f"reading {connection.entry.name}"):
            last = next(reports)
        if every_s is None:
            _print(last, form)
        else:
            above = _print_next(last, form, 0)
            for report in reports:
                above = _print_next(report, form, above)
                last = report
    if last.moves or last.leftovers:
        return IN_FLIGHT
    # What nobody saw may be in flight or left over.
    return int(any(note.severity is Severity.WARNING for note in last.reading.notes))


def _print(report: MovesReport, form: str) -> None:
    if form == "json":
        click.echo(MovesDocument.write(report).model_dump_json(indent=2))
        return
    on_stdout = choose_paint(sys.stdout)
    text = render_moves(report, on_stdout, width=fold_width())
    click.echo(text, nl=False, color=on_stdout.wanted)


def _print_next(report: MovesReport, form: str, above: int) -> int:
    """Print one of several reports. Returns the rows of the screen that the next one replaces."""
    if form == "json":
        click.echo(MovesDocument.write(report).model_dump_json())
        return 0
    if not can_redraw(sys.stdout):
        click.echo(summarise_moves(report))
        return 0
    on_stdout = choose_paint(sys.stdout)
    columns, rows = shutil.get_terminal_size()
    # A text that is longer than the screen could not be replaced: its first lines are gone.
    for most in MOST_LISTED:
        text = render_moves(report, on_stdout, width=columns, most=most)
        lines = text.splitlines()
        taken = list(accumulate(max(ceil(measure(line) / columns), 1) for line in lines))
        if taken[-1] < rows:
            break
    if taken[-1] >= rows:
        shown = sum(end < rows - 1 for end in taken)
        lines = [*lines[:shown], f"… {count(len(lines) - shown, 'more line')}"]
        taken = [*taken[:shown], taken[shown - 1] + 1]
    text = "".join(f"{line}\n" for line in lines)
    click.echo(f"{move_up(above)}{ERASE_BELOW}{text}", nl=False, color=True)
    return taken[-1]
