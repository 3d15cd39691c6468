"""`reconciler describe`: one topic or one broker on one screen."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from reconciler.api.inventory import Source, Target
from reconciler.cli.groups import Group
from reconciler.cli.options import Command
from reconciler.cli.target import aim, target_options
from reconciler.cli.terminal import choose_paint, print_note, screen_width, working
from reconciler.inventory.inventory import Inventory

if TYPE_CHECKING:
    from reconciler.model.plan import Plan


class Kinds(Group):
    """A group whose default is a topic: `describe orders.events`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Take a name that is no kind for that of a topic."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            return "topic", self.commands["topic"], args
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a kind; that of topics for any other name."""
        return super().get_command(ctx, cmd_name) or self.commands["topic"]


_format = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="For a terminal, or for programs.",
)


@click.group(cls=Kinds, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Show one topic or one broker in full.

    `describe NAME` is `describe topic NAME`. It only reads.
    """


@command.command(cls=Command)
@click.argument("name")
@target_options
@_format
def topic(name: str, form: str, **where: Any) -> None:
    """Show a topic: configs and their origins, next plan, replicas, users.

    ESTATE, topics by default, has the connection of --cluster and the spec.
    """
    target = aim(**where)
    with Source(target) as source, working(f"reading {target.name}"):
        found, about = source.describe_topic(name)
        plan = _plan(target, found, name)
    if form != "text":
        from reconciler.cli.documents import print_document
        from reconciler.planfile.inventory_documents import write_topic

        print_document(write_topic(found, about, plan, name), form)
        return
    from reconciler.show.description import render_topic
    from reconciler.show.text import render_planned

    paint = choose_paint(sys.stdout)
    planned = render_planned(plan, name, paint) if plan else []
    if about is None:
        title = paint("bold", f"{name} · not on {found.cluster} yet")
        click.echo("\n".join([title, "", paint("bold", "Next plan"), *planned]), color=True)
    else:
        now_ms = int(time.time() * 1000)
        text = render_topic(found, about, planned, paint, screen_width(), now_ms)
        click.echo(text, nl=False, color=True)
    _print_notes(found)


@command.command(cls=Command)
@click.argument("broker", type=click.IntRange(0), metavar="ID")
@target_options
@_format
def broker(broker: int, form: str, **where: Any) -> None:
    """Show a broker: what it holds, disks, what is not in sync, its configs.

    ESTATE, topics by default, has the connection of --cluster.
    """
    target = aim(**where)
    with Source(target) as source, working(f"reading {target.name}"):
        found, about = source.describe_broker(broker)
    if form != "text":
        from reconciler.cli.documents import print_document
        from reconciler.planfile.inventory_documents import write_broker

        print_document(write_broker(found, about), form)
        return
    from reconciler.show.description import render_broker

    text = render_broker(about, choose_paint(sys.stdout), screen_width())
    click.echo(text, nl=False, color=True)
    _print_notes(found)


def _plan(target: Target, found: Inventory, name: str) -> Plan | None:
    """Plan the topic, as `plan --topic NAME` does; None if no spec names it."""
    if target.estate is None or target.cluster is None or name not in found.specs:
        return None
    from reconciler.api.planning import build_plan, read_cluster

    state = found.state
    if target.against is None:
        servers = target.bootstrap_servers
        state = read_cluster(target.estate, target.cluster, bootstrap_servers=servers)
    return build_plan(target.estate, target.cluster, state, topics=name)


def _print_notes(found: Inventory) -> None:
    for note in found.state.notes:
        print_note(f"{note.severity}: {note}")
