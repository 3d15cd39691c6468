"""`reconciler show`: read a saved plan again, without a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler import api
from reconciler.cli.terminal import wants_colour

if TYPE_CHECKING:
    from reconciler.model import Plan


@click.command()
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(plan: Path, form: api.PlanFormat) -> None:
    """Show the saved PLAN. Errors where it was changed after it was made."""
    colour = wants_colour(sys.stdout)
    click.echo(api.render_plan(read_plan(plan), form, colour=colour), nl=False, color=True)


def read_plan(path: Path) -> Plan:
    """Read a plan file. Errors: PlanFileError."""
    from reconciler.plan import decode_plan

    return decode_plan(path.read_text(encoding="utf-8", errors="replace"), str(path))
