"""`reconciler moves pause` and `rate`: the throttle rate of all brokers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.api.move_control import control_moves
from reconciler.api.records import begin_control
from reconciler.cli import options
from reconciler.cli.moves.target import (
    approve,
    approve_option,
    cluster_option,
    connect_moves,
    estate_argument,
    journal_option,
    keep_journal,
    name_moves,
    name_target,
    say,
    say_each,
)
from reconciler.cli.terminal import print_error, working
from reconciler.errors import ClusterError, Finding
from reconciler.model.moves import UNLIMITED, MovesReading
from reconciler.moves.decisions import RateEffect, find_effect
from reconciler.spec.services import SERVICES
from reconciler.units import UnitError, count, format_size, parse_size

if TYPE_CHECKING:
    from reconciler.run.ending import Ending
    from reconciler.spec.entry import ClusterEntry


def read_rate(ctx: click.Context, param: click.Parameter, value: str) -> int:
    """Read a rate such as 30MiB, or `unlimited`. Returns: bytes per second."""
    if value == "unlimited":
        return UNLIMITED
    try:
        rate: int = parse_size(value)
    except UnitError as error:
        raise click.BadParameter(str(error), ctx, param) from error
    if rate == 0:
        raise click.BadParameter("0 stops every copy; use `reconciler moves pause`", ctx, param)
    return rate


@click.command(cls=options.Command)
@estate_argument
@cluster_option
@options.bootstrap_option
@approve_option
@journal_option
def pause(
    *,
    estate: Path | None,
    cluster: str | None,
    bootstrap_servers: str | None,
    auto_approve: bool,
    journal: Path | None,
) -> int:
    """Stop every throttled copy by a throttle rate of 0; nothing is cancelled.

    This reaches a run of moves on any machine: it starts nothing while the rate is 0. `moves rate`
    resumes. With --cluster, ESTATE has the connection settings; without, --bootstrap-servers is
    the address. ESTATE defaults to topics.
    """
    target = (estate, cluster, bootstrap_servers)
    return _set_rate(target, 0, journal, auto_approve=auto_approve)


@click.command(cls=options.Command)
@click.argument("limit", metavar="RATE", callback=read_rate)
@estate_argument
@cluster_option
@options.bootstrap_option
@click.option(
    "--permanent",
    is_flag=True,
    help="A permanent rate: neither a run of moves nor settle removes it.",
)
@approve_option
@journal_option
def rate(
    *,
    limit: int,
    estate: Path | None,
    cluster: str | None,
    bootstrap_servers: str | None,
    permanent: bool,
    auto_approve: bool,
    journal: Path | None,
) -> int:
    """Set the throttle RATE, in bytes per second and broker, such as 30MiB; also after a pause.

    A run of moves on any machine adopts the rate, and removes it at its end. `unlimited` is a rate
    as well: one that limits nothing. With --cluster, ESTATE has the connection settings; without,
    --bootstrap-servers is the address. ESTATE defaults to topics.
    """
    target = (estate, cluster, bootstrap_servers)
    return _set_rate(target, limit, journal, permanent=permanent, auto_approve=auto_approve)


def _set_rate(
    target: tuple[Path | None, str | None, str | None],
    limit: int,
    journal: Path | None,
    *,
    permanent: bool = False,
    auto_approve: bool,
) -> int:
    from reconciler.run.ending import Ended, Ending

    with connect_moves(*target) as connection, control_moves(connection) as control:
        name = connection.entry.name
        _refuse_service(connection.entry)
        with working(f"reading {name}"):
            reading = control.read()
            control.check_rights(())
        before = find_effect(reading)
        if limit != 0 and not permanent:
            _refuse_standing(reading, target)
        say(f"{name}: the throttle rate is {name_rate(before.rate)}, becomes {name_rate(limit)}")
        _explain(before, limit)
        record = begin_control("pause" if limit == 0 else "rate", reading, limit)

        def change() -> Ending:
            with working("waiting until brokers show it"):
                now, is_shown = control.set_rate(limit, permanent=permanent)
            return _report(find_effect(now), before, limit, target, is_shown=is_shown)

        def ask() -> Ending:
            question = f"Pause moves on {name}?" if limit == 0 else f"Set this rate on {name}?"
            if not approve(question, auto_approve=auto_approve):
                return Ending(Ended.NOT_APPROVED)
            return control.keep_record(record, change)

        return keep_journal(journal, record, ask)


def _report(
    now: RateEffect,
    before: RateEffect,
    limit: int,
    target: tuple[Path | None, str | None, str | None],
    *,
    is_shown: bool,
) -> Ending:
    """Say what a rate reached. Returns: how the verb ended."""
    from reconciler.run.ending import Ended, Ending

    here = name_target(*target)
    if not is_shown:
        error = (
            f"not all brokers show the rate yet; see `reconciler moves status {here}`, then run "
            "the same command again"
        )
        print_error(error)
        return Ending(Ended.UNKNOWN, error=error)
    limited = count(len(now.limited), "partition")
    if limit != 0:
        reached = f"{limited} in flight limited" if limit < UNLIMITED else "No copy is limited"
        say(f"Set. {reached}.")
        if not now.standing:
            say(f"A run of moves removes it at its end, or run: reconciler moves settle {here}")
        return Ending(Ended.DONE)
    say(f"Paused. {limited} in flight: copies stand still.")
    resumed = spell_rate(before.rate) if before.rate else "RATE"
    if before.standing:
        say("The previous rate was not set by reconciler, and must stay after the moves.")
        resumed += " --permanent"
    say(f"To resume: reconciler moves rate {resumed} {here}")
    return Ending(Ended.UNFINISHED if now.unlimited else Ended.DONE)


def _refuse_service(entry: ClusterEntry) -> None:
    """Refuse a rate, and so a pause, where brokers have no throttles. Errors: ClusterError."""
    service = SERVICES[entry.service]
    if service.no_throttle:
        what = f"{service.title} has no throttles of moves, so no rate of {entry.name} can be set"
        way_out = f"use the tools of the service: {service.no_throttle}"
        raise ClusterError([Finding("service-throttle", what, way_out, entry.where("service"))])


def _refuse_standing(
    reading: MovesReading, target: tuple[Path | None, str | None, str | None]
) -> None:
    """Refuse to replace a rate that is to stay by one that a run removes. Errors: ClusterError."""
    default = reading.default_rate
    if default is None or default.is_of_moves:
        return
    what = (
        f"the throttle rate of {name_rate(default.bytes_per_s)} was not set by reconciler, and "
        "must stay after the moves"
    )
    remove = f"reconciler moves unthrottle --default {name_target(*target)}"
    way_out = f"add --permanent to change it, or remove it first: {remove}"
    raise ClusterError([Finding("moves-rate-taken", what, way_out)])


def _explain(effect: RateEffect, limit: int) -> None:
    """Say what the rate reaches, and what it does not."""
    say(f"{count(len(effect.limited), 'partition')} in flight limited by it")
    if effect.unlimited:
        say("Not limited, because no list of throttled replicas names these copies:")
        say_each(name_moves(effect.unlimited), "partition")
    for own in effect.own:
        say(
            f"Broker {own.broker} keeps its own {own.side} rate of {name_rate(own.bytes_per_s)}, "
            "which overrides this one."
        )
    if effect.idle and limit < UNLIMITED:
        say("Also limited, because nothing removed these lists:")
        say_each([f"{each.topic} {each.side} {each.replicas}" for each in effect.idle], "list")


def name_rate(rate: int | None) -> str:
    """Format a rate. Units: bytes per second; None if there is none."""
    if rate is None:
        return "not set"
    return spell_rate(rate) + ("/s" if rate < UNLIMITED else "")


def spell_rate(rate: int) -> str:
    """Spell a rate as `read_rate` takes it."""
    return "unlimited" if rate >= UNLIMITED else format_size(rate)
