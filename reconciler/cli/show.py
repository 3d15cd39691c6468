"""`reconciler show`: read a saved plan again, without a cluster."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.api.rendering import PlanFormat
from reconciler.cli.options import (
    Command,
    detailed_exitcode_option,
    plan_format_option,
    unmanaged_option,
)
from reconciler.cli.plans import Shown, choose_code, print_plans, read_plan


@click.command(cls=Command)
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@plan_format_option
@unmanaged_option
@detailed_exitcode_option
def command(plan: Path, form: PlanFormat, *, unmanaged: bool, detailed_exitcode: bool) -> int:
    """Show the saved PLAN. Fails if it was changed after it was made.

    Exits 0, even if the plan refuses something. With --detailed-exitcode it exits as `plan` did.
    """
    saved = read_plan(plan)
    print_plans([Shown(saved, str(plan))], form, unmanaged=unmanaged)
    return choose_code([saved], detailed=True) if detailed_exitcode else 0
