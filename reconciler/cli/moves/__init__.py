"""`reconciler moves`: replicas that are being moved on a cluster, whoever started that."""

from __future__ import annotations

import click

from reconciler.cli.moves.cancel import cancel
from reconciler.cli.moves.rates import pause, rate
from reconciler.cli.moves.settle import settle
from reconciler.cli.moves.status import status


@click.group(name="moves", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Show, slow, cancel and settle moves of replicas on a cluster, whoever started them."""


for verb in (status, pause, rate, cancel, settle):
    command.add_command(verb)
