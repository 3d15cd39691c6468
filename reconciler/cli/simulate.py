"""`reconciler simulate`: the effect of placement, without a cluster."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from reconciler.api.connections import find_cluster
from reconciler.api.planning import load_estate
from reconciler.api.snapshots import read_snapshot
from reconciler.cli.options import (
    Command,
    even_topics_option,
    leaders_only_option,
    loads_option,
    within_option,
)
from reconciler.cli.terminal import print_note
from reconciler.errors import UsageError
from reconciler.model.cluster import Broker
from reconciler.model.moves import LoadAim, LoadKind
from reconciler.placement.weigh import ReplicaWeights
from reconciler.simulate.cluster import (
    AddBrokers,
    LoseBroker,
    LoseRack,
    Place,
    Rebalance,
    SimulatedCluster,
    SimulationStep,
    WantedTopic,
)
from reconciler.simulate.compare import (
    KAFKA,
    STRATEGIES,
    choose_placer,
    compare_counts,
    compare_strategies,
)
from reconciler.simulate.text import list_comparison, list_counts, render_comparison, render_counts
from reconciler.spec.estate import Estate
from reconciler.units import count

F = TypeVar("F", bound="Callable[..., Any]")

STEPS = ("create", "grow", "add_brokers", "rebalance", "lose_broker", "lose_rack")
MOST_COUNTS = 1_000
MOST_PARTITIONS = 1_000_000


class InOrder(Command):
    """A command that keeps the order of its steps on the command line, across options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store the name of each step option in `ctx.obj`, once per occurrence."""
        # click groups values by option, and so loses whether --create came before --lose-broker.
        order = self.make_parser(ctx).parse_args(args=list(args))[2]
        ctx.obj = [option.name for option in order if option.name in STEPS]
        return super().parse_args(ctx, args)


def _many(name: str, metavar: str, explained: str, kind: type = str) -> Callable[[F], F]:
    return click.option(
        name,
        multiple=True,
        metavar=metavar,
        type=kind,
        help=f"{explained.removesuffix('.')}; repeatable.",
    )


def _one(
    name: str, metavar: str, explained: str, most: int, default: int | None = None
) -> Callable[[F], F]:
    kind = click.IntRange(1, most)
    return click.option(name, metavar=metavar, type=kind, default=default, help=explained)


@click.command(cls=InOrder)
@click.argument("estate", required=False, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--cluster", metavar="NAME", help="Use the topics of ESTATE for this cluster; one per run."
)
@click.option(
    "--against",
    metavar="SNAPSHOT",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Start with the cluster of this snapshot.",
)
@_one("--brokers", "N", "Start with N empty brokers.", 10_000)
@_one("--racks", "N", "Spread over N racks, named rack0, rack1 …  [default: none]", 10_000)
@_many("--topic", "NAME=PxR", "P partitions of R replicas, placed together at the start.")
@_many("--create", "NAME=PxR", "A step: create a topic.")
@_many("--grow", "NAME=P", "A step: grow a topic to P partitions.")
@_many("--add-brokers", "N[:RACK]", "A step: add brokers.")
@click.option("--rebalance", count=True, help="A step: balance brokers, as `rebalance` would.")
@_many("--lose-broker", "ID", "A step: lose a broker.", int)
@_many("--lose-rack", "NAME", "A step: lose a rack.")
@_one("--min-insync", "N", "min.insync.replicas of topics without one.  [default: 1]", 100, 1)
@loads_option
@within_option
@leaders_only_option
@even_topics_option
@click.option(
    "--strategy", multiple=True, type=click.Choice(STRATEGIES), help="Only this one; repeatable."
)
@_one("--draws", "N", "Number of random placements by `kafka`.  [default: 20]", 10_000, 20)
@_one("--partitions-from", "A", "Try the last topic with A partitions …", MOST_PARTITIONS)
@_one("--to", "B", "… up to B, and show which counts are even.", MOST_PARTITIONS)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For a terminal, or for programs.",
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Compare the results of placement strategies, without a cluster.

    Begin with --against a snapshot or with --brokers; then come the topics of ESTATE and --topic,
    placed together, then the steps, in the order in which they are given. The strategy `kafka` is
    the controller's own random placement, drawn often: nothing can be planned with it.
    """
    steps = {name: options.pop(name) for name in STEPS}
    asked = SimulationRequest(**options)
    estate = _load_estate(asked)
    simulated = _begin(asked, estate)
    asked = _choose_strategies(asked, estate)
    first = (*_read_estate(asked, estate, simulated), *_read_topics(asked.topic, asked.min_insync))
    taken: list[SimulationStep] = [Place(first)] if first else []
    aims = (_read_aim(asked, estate, rebalances=bool(steps["rebalance"])),)
    steps["rebalance"] = aims * steps["rebalance"]
    left = {name: iter(values) for name, values in steps.items()}
    taken += [_read_step(name, next(left[name]), asked.min_insync) for name in ctx.obj]
    if asked.partitions_from is not None or asked.to is not None:
        click.echo(_try_counts(simulated, taken, asked), nl=False)
        return
    if not (taken or simulated.topics):
        raise UsageError("there are no topics on these brokers; add --topic NAME=PxR, or ESTATE")
    compared = compare_strategies(simulated, taken, asked.strategy or STRATEGIES, asked.draws)
    render = list_comparison if asked.form == "json" else render_comparison
    click.echo(render(compared), nl=False)


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """The options, without the steps."""

    estate: Path | None
    cluster: str | None
    against: Path | None
    brokers: int | None
    racks: int | None
    topic: tuple[str, ...]
    min_insync: int
    by: tuple[LoadKind, ...]
    within: float | None
    leaders_only: bool
    even_topics: bool
    strategy: tuple[str, ...]
    draws: int
    partitions_from: int | None
    to: int | None
    form: str


