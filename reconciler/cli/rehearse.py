"""`reconciler rehearse`: run a plan on a throwaway cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from reconciler.api.connections import find_cluster
from reconciler.api.planning import build_plan, load_estate
from reconciler.api.rehearsing import rehearse_plan
from reconciler.api.snapshots import read_snapshot, take_snapshot
from reconciler.cli import options
from reconciler.cli.plans import read_plan
from reconciler.cli.sandbox import StartProgress
from reconciler.cli.terminal import print_note, wants_colour, working
from reconciler.errors import RefusedPlanError, UsageError
from reconciler.model.cluster import ClusterState
from reconciler.model.plan import Plan, is_chosen, list_unmatched
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from reconciler.rehearse.rehearsal import Rehearsal

ReportFormat = Literal["text", "json", "markdown"]
INTERRUPTED = 130


@click.command(cls=options.Command)
@click.argument("source", default="topics", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--estate",
    type=click.Path(path_type=Path),
    default=Path("topics"),
    show_default=True,
    help="Where clusters.yaml is, for a saved plan; optional.",
)
@click.option("--cluster", metavar="NAME", help="Cluster; one per run. A saved plan names its own.")
@options.bootstrap_option
@options.topic_option
@click.option(
    "--against",
    metavar="SNAPSHOT",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take the cluster's state from this file instead of the cluster.",
)
@click.option(
    "--kafka",
    metavar="VERSION",
    callback=options.read_release,
    help="Kafka release of the throwaway cluster.  [default: the cluster's own]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="For a terminal, for programs, or as a comment.",
)
def command(
    source: Path,
    estate: Path,
    *,
    cluster: str | None,
    bootstrap_servers: str | None,
    topic: str,
    against: Path | None,
    kafka: str | None,
    form: ReportFormat,
) -> int:
    """Apply a saved PLAN, or a plan of SOURCE, an estate, for --cluster, to a throwaway cluster.

    The throwaway cluster has the same broker ids, racks and topics, and is removed afterwards. The
    real cluster is only read. Exits 0 if everything went as planned, otherwise 1.
    SOURCE defaults to topics.
    """
    if against is not None and bootstrap_servers is not None:
        raise UsageError("--against reads a file; leave --bootstrap-servers out")
    if source.is_file() and source.suffix not in (".yaml", ".yml"):
        if options.is_given("bootstrap_servers"):
            raise UsageError("a saved plan needs no cluster; leave --bootstrap-servers out")
        occasion = _take_saved(source, estate, cluster, topic, against)
    else:
        occasion = _plan_afresh(source, cluster, bootstrap_servers, topic, against)
    from reconciler.diff.guards import list_refusals
    from reconciler.model.steps import steps_of

    if not any(steps_of(changed) for changed in occasion.plan.topics):
        if refusals := list_refusals(occasion.plan):
            raise RefusedPlanError(refusals)
        print_note("the plan changes nothing, so there is nothing to rehearse")
        return 0
    with StartProgress() as progress:
        rehearsal = rehearse_plan(
            occasion.plan,
            state=occasion.state,
            entry=occasion.entry,
            replan=occasion.replan,
            kafka_version=kafka,
            progress=progress,
        )
    click.echo(render_in_form(rehearsal, form), nl=False, color=True)
    return INTERRUPTED if rehearsal.interrupted else 0 if rehearsal.succeeded else 1


class Occasion(NamedTuple):
    """A plan, the state and entry of its cluster, and how to plan again after the rehearsal."""

    plan: Plan
    state: ClusterState | None
    entry: ClusterEntry | None
    replan: Callable[[ClusterState], Plan] | None = None


def render_in_form(rehearsal: Rehearsal, form: ReportFormat) -> str:
    """Render a rehearsal in the requested form."""
    from reconciler.rehearse.markdown import render_rehearsal_comment
    from reconciler.rehearse.rehearsal import encode_rehearsal
    from reconciler.rehearse.text import render_rehearsal

    if form == "json":
        return encode_rehearsal(rehearsal)
    if form == "markdown":
        return render_rehearsal_comment(rehearsal)
    return render_rehearsal(rehearsal, colour=wants_colour(sys.stdout))


def _take_saved(
    source: Path, estate: Path, cluster: str | None, glob: str, against: Path | None
) -> Occasion:
    """Read a saved plan. The estate gives only the Kafka release of the cluster."""
    plan = read_plan(source)
    if cluster not in (None, plan.cluster):
        raise UsageError(f"the plan is for {plan.cluster}, not for {cluster}")
    _check_glob([topic.name for topic in plan.topics], glob, f"of the plan {source}")
    chosen = tuple(topic for topic in plan.topics if is_chosen(topic.name, glob))
    entry = load_estate(estate).clusters.get(plan.cluster) if estate.is_dir() else None
    state = read_snapshot(against) if against else None
    return Occasion(replace(plan, topics=chosen), state, entry)


def _check_glob(names: Collection[str], glob: str, which: str) -> None:
    """Refuse a glob without a match: a rehearsal of nothing would look like a success."""
    if glob != "*" and (unmatched := list_unmatched(names, glob)):
        raise UsageError(f"no topic {which} matches --topic {unmatched[0]!r}")


def _plan_afresh(
    source: Path, cluster: str | None, servers: str | None, glob: str, against: Path | None
) -> Occasion:
    """Plan on the entire state, so that the balance on the throwaway cluster is the real one."""
    if cluster is None:
        raise UsageError("name the cluster: --cluster NAME")
    loaded = load_estate(source)
    entry = find_cluster(loaded, cluster)
    names = [spec.name for spec in loaded.topics_for(cluster)]
    _check_glob(names, glob, f"that goes to {cluster}")
    if against is not None:
        state = read_snapshot(against)
    else:
        with working(f"reading {cluster}"):
            state = take_snapshot(loaded, cluster, bootstrap_servers=servers)
    replan = partial(build_plan, loaded, cluster, topics=glob)
    return Occasion(replan(state), state, entry, replan)
