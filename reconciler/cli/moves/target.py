"""What the verbs of `reconciler moves` share: their cluster, the approval, and the record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.api.connections import open_address, open_connection
from reconciler.api.planning import load_estate
from reconciler.api.records import RunRecord
from reconciler.cli import options
from reconciler.cli.journal import Journal
from reconciler.cli.terminal import ask, find_no_terminal, fold_to_screen, print_error
from reconciler.errors import AuditError, UsageError
from reconciler.model.cluster import AnyPlace, Reassignment
from reconciler.units import count

if TYPE_CHECKING:
    from reconciler.kafka.connection import Connection
    from reconciler.run.ending import Ending

IN_FLIGHT = 2
"""The exit code if something is in flight or left over: as for changes that are pending."""

MOST_SHOWN = 20

estate_argument = click.argument("estate", required=False, type=click.Path(path_type=Path))
cluster_option = click.option("--cluster", metavar="NAME", help="Cluster of ESTATE; one per run.")
approve_option = click.option(
    "--auto-approve", is_flag=True, help="Do not ask for approval; for CI."
)
journal_option = click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append who, what and outcomes to FILE, as JSON lines.",
)
lock_timeout_option = click.option(
    "--lock-timeout",
    metavar="DURATION",
    callback=options.read_duration,
    default="15s",
    show_default=True,
    help="How long to wait for another run on the cluster, such as 10m.",
)
no_lock_option = click.option("--no-lock", is_flag=True, help="Take no lock of the cluster.")


def connect_moves(
    estate: Path | None, cluster: str | None, bootstrap_servers: str | None
) -> Connection:
    """Connect to a cluster of an estate, or to an address without an estate."""
    if cluster is not None:
        loaded = load_estate(estate or "topics")
        return open_connection(loaded, cluster, bootstrap_servers)
    if estate is not None:
        raise UsageError("ESTATE has several clusters; name one with --cluster NAME")
    if bootstrap_servers is None:
        raise UsageError(
            "name the cluster: --cluster NAME, or --bootstrap-servers HOST:PORT without an estate"
        )
    return open_address(bootstrap_servers)


def name_target(estate: Path | None, cluster: str | None, bootstrap_servers: str | None) -> str:
    """Return the arguments that name the same cluster, for a command to copy."""
    parts = [str(estate)] if estate is not None else []
    if cluster is not None:
        parts.append(f"--cluster {cluster}")
    if bootstrap_servers is not None:
        parts.append(f"--bootstrap-servers {bootstrap_servers}")
    return " ".join(parts)


def say(line: str) -> None:
    """Print a line, folded to the screen."""
    click.echo(fold_to_screen(line), color=True)


def say_each(lines: Sequence[str], noun: str) -> None:
    """Print lines, the first of them if they are many."""
    for line in lines[:MOST_SHOWN]:
        say(f"  {line}")
    if len(lines) > MOST_SHOWN:
        say(f"  … {count(len(lines) - MOST_SHOWN, f'more {noun}')}")


def name_place(place: AnyPlace) -> str:
    """Name a partition, or a replica by its broker."""
    topic, number, *brokers = place
    return " ".join([f"{topic} partition {number}", *(f"on broker {each}" for each in brokers)])


def name_moves(moves: Iterable[Reassignment]) -> list[str]:
    """Name moves, each with its target."""
    return [
        f"{name_place((each.topic, each.partition))} to {','.join(map(str, each.target))}"
        for each in moves
    ]


def keep_journal(file: Path | None, record: RunRecord, work: Callable[[], Ending]) -> int:
    """Do some work, and write how it ended to FILE, if one is given. Returns: the exit code."""
    from reconciler.run.ending import end_run

    with Journal(file, record) as log:
        try:
            ending = work()
        except AuditError as error:
            # The audit topic did not take the record, so stderr must keep it.
            click.echo(error.record, err=True)
            print_error(str(error))
            ending = end_run(error=error)
        log.conclude(ending)
    return ending.exit_code


def approve(question: str, *, auto_approve: bool) -> bool:
    """Ask for approval, unless it is given. Returns: whether to go on; says why not."""
    if auto_approve:
        return True
    if error := find_no_terminal():
        print_error(error)
        return False
    if ask(f"{question} [y/N]: ").lower() in ("y", "yes"):
        return True
    say("Not approved. Nothing was changed.")
    return False