def _choose_weights(asked: SimulationRequest, estate: Estate | None) -> LoadKind:
    """Return what the cluster is balanced by when topics are placed."""
    if asked.by:
        return asked.by[0]
    counts = asked.partitions_from is not None or asked.to is not None or asked.against is None
    if estate is not None and asked.cluster is not None and not counts:
        return find_cluster(estate, asked.cluster).weighed_by
    return LoadKind.COUNT


def _read_aim(
    asked: SimulationRequest, estate: Estate | None, *, rebalances: bool
) -> LoadAim | None:
    """Return what each rebalance aims at, None for every topic even."""
    options = {
        "--within": asked.within,
        "--leaders-only": asked.leaders_only,
        "--even-topics": asked.even_topics,
    }
    named = [option for option, given in options.items() if given]
    if named and not rebalances:
        raise UsageError(f"{named[0]} is about a rebalance; add the step --rebalance")
    if asked.even_topics:
        if len(named) > 1:
            raise UsageError(f"--even-topics and {named[0]} exclude each other")
        return None
    aim = LoadAim()
    if estate is not None and asked.cluster is not None:
        aim = find_cluster(estate, asked.cluster).balance
    within = asked.within or aim.within_percent
    return LoadAim(asked.by or aim.by, within, asked.leaders_only)


def _begin(asked: SimulationRequest, estate: Estate | None) -> SimulatedCluster:
    by = _choose_weights(asked, estate)
    if by is not LoadKind.COUNT and asked.against is None:
        raise UsageError(f"--by {by} needs a snapshot with sizes or rates; pass one with --against")
    if asked.against is not None and asked.brokers is None:
        if asked.racks is not None:
            raise UsageError("--against defines the racks; leave --racks out")
        state = read_snapshot(asked.against)
        if not asked.by and ReplicaWeights(state, by).is_blank:
            print_note(
                f"no size is known of any partition, so topics are placed by count, not {by}"
            )
            by = LoadKind.COUNT
        return SimulatedCluster.of(state, asked.min_insync, by)
    if asked.brokers is None or asked.against is not None:
        raise UsageError("start with either --against SNAPSHOT or --brokers N")
    if asked.racks is None:
        return SimulatedCluster(tuple(Broker(n + 1) for n in range(asked.brokers)))
    if asked.racks > asked.brokers:
        raise UsageError(
            f"{count(asked.brokers, 'broker')} cannot fill {count(asked.racks, 'rack')}"
        )
    return SimulatedCluster(
        tuple(Broker(n + 1, f"rack{n % asked.racks}") for n in range(asked.brokers))
    )


def _load_estate(asked: SimulationRequest) -> Estate | None:
    if asked.estate is None and asked.cluster is None:
        return None
    if asked.estate is None or asked.cluster is None:
        raise UsageError("topics differ by cluster: name both ESTATE and --cluster")
    return load_estate(asked.estate)


