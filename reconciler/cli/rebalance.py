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

    ESTATE has the connection settings, and allows this under `moves`. ESTATE defaults to topics.
    """
    out, form = choose_output(out, form)
    check_out(out)
    loaded = load_estate(estate)
    plan = partial(
        plan_rebalance,
        loaded,
        cluster,
        topics=topic,
        brokers=brokers,
        max_bytes=max_bytes,
        offline=offline_replicas,
    )
    with working(f"reading {cluster}") as say:
        state = read_for_moves(loaded, cluster, bootstrap_servers, against, plan)
        say("planning")
        planned = plan(state)
    return offer_plan(planned, form, out, detailed=detailed_exitcode)
