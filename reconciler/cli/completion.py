"""`reconciler completion`: what a shell needs to complete commands, options and names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from reconciler.cli.options import Command

PROGRAM = "reconciler"
VARIABLE = "_RECONCILER_COMPLETE"
"""Set by the script when it asks for completions; click names it after the program."""

SHELLS: Mapping[str, type[ShellComplete]] = MappingProxyType(
    {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
)


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(list(SHELLS)))
def command(shell: str) -> None:
    """Print the completion script of SHELL.

    It completes commands, options and files, and from the estate clusters, topics, owners,
    labels and profiles. Nothing is read from a cluster.
    """
    from reconciler.cli.app import group

    click.echo(SHELLS[shell](group, {}, PROGRAM, VARIABLE).source())