def _choose_strategies(asked: SimulationRequest, estate: Estate | None) -> SimulationRequest:
    """Simulate the controller's own placement alone where the brokers place replicas.

    A strategy that is named is simulated nevertheless.
    """
    if estate is None or asked.cluster is None or asked.strategy:
        return asked
    why = find_cluster(estate, asked.cluster).why_no_rows
    if not why:
        return asked
    if asked.partitions_from is not None or asked.to is not None:
        raise UsageError(f"{why}; to try counts with a strategy of reconciler, name --strategy")
    print_note(
        f"{why}: only the placement of Apache Kafka's controller is simulated, and those of "
        "another service may place them elsewhere"
    )
    return replace(asked, strategy=(KAFKA,))


def _read_estate(
    asked: SimulationRequest, estate: Estate | None, simulated: SimulatedCluster
) -> Iterator[WantedTopic]:
    """Yield the topics of the estate that the cluster lacks, or has with fewer partitions."""
    if estate is None or asked.cluster is None:
        return
    find_cluster(estate, asked.cluster)
    for spec in estate.topics_for(asked.cluster):
        live = simulated.topics.get(spec.name)
        partitions = len(spec.assignment) if spec.assignment else spec.partitions
        replication = len(spec.assignment[0]) if spec.assignment else spec.replication_factor
        if spec.absent or partitions is None or (live is None and replication is None):
            continue
        if live is not None and partitions <= len(live.assignment):
            continue
        yield WantedTopic(
            spec.name,
            partitions,
            # New partitions of a topic get the replication factor of its first ones.
            None if live is not None else replication,
            int(spec.config.get("min.insync.replicas", asked.min_insync)),
            spec.rack_aware,
            spec.assignment,
        )


def _read_topics(texts: Sequence[str], min_insync: int) -> Iterator[WantedTopic]:
    for text in texts:
        match = re.fullmatch(r"([^=\s]+)=([1-9][0-9]{0,6})[x×]([1-9][0-9]{0,4})", text)
        if match is None:
            raise UsageError(
                f"{text!r} is not a topic; write NAME=PARTITIONSxREPLICATION: orders=12x3"
            )
        yield WantedTopic(match[1], int(match[2]), int(match[3]), min_insync)


def _read_step(name: str, value: Any, min_insync: int) -> SimulationStep:
    match name:
        case "create":
            return Place(tuple(_read_topics([value], min_insync)))
        case "grow":
            match = re.fullmatch(r"([^=\s]+)=([1-9][0-9]{0,6})", value)
            if match is None:
                raise UsageError(f"{value!r} is not a growth; write NAME=PARTITIONS: orders=24")
            return Place((WantedTopic(match[1], int(match[2])),))
        case "add_brokers":
            number, _, rack = value.partition(":")
            if not re.fullmatch(r"[1-9][0-9]{0,3}", number):
                raise UsageError(
                    f"{value!r} is not a number of brokers; write N or N:RACK: 3:rack1"
                )
            return AddBrokers(int(number), rack or None)
        case "rebalance":
            return Rebalance(value)
        case "lose_broker":
            return LoseBroker(value)
        case _:
            return LoseRack(value)


def _try_counts(
    simulated: SimulatedCluster, steps: Sequence[SimulationStep], asked: SimulationRequest
) -> str:
    """Take all steps but the last, then try the last step with each partition count."""
    if asked.partitions_from is None or asked.to is None:
        raise UsageError("--partitions-from and --to go together")
    if simulated.weights.by is not LoadKind.COUNT:
        by = simulated.weights.by
        raise UsageError(
            f"--partitions-from compares counts of partitions; write --by count, not {by}"
        )
    counts = range(asked.partitions_from, asked.to + 1)
    if not 0 < len(counts) <= MOST_COUNTS:
        raise UsageError(f"--to is at least --partitions-from, and at most {MOST_COUNTS} are tried")
    strategy = asked.strategy[0] if asked.strategy else STRATEGIES[0]
    if len(asked.strategy) > 1 or strategy == KAFKA:
        raise UsageError("counts are tried with one strategy; kafka is always compared")
    last = steps[-1] if steps else None
    if not isinstance(last, Place) or len(last.topics) != 1:
        raise UsageError("counts are tried for one topic; name it last: --create or --grow")
    for step in steps[:-1]:
        simulated = simulated.take(step, choose_placer(strategy))
    (wanted,) = last.topics
    results = tuple(compare_counts(simulated, wanted, counts, strategy, asked.draws))
    if asked.form == "json":
        return list_counts(wanted.topic, strategy, results)
    return render_counts(wanted, strategy, simulated, results)
