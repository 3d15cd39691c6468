"""`reconciler rebalance`: a plan that balances brokers, such as those that joined."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from reconciler.api.connections import find_cluster
from reconciler.api.planning import (
    load_estate,
    plan_directories,
    plan_rebalance,
    read_for_moves,
)
from reconciler.api.rendering import PlanFormat
from reconciler.cli import options
from reconciler.cli.plans import check_out, choose_output, offer_plan
from reconciler.cli.terminal import working
from reconciler.model.moves import DirectoryAim, LoadAim, LoadKind


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


def _read_directories(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
) -> tuple[tuple[int, str], ...]:
    """Read log directories of brokers, such as 7:/var/kafka/d3."""
    found = []
    for text in value:
        broker, _, path = text.partition(":")
        if not (broker.isdecimal() and path.startswith("/")):
            what = f"{text!r} is not a log directory of a broker, such as 7:/var/kafka/d3"
            raise click.BadParameter(what, ctx, param)
        found.append((int(broker), path))
    return tuple(found)


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
    help="Copy at most this much, such as 500GiB: what helps most for its bytes, or with "
    "--even-topics the smallest partitions.",
)
@options.loads_option
@options.within_option
@click.option(
    "--over",
    metavar="PERCENT",
    callback=options.read_percent,
    help="Only relieve brokers whose disks are fuller than this, such as 85%, and nothing else.",
)
@options.leaders_only_option
@options.even_topics_option
@click.option(
    "--offline-replicas",
    is_flag=True,
    help="Move only replicas on log directories that have failed, to other brokers.",
)
@click.option(
    "--disks",
    is_flag=True,
    help="Even the log directories of each broker instead: replicas stay on their brokers.",
)
@click.option(
    "--empty-dir",
    multiple=True,
    metavar="ID:PATH",
    callback=_read_directories,
    help="Move every replica off this log directory, such as 7:/var/kafka/d3, to others of its "
    "broker; repeatable.",
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
    over: float | None,
    leaders_only: bool,
    even_topics: bool,
    offline_replicas: bool,
    disks: bool,
    empty_dir: tuple[tuple[int, str], ...],
    against: Path | None,
    form: PlanFormat,
    out: Path | None,
    detailed_exitcode: bool,
) -> int:
    """Plan to bring every broker near its share of a load, with the fewest bytes copied.

    What is near its share moves only where that helps; topics stay as even as they are. Preferred
    leaders are then balanced as well, which copies nothing. Every live topic that the estate does
    not ignore may move, in a file or not; manual rows stay. `reconciler apply FILE` makes the
    moves. Exits 1 if the plan is refused.

    ESTATE has the connection settings, and allows this under `moves`. ESTATE defaults to topics.
    """
    out, form = choose_output(out, form)
    check_out(out)
    loaded = load_estate(estate)
    if disks or empty_dir:
        if offline_replicas or even_topics or over or by or leaders_only:
            what = "--disks and --empty-dir move replicas within their brokers"
            raise click.UsageError(f"{what}; only --within, --brokers, --topic and --max-bytes go")
        balance = find_cluster(loaded, cluster).balance
        directories = DirectoryAim(
            disks,
            within or balance.within_percent,
            frozenset(empty_dir),
            frozenset(brokers),
            max_bytes,
        )
        plan_within = partial(plan_directories, loaded, cluster, aim=directories, topics=topic)
        with working(f"reading {cluster}") as say:
            state = read_for_moves(loaded, cluster, bootstrap_servers, against, plan_within)
            say("planning")
            planned = plan_within(state)
        return offer_plan(planned, form, out, detailed=detailed_exitcode)
    other = [
        name
        for name, given in (
            ("--offline-replicas", offline_replicas),
            ("--even-topics", even_topics),
            ("--over", over),
            ("--by", by),
        )
        if given
    ]
    if len(other) > 1 or (other and other != ["--by"] and (within or leaders_only)):
        what = "--offline-replicas, --even-topics, --over and --by exclude each other"
        raise click.UsageError(what)
    aim = None if offline_replicas or even_topics else find_cluster(loaded, cluster).balance
    if aim is not None:
        by = (LoadKind.DISK,) if over else by or aim.by
        within = within or aim.within_percent
        aim = LoadAim(by, within, leaders_only, over_percent=over)
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
    kinds = aim.by if aim is not None else ()
    by_rates = not {LoadKind.WRITE, LoadKind.READ}.isdisjoint(kinds)
    with working(f"reading {cluster}") as say:
        state = read_for_moves(
            loaded,
            cluster,
            bootstrap_servers,
            against,
            None if by_rates else plan,
            with_reads=LoadKind.READ in kinds,
        )
        say("planning")
        planned = plan(state)
    return offer_plan(planned, form, out, detailed=detailed_exitcode)
