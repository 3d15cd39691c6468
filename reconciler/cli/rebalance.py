"""`reconciler rebalance`: a plan that makes replicas even, such as on brokers that joined."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from reconciler.api.planning import load_estate, plan_rebalance, read_for_moves
from reconciler.api.rendering import PlanFormat
from reconciler.cli import options
from reconciler.cli.plans import check_out, choose_output, offer_plan
from reconciler.cli.terminal import working
from reconciler.model.moves import LoadKind
from reconciler.moves.by_load import WITHIN_PERCENT, LoadAim


def _read_brokers(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
) -> tuple[int, ...]:
    """Read ids of brokers, such as 10,11."""
    text = ",".join(value)
    try:
        return tuple(sorted({int(part) for part in text.split(",") if part}))
    except ValueError as error:
        what = f"{text!r} is not a list of broker ids such as 10,11"
        raise click.BadParameter(what, ctx, param) from error


def _read_kinds(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
) -> tuple[LoadKind, ...]:
    """Read what brokers are balanced by, such as disk,write."""
    names = [name for part in value for name in part.split(",")]
    if unknown := [name for name in names if name not in list(LoadKind)]:
        what = f"{unknown[0]!r} is none of {', '.join(LoadKind)}"
        raise click.BadParameter(what, ctx, param)
    return tuple(dict.fromkeys(map(LoadKind, names)))


def _read_percent(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Read a share of a broker's load, such as 10%."""
    if value is None:
        return None
    try:
        percent = float(value.strip().removesuffix("%"))
    except ValueError:
        percent = 0.0
    if not 1 <= percent <= 100:
        raise click.BadParameter(f"{value!r} is not from 1% to 100%", ctx, param)
    return percent


@click.command(cls=options.Command)
@options.estate_argument
@options.cluster_option
@options.bootstrap_option
@options.choose_topics("Only live topics with such names; quote it; repeatable.")
@click.option(
    "--brokers",
    multiple=True,
    metavar="ID,…",
    callback=_read_brokers,
    help="The only brokers that take replicas, up to their even share, such as those that joined; "
    "repeatable.",
)
@click.option(
    "--max-bytes",
    metavar="SIZE",
    callback=options.read_size,
    help="Copy at most this much, such as 500GiB, the smallest partitions first.",
)
@click.option(
    "--by",
    multiple=True,
    metavar="LOAD,…",
    callback=_read_kinds,
    help="Bring every broker near its share of this: count (of replicas), disk, write or read; "
    "repeatable.",
)
@click.option(
    "--within",
    metavar="PERCENT",
    callback=_read_percent,
    help="With --by: how far from its share a broker may be, such as 5%. Default: 10%.",
)
@click.option(
    "--leaders-only",
    is_flag=True,
    help="With --by count, write or read: other preferred leaders only; nothing is copied.",
)
@click.option(
    "--offline-replicas",
    is_flag=True,
    help="Move only replicas on log directories that have failed, to other brokers.",
)
@options.against_option
@options.plan_format_option
@options.out_option
@options.detailed_exitcode_option
def command(
    estate: Path,
    cluster: str,
    *,
    bootstrap_servers: str | None,
    topic: str,
    brokers: tuple[int, ...],
    max_bytes: int | None,
    by: tuple[LoadKind, ...],
    within: float | None,
    leaders_only: bool,
    offline_replicas: bool,
    against: Path | None,
    form: PlanFormat,
    out: Path | None,
    detailed_exitcode: bool,
) -> int:
    """Plan to make replicas even, with the fewest moves that reach that.

    First the replicas of every topic are as even over the brokers as they can be, then those of the
    cluster, with as few replicas copied as this takes. Preferred leaders are then made even, which
    copies nothing. Every live topic that the estate does not ignore counts, in a file or not;
    manual rows stay. `reconciler apply FILE` makes the moves. Exits 1 if the plan is refused.

    With --by, brokers far from their share of a load come near it instead, with the fewest bytes
    copied. What is near moves only where that helps, and topics stay as even as they are.

    ESTATE has the connection settings, and allows this under `moves`. ESTATE defaults to topics.
    """
    out, form = choose_output(out, form)
    check_out(out)
    aim = _choose_aim(by, within, leaders_only=leaders_only)
    if aim and (offline_replicas or max_bytes is not None):
        other = "--offline-replicas" if offline_replicas else "--max-bytes"
        raise click.UsageError(f"--by and {other} exclude each other")
    loaded = load_estate(estate)
    plan = partial(
        plan_rebalance,
        loaded,
        cluster,
        topics=topic,
        brokers=brokers,
        max_bytes=max_bytes,
        offline=offline_replicas,
        aim=aim,
    )
    by_rates = not {LoadKind.WRITE, LoadKind.READ}.isdisjoint(by)
    with working(f"reading {cluster}") as say:
        state = read_for_moves(
            loaded, cluster, bootstrap_servers, against, None if by_rates else plan
        )
        say("planning")
        planned = plan(state)
    return offer_plan(planned, form, out, detailed=detailed_exitcode)


def _choose_aim(
    by: tuple[LoadKind, ...], within: float | None, *, leaders_only: bool
) -> LoadAim | None:
    """Return what a balance by load aims at; None if no load is named."""
    if by:
        return LoadAim(by, within or WITHIN_PERCENT, leaders_only)
    if within is not None or leaders_only:
        given = "--within" if within is not None else "--leaders-only"
        raise click.UsageError(f"{given} needs --by")
    return None
