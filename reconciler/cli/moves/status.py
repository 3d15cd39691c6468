"""`reconciler moves status`: replicas that are being moved on a cluster, whoever started that."""

from __future__ import annotations

import sys
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
from reconciler.cli.screen import Screen
from reconciler.cli.terminal import can_redraw, choose_paint, fold_width, screen_width, working
from reconciler.errors import Severity
from reconciler.moves.progress import MovesReport
from reconciler.planfile.moves_in_flight import MovesDocument
from reconciler.show.moves_in_flight import render_moves, summarise_moves

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
            screen = Screen()
            _print_next(last, form, screen)
            for report in reports:
                _print_next(report, form, screen)
                last = report
    own = last.reading.own_directory_rate
    if last.is_moving or last.leftovers or own is not None:
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


def _print_next(report: MovesReport, form: str, screen: Screen) -> None:
    """Print one of several reports; on a terminal, in the place of the one before."""
    if form == "json":
        click.echo(MovesDocument.write(report).model_dump_json())
        return
    if not can_redraw(sys.stdout):
        click.echo(summarise_moves(report))
        return
    on_stdout = choose_paint(sys.stdout)
    for most in MOST_LISTED:
        text = render_moves(report, on_stdout, width=screen_width(), most=most)
        if screen.fits(text):
            break
    screen.show(text)
