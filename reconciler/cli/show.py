"""`reconciler show`: read a saved plan again, without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.options import plan_format_option, unmanaged_option
from reconciler.cli.plan import print_plan

if TYPE_CHECKING:
    from reconciler.api import PlanFormat
    from reconciler.model import Plan


@click.command()
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@plan_format_option
@unmanaged_option
def command(plan: Path, form: PlanFormat, unmanaged: bool) -> None:
    """Show the saved PLAN. Errors where it was changed after it was made."""
    print_plan(read_plan(plan), form, str(plan), unmanaged=unmanaged)


def read_plan(path: Path) -> Plan:
    """Read a plan file. Errors: PlanFileError."""
    from reconciler.plan import decode_plan

    return decode_plan(path.read_text(encoding="utf-8", errors="replace"), str(path))
