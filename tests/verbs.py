"""Every command of the command line by its words, so that a new one falls under the same tests."""

from __future__ import annotations

from collections.abc import Iterator

import click

from reconciler.cli.app import group


def list_commands(
    command: click.Command = group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """List every command that does something, with the words that call it."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from list_commands(found, (*path, name))


COMMANDS = {" ".join(path): command for path, command in list_commands()}
