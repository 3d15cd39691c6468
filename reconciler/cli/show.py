"""`reconciler show`: read a saved plan again, without a cluster."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.api.rendering import PlanFormat
from reconciler.cli.options import Command, plan_format_option, unmanaged_option
from reconciler.cli.plans import Shown, print_plans, read_plan


@click.command(cls=Command)
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@plan_format_option
@unmanaged_option
def command(plan: Path, form: PlanFormat, unmanaged: bool) -> None:
    """Show the saved PLAN. Fails if it was changed after it was made."""
    print_plans([Shown(read_plan(plan), str(plan))], form, unmanaged=unmanaged)
