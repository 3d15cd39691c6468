"""`reconciler get`: topics, brokers, partitions, groups and configs of a cluster, as rows."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from reconciler.api.inventory import Need, Source, Target
from reconciler.cli.groups import Group
from reconciler.cli.options import Command, read_duration
from reconciler.cli.screen import Screen
from reconciler.cli.target import aim, target_options
from reconciler.cli.terminal import (
    can_redraw,
    choose_paint,
    fold_to_screen,
    fold_width,
    print_note,
    working,
)
from reconciler.inventory.brokers import BrokerRow, list_brokers
from reconciler.inventory.configs import ConfigRow, check_keys, list_configs
from reconciler.inventory.groups import GroupRow, list_groups
from reconciler.inventory.inventory import Choice, Inventory, Kind, read_labels
from reconciler.inventory.topics import PartitionRow, TopicRow, list_partitions, list_topics
from reconciler.show.inventory import close_rows, render_rows

F = TypeVar("F", bound="Callable[..., Any]")

DEFAULT_WATCH_S = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """The options that kinds of rows share."""

    estate: Path | None
    cluster: str | None
    bootstrap_servers: str | None
    against: Path | None
    form: str
    every_s: int | None
    topics: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    unmanaged: bool = False
    internal: bool = False
    unhealthy: bool = False
    idle_s: float | None = None

    def choose(self) -> Choice:
        """Return the choice of topics, as of now."""
        return Choice(
            topics=self.topics,
            owners=self.owners,
            labels=read_labels(self.labels),
            unmanaged=self.unmanaged,
            internal=self.internal,
            unhealthy=self.unhealthy,
            idle_since_ms=None if self.idle_s is None else int((time.time() - self.idle_s) * 1000),
        )

    def aim(self) -> Target:
        """Return where to read. Errors: SpecError; UsageError for an unknown cluster."""
        return aim(self.estate, self.cluster, self.bootstrap_servers, self.against)


def _common(command: F) -> F:
    """Add the options that every kind has: the cluster, and the form of the answer."""
    form = click.option(
        "--format",
        "form",
        type=click.Choice(["table", "json", "yaml"]),
        default="table",
        show_default=True,
        help="For a terminal, or for programs; with --watch, a document for each reading.",
    )
    watch = click.option(
        "--watch",
        "every_s",
        is_flag=False,
        flag_value=str(DEFAULT_WATCH_S),
        metavar="[SECONDS]",
        type=click.IntRange(1, 3600),
        help=f"Read again and again, until Ctrl-C.  [every {DEFAULT_WATCH_S} s]",
    )
    return target_options(form(watch(command)))


def _filters(command: F) -> F:
    """Add the options that choose topics. All that are given must hold."""
    for option in reversed(
        (
            click.option(
                "--topic",
                "topics",
                multiple=True,
                metavar="GLOB",
                help="Only topics with such a name; repeatable.",
            ),
            click.option(
                "--owner",
                "owners",
                multiple=True,
                metavar="NAME",
                help="Only topics of this owner; repeatable.",
            ),
            click.option(
                "--label",
                "labels",
                multiple=True,
                metavar="LABEL",
                help="Only topics with this label, KEY or KEY=VALUE; repeatable.",
            ),
            click.option("--unmanaged", is_flag=True, help="Only topics that no spec names."),
            click.option("--internal", is_flag=True, help="Only Kafka's internal topics."),
        )
    ):
        command = option(command)
    return command


_unhealthy = click.option(
    "--unhealthy", is_flag=True, help="Only what is offline, under-replicated or not writable."
)


@click.group(name="get", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """List what a cluster has: topics, brokers, partitions, groups or configs.

    It only reads. ESTATE, topics by default, has the connection of --cluster, and says who owns
    a topic. Without an estate, --bootstrap-servers is the address.
    """


@command.command(cls=Command)
@_common
@_filters
@_unhealthy
@click.option(
    "--idle",
    "idle_s",
    metavar="DURATION",
    callback=lambda ctx, param, value: value and read_duration(ctx, param, value),
    help="Only topics without a write for this long, such as 30d, and without an active reader.",
)
@click.option("--sizes", is_flag=True, help="Read sizes, too: one more request for each broker.")
def topics(idle_s: float | None, sizes: bool, **options: Any) -> None:
    """List topics: partitions, replicas, owner, health."""
    asked = Asked(**options, idle_s=idle_s)
    needs: list[Need] = ["sizes"] * sizes
    if idle_s is not None:
        needs.append("usage")

    def read(source: Source) -> tuple[Inventory, Iterator[TopicRow]]:
        choice = asked.choose()
        found = source.read(choice, *needs)
        return found, list_topics(found, found.choose(choice))

    _answer(asked, "topics", read)


@command.command(cls=Command)
@_common
@_filters
@_unhealthy
def partitions(**options: Any) -> None:
    """List partitions: leader, replicas, in-sync replicas, size.

    `× mean` is the size in relation to the mean of the topic: a hot key shows there.
    """
    asked = Asked(**options)

    def read(source: Source) -> tuple[Inventory, Iterator[PartitionRow]]:
        choice = asked.choose()
        found = source.read(choice, "sizes")
        rows = list_partitions(found, found.choose(choice))
        return found, (row for row in rows if row.problems or not choice.unhealthy)

    _answer(asked, "partitions", read)


@command.command(cls=Command)
@_common
@_unhealthy
def brokers(**options: Any) -> None:
    """List brokers: what each leads and holds, disks, health."""
    asked = Asked(**options)

    def read(source: Source) -> tuple[Inventory, Iterator[BrokerRow]]:
        found = source.read(Choice(), "sizes", "brokers")
        rows = list_brokers(found)
        return found, (row for row in rows if row.is_unhealthy or not asked.unhealthy)

    _answer(asked, "brokers", read)


@command.command(cls=Command)
@_common
@_filters
def groups(**options: Any) -> None:
    """List consumer groups: state, members, lag.

    Of the topics that the filters choose, or of all. The lag is the end of each partition minus
    the committed offset.
    """
    asked = Asked(**options)

    def read(source: Source) -> tuple[Inventory, Iterator[GroupRow]]:
        choice = asked.choose()
        found = source.read(choice)
        topics = None if choice == Choice() else {each.name for each in found.choose(choice)}
        reading = source.read_groups(topics)
        found = found.note(reading.notes)
        return found, list_groups(reading, topics)

    _answer(asked, "groups", read)


@command.command(cls=Command)
@_common
@_filters
@click.option(
    "--config",
    "keys",
    multiple=True,
    metavar="KEY",
    help="The value in force of this config, set on the topic or not; repeatable.",
)
def configs(keys: tuple[str, ...], **options: Any) -> None:
    """List the configs that topics have of their own, and their origin.

    With --config, every topic is listed with the value in force.
    """
    asked = Asked(**options)

    def read(source: Source) -> tuple[Inventory, Iterator[ConfigRow]]:
        choice = asked.choose()
        found = source.read(choice, "configs")
        check_keys(found, keys)
        told = source.read_defaults(found, keys)
        return found, list_configs(found, found.choose(choice), keys, told)

    _answer(asked, "configs", read)


def _answer(
    asked: Asked, kind: Kind, read: Callable[[Source], tuple[Inventory, Iterator[object]]]
) -> None:
    """Print the rows of a kind once, or again and again in the same place."""
    target = asked.aim()
    screen = Screen() if asked.every_s and can_redraw(sys.stdout) else None
    with Source(target) as source:
        while True:
            with working(f"reading {target.name}"):
                found, each = read(source)
                rows = tuple(each)
            if asked.form != "table":
                from reconciler.cli.documents import print_document
                from reconciler.planfile.inventory_documents import write_rows

                print_document(write_rows(found, kind, rows), asked.form, lines=bool(asked.every_s))
            elif screen is not None:
                notes = (fold_to_screen(f"{each.severity}: {each}\n") for each in found.state.notes)
                screen.show("".join((_render(found, kind, rows, asked), *notes)))
            else:
                click.echo(_render(found, kind, rows, asked), nl=False, color=True)
            if screen is None or asked.form != "table":
                for note in found.state.notes:
                    print_note(f"{note.severity}: {note}")
            if asked.every_s is None:
                return
            time.sleep(asked.every_s)


def _render(found: Inventory, kind: Kind, rows: tuple[Any, ...], asked: Asked) -> str:
    on_stdout = choose_paint(sys.stdout)
    lines = render_rows(kind, rows, on_stdout, fold_width())
    closing = " · ".join(close_rows(found, kind, rows, asked.choose()))
    if asked.every_s:
        closing = f"{datetime.now(UTC):%H:%M:%SZ} · {closing}"
    return "\n".join([*lines, on_stdout("dim", fold_to_screen(closing))]) + "\n"
