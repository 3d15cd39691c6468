"""Groups of commands: an unknown command gets the nearest one, or what does the same here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import click

MEANT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "check": ("validate", "apply --check"),
        "create": ("apply",),
        "delete": ("apply",),
        "deploy": ("apply",),
        "diff": ("plan",),
        "drift": ("plan --detailed-exitcode",),
        "export": ("import", "snapshot"),
        "graph": ("plan --explain",),
        "help": ("--help",),
        "lint": ("validate",),
        "list": ("get topics", "owners"),
        "ls": ("get topics", "owners"),
        "move": ("plan --moves", "moves"),
        "moves abort": ("moves cancel",),
        "moves list": ("moves status",),
        "moves start": ("apply",),
        "moves stop": ("moves pause", "moves cancel"),
        "moves throttle": ("moves rate",),
        "preview": ("plan",),
        "reassign": ("plan --moves", "moves import"),
        "sandbox create": ("sandbox up",),
        "sandbox delete": ("sandbox down",),
        "sandbox start": ("sandbox up",),
        "sandbox stop": ("sandbox down",),
        "status": ("health", "plan", "moves status"),
        "sync": ("apply",),
        "test": ("validate", "rehearse"),
        "update": ("apply",),
        "version": ("--version",),
    }
)
"""Words that other tools use for what a verb of ours does: Terraform, kubectl, topicctl, git.

Below a group of commands, its name comes first.
"""


class Group(click.Group):
    """A group that names the nearest of its commands where it has none of that name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. Errors: click.UsageError that names what was perhaps meant."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            ctx.fail(f"no command '{name}'{self._suggest(ctx, name)}")
        return super().resolve_command(ctx, args)

    def _suggest(self, ctx: click.Context, name: str) -> str:
        from difflib import get_close_matches

        word, path = name.lower(), ctx.command_path
        root, _, group = path.partition(" ")
        if meant := MEANT.get(f"{group} {word}".lstrip()):
            return f"; use `{'` or `'.join(f'{root} {each}' for each in meant)}`"
        if near := get_close_matches(word, self.list_commands(ctx), n=1):
            return f"; did you mean `{path} {near[0]}`?"
        return f"; `{path} --help` lists them"
