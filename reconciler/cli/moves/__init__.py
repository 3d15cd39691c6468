"""`reconciler moves`: replicas that are being moved on a cluster, whoever started that."""

from __future__ import annotations

import click

from reconciler.cli.groups import Group
from reconciler.cli.moves import cancel, files, rates, settle, status, unthrottle


@click.group(name="moves", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Show, throttle, cancel and clean up moves of replicas, and exchange plans of moves as
    files."""


for verb in (
    status.command,
    rates.pause,
    rates.rate,
    cancel.command,
    settle.command,
    unthrottle.command,
    files.export,
    files.import_,
):
    command.add_command(verb)
