"""`reconciler rebalance`: a plan that balances brokers, for example after new ones joined."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import click

from reconciler.api.connections import find_cluster
from reconciler.api.planning import (
    compare_rebalances,
    load_estate,
    plan_directories,
    plan_rebalance,
    read_for_moves,
)
from reconciler.api.rendering import PlanFormat, render_choices
from reconciler.cli import options
from reconciler.cli.plans import check_out, choose_output, offer_plan
from reconciler.cli.terminal import working
from reconciler.model.cluster import ClusterState
from reconciler.model.moves import DirectoryAim, LoadAim, LoadKind
from reconciler.model.plan import Plan

_OF_PLANS = {"--out", "--detailed-exitcode"}
_ALONG = {
    "--compare": {"--by", "--within"},
    "--disks": {"--empty-dir", "--within", *_OF_PLANS},
    "--empty-dir": {"--disks", "--within", *_OF_PLANS},
    "--offline-replicas": _OF_PLANS,
    "--even-topics": _OF_PLANS,
    "--over": _OF_PLANS,
}
"""Options that decide what a rebalance is, and those of the others that go with each."""


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
    help=(
        "Copy at most this many bytes, such as 500GiB: first the copies that help most per byte, "
        "or with --even-topics the smallest partitions."
    ),
)
@options.loads_option
@options.within_option
@click.option(
    "--over",
    metavar="PERCENT",
    callback=options.read_percent,
    help="Only move replicas off brokers whose disks are fuller than this, such as 85%.",
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
    help="Balance the log directories of each broker instead: replicas stay on their brokers.",
)
@click.option(
    "--empty-dir",
    multiple=True,
    metavar="ID:PATH",
    callback=_read_directories,
    help="Move every replica off this log directory, such as 7:/var/kafka/d3, to others of its "
    "broker; repeatable.",
)
@click.option(
    "--compare",
    is_flag=True,
    help="Make no plan: show what each choice would copy, and the balance that it reaches.",
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
    compare: bool,
    against: Path | None,
    form: PlanFormat,
    out: Path | None,
    detailed_exitcode: bool,
) -> int:
    """Plan moves that bring every broker near its share of a load, with the fewest bytes copied.

    Brokers near their share give or take replicas only if that helps; topics stay as even as they
    are. Preferred leaders are then balanced as well, which copies nothing. Every live topic that
    the estate does not ignore may move, in a file or not; manual rows stay. `reconciler apply FILE`
    makes the moves. Exits 1 if the plan is refused.

    ESTATE has the connection settings, and allows this under `moves`. ESTATE defaults to topics.
    """
    loaded = load_estate(estate)
    given = {
        "--by": by,
        "--within": within,
        "--leaders-only": leaders_only,
        "--over": over,
        "--even-topics": even_topics,
        "--offline-replicas": offline_replicas,
        "--disks": disks,
        "--empty-dir": empty_dir,
        "--compare": compare,
        "--out": out,
        "--detailed-exitcode": detailed_exitcode,
    }
    _refuse_mixtures({name for name, value in given.items() if value})
    usual = find_cluster(loaded, cluster).balance
    kinds = (LoadKind.DISK,) if over else by or usual.by
    aim = LoadAim(kinds, within or usual.within_percent, leaders_only, over_percent=over)
    chosen: dict[str, Any] = {"topics": topic, "brokers": brokers, "max_bytes": max_bytes}
    read = partial(read_for_moves, loaded, cluster, bootstrap_servers, against)
    if compare:
        with working(f"reading {cluster}") as say:
            state = read(None, loads={LoadKind.WRITE, *kinds})
            compared = compare_rebalances(
                loaded, cluster, state, aim, **chosen, say=lambda each: say(f"planning {each}")
            )
        click.echo(render_choices(compared, form), nl=False)
        return 0
    out, form = choose_output(out, form)
    check_out(out)
    loads: Collection[LoadKind] = ()
    plan: Callable[[ClusterState], Plan]
    if disks or empty_dir:
        within_brokers = DirectoryAim(
            disks, aim.within_percent, frozenset(empty_dir), frozenset(brokers), max_bytes
        )
        plan = partial(plan_directories, loaded, cluster, aim=within_brokers, topics=topic)
    elif even_topics or offline_replicas:
        plan = partial(plan_rebalance, loaded, cluster, offline=offline_replicas, **chosen)
    else:
        loads = kinds
        plan = partial(plan_rebalance, loaded, cluster, aim=aim, **chosen)
    with working(f"reading {cluster}") as say:
        state = read(plan, loads=loads)
        say("planning")
        planned = plan(state)
    return offer_plan(planned, form, out, detailed=detailed_exitcode)


def _refuse_mixtures(given: Collection[str]) -> None:
    """Refuse options that say different things. Errors: click.UsageError with two of them."""
    for option, along in _ALONG.items():
        if option in given and (wrong := sorted(set(given) - {option} - along)):
            raise click.UsageError(f"{option} does not go with {wrong[0]}; leave one of them out")
