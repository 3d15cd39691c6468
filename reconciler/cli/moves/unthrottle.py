"""`reconciler moves unthrottle`: remove throttles of other tools that nothing uses, by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.api.move_control import Locking, control_moves
from reconciler.api.records import begin_control
from reconciler.cli import options
from reconciler.cli.apply import WaitingNotes
from reconciler.cli.moves.target import (
    approve,
    approve_option,
    cluster_option,
    connect_moves,
    estate_argument,
    journal_option,
    keep_journal,
    lock_timeout_option,
    no_lock_option,
    say,
    say_each,
)
from reconciler.cli.terminal import working
from reconciler.errors import UsageError
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.moves.throttles import choose_removals
from reconciler.units import count

if TYPE_CHECKING:
    from reconciler.run.ending import Ending


@click.command(name="unthrottle", cls=options.Command)
@estate_argument
@cluster_option
@options.bootstrap_option
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME",
    help="Remove the throttle lists of this topic; repeatable.",
)
@click.option(
    "--broker",
    "brokers",
    multiple=True,
    type=int,
    metavar="ID",
    help="Remove the throttle rates of this broker; repeatable.",
)
@click.option("--default", "of_all", is_flag=True, help="Remove the throttle rate of all brokers.")
@approve_option
@journal_option
@lock_timeout_option
@no_lock_option
def command(
    *,
    estate: Path | None,
    cluster: str | None,
    bootstrap_servers: str | None,
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    of_all: bool,
    auto_approve: bool,
    journal: Path | None,
    lock_timeout: float,
    no_lock: bool,
) -> int:
    """Remove throttles that reconciler did not set, each by its name.

    What something in flight uses is refused. A run of moves may be under way meanwhile. With
    --cluster, ESTATE has the connection settings; without, --bootstrap-servers is the address.
    ESTATE defaults to topics.
    """
    from reconciler.run.ending import Ended, Ending

    if not (topics or brokers or of_all):
        raise UsageError("name what to remove: --topic NAME, --broker ID or --default")
    with (
        connect_moves(estate, cluster, bootstrap_servers) as connection,
        control_moves(connection) as control,
    ):
        name = connection.entry.name
        with working(f"reading {name}"):
            reading = control.read()
        chosen, wrong = choose_removals(reading, topics, brokers, of_all=of_all)
        if wrong:
            raise UsageError("\n".join(wrong))
        say("To be removed:")
        say_each([each.text for each in chosen], "throttle")
        control.check_rights({each.topic for each in chosen if each.topic is not None})
        rate = reading.default_rate
        after = None if of_all or rate is None else rate.bytes_per_s
        record = begin_control("unthrottle", reading, after)
        locking = Locking(None if no_lock else lock_timeout, WaitingNotes(lock_timeout).observe)

        def remove() -> Ending:
            with working("waiting until brokers show it"):
                left = control.remove(chosen, locking)
            outcomes = tuple(
                Outcome(each.topic, OutcomeKind.WAITING, "throttle not removed")
                if each in left
                else Outcome(each.topic, OutcomeKind.DONE, "throttle removed")
                for each in chosen
                if each.topic is not None
            )
            if left:
                say("Not removed yet:")
                say_each([each.text for each in left], "throttle")
                return Ending(Ended.UNFINISHED, outcomes)
            say("Removed.")
            return Ending(Ended.DONE, outcomes)

        def ask() -> Ending:
            question = f"Remove {count(len(chosen), 'throttle')} of {name}?"
            if not approve(question, auto_approve=auto_approve):
                return Ending(Ended.NOT_APPROVED)
            return control.keep_record(record, remove)

        return keep_journal(journal, record, ask)
