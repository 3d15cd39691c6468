"""`reconciler moves pause` and `rate`: the throttle rate of all brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler import api
from reconciler.cli import options
from reconciler.cli.moves.target import (
    IN_FLIGHT,
    NOT_APPROVED,
    UNKNOWN,
    approve,
    approve_option,
    cluster_option,
    connect_moves,
    estate_argument,
    name_moves,
    name_target,
    say,
    say_each,
)
from reconciler.cli.terminal import print_error, working
from reconciler.moves import find_effect
from reconciler.units import UnitError, count, format_size, parse_size

if TYPE_CHECKING:
    from pathlib import Path

    from reconciler.moves import RateEffect

UNLIMITED = "unlimited"


def read_rate(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    """Read a rate such as 30MiB. Returns: bytes per second, None for no limit."""
    if value == UNLIMITED:
        return None
    try:
        rate = parse_size(value)
    except UnitError as error:
        raise click.BadParameter(str(error), ctx, param) from error
    if rate == 0:
        raise click.BadParameter("0 stops every copy; use `reconciler moves pause`", ctx, param)
    return rate


@click.command()
@estate_argument
@cluster_option
@options.bootstrap_option
@approve_option
def pause(
    *, estate: Path | None, cluster: str | None, bootstrap_servers: str | None, auto_approve: bool
) -> int:
    """Stop every throttled copy by a throttle rate of 0; nothing is cancelled.

    This reaches a run of moves on any machine: it starts nothing while the rate is 0. `moves rate`
    resumes. With --cluster, ESTATE has the connection settings; without, --bootstrap-servers is
    the address. ESTATE defaults to topics.
    """
    target = (estate, cluster, bootstrap_servers)
    return _set_rate(target, 0, auto_approve=auto_approve)


@click.command()
@click.argument("limit", metavar="RATE", callback=read_rate)
@estate_argument
@cluster_option
@options.bootstrap_option
@approve_option
def rate(
    *,
    limit: int | None,
    estate: Path | None,
    cluster: str | None,
    bootstrap_servers: str | None,
    auto_approve: bool,
) -> int:
    """Set the throttle RATE, in bytes per second and broker, such as 30MiB; also after a pause.

    A run of moves on any machine adopts the rate. `unlimited` removes it. With --cluster, ESTATE
    has the connection settings; without, --bootstrap-servers is the address. ESTATE defaults to
    topics.
    """
    target = (estate, cluster, bootstrap_servers)
    return _set_rate(target, limit, auto_approve=auto_approve)


def _set_rate(
    target: tuple[Path | None, str | None, str | None], limit: int | None, *, auto_approve: bool
) -> int:
    with connect_moves(*target) as connection, api.control_moves(connection) as control:
        name = connection.entry.name
        with working(f"reading {name}"):
            before = find_effect(control.read())
            control.check_rights(())
        say(f"{name}: the throttle rate is {name_rate(before.rate)}, becomes {name_rate(limit)}")
        _explain(before, limit)
        question = f"Pause moves on {name}?" if limit == 0 else f"Set this rate on {name}?"
        if not approve(question, auto_approve=auto_approve):
            return NOT_APPROVED
        with working("waiting until brokers show it"):
            reading, is_shown = control.set_rate(limit)
    here = name_target(*target)
    if not is_shown:
        print_error(
            f"not all brokers of {name} show the rate yet; see `reconciler moves status {here}`, "
            "then run the same command again"
        )
        return UNKNOWN
    now = find_effect(reading)
    limited = count(len(now.limited), "partition")
    if limit != 0:
        say(f"Set. {limited} in flight limited.")
        return 0
    say(f"Paused. {limited} in flight: copies stand still.")
    resumed = format_size(before.rate) if before.rate else "RATE"
    say(f"To resume: reconciler moves rate {resumed} {here}")
    return IN_FLIGHT if now.unlimited else 0


def _explain(effect: RateEffect, limit: int | None) -> None:
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
    if effect.idle and limit is not None:
        say("Also limited, because nothing removed these lists:")
        say_each([f"{each.topic} {each.side} {each.replicas}" for each in effect.idle], "list")


def name_rate(rate: int | None) -> str:
    """Format a rate. Units: bytes per second; None is no limit."""
    return "not set" if rate is None else f"{format_size(rate)}/s"
