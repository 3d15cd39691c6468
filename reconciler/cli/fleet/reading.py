"""Shared by `collect` and `plan --live`: the clusters to read, and their specs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reconciler.cli.fleet.options import read_addresses, warn_ahead
from reconciler.cli.git import Checkout, GitError, read_commit
from reconciler.cli.terminal import print_note
from reconciler.errors import UsageError
from reconciler.model.plan import Commit

if TYPE_CHECKING:
    from reconciler.fleet.jobs import Collected
    from reconciler.fleet.lake.lake import Lake
    from reconciler.fleet.source.spec_tree import Tree
    from reconciler.spec.estate import Estate

T = TypeVar("T")

_OPTIONS = {
    "clusters": click.option(
        "--cluster",
        "clusters",
        multiple=True,
        metavar="NAME",
        help="Only these clusters; repeatable.",
    ),
    "commit": click.option("--commit", metavar="REF", help="Use the specs at this git commit."),
    "addresses": click.option(
        "--bootstrap-servers",
        "addresses",
        multiple=True,
        metavar="NAME=HOST:PORT,…",
        help="Address of the cluster NAME; overrides clusters.yaml; repeatable.",
    ),
    "ranges": click.option(
        "--ranges",
        type=click.IntRange(1, 1000),
        default=1,
        help="Split each cluster's topics over this many tasks.",
    ),
    "time_limit": click.option(
        "--time-limit",
        type=click.FloatRange(min=0, min_open=True),
        default=300,
        show_default=True,
        metavar="SECONDS",
        help="Timeout per cluster.",
    ),
}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options for reading clusters, from the command line."""

    clusters: tuple[str, ...]
    commit: str | None
    addresses: tuple[str, ...]
    ranges: int
    time_limit: float


@dataclass(frozen=True, slots=True)
class Reading:
    """The clusters to read, and the specs to collect with them."""

    tree: Tree
    estate: Estate
    commit: Commit | None
    chosen: Mapping[str, str]

    def collect(self, lake: Lake, collection: str, announce: Callable[[str], None]) -> Collected:
        """Read the clusters and the specs into a lake."""
        from reconciler.fleet.jobs import collect_fleet
        from reconciler.fleet.lake.attempts import encode_commit
        from reconciler.fleet.source.kafka_metadata import KafkaMetadata
        from reconciler.fleet.source.spec_tree import SpecTree

        session = lake.session
        session.dataSource.register(KafkaMetadata)
        session.dataSource.register(SpecTree)
        facts = session.read.format(KafkaMetadata.name()).options(**self.chosen).load()
        specs = session.read.format(SpecTree.name()).options(**self.tree.list_options()).load()
        sha = encode_commit(self.commit)
        return collect_fleet(lake, facts, specs, collection, commit=sha, announce=announce)


def reading_options(function: Callable[..., T]) -> Callable[..., T]:
    """Add the options that say how clusters are read; they arrive as one `asked`."""

    @wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> T:
        asked = ReadOptions(**{name: options.pop(name) for name in _OPTIONS})
        return function(*arguments, asked=asked, **options)

    for option in reversed(_OPTIONS.values()):
        wrapped = option(wrapped)
    return wrapped


def name_now() -> str:
    """Return the name of a collection that starts now."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")


def choose_name(collection: str | None, root: str) -> str:
    """Return the name of a collection: the given one, or the current time; warn if it is ahead.

    Errors: LakeError for an invalid name.
    """
    from reconciler.fleet.lake.attempts import start_attempt

    if collection is None:
        return name_now()
    start_attempt(collection)
    warn_ahead([collection], root)
    return collection


def refuse_asked(context: click.Context) -> None:
    """Refuse options of reading if nothing is read, but those that choose. Errors: UsageError."""
    refused = _OPTIONS.keys() - {"clusters"}
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name in refused and source is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"{parameter.opts[0]} says how clusters are read; add --live")


def prepare_reading(path: str, asked: ReadOptions) -> Reading:
    """Find the clusters to read, before Spark starts. Errors: ReconcilerError."""
    from reconciler.api.connections import find_cluster
    from reconciler.changes.due import may_be_due
    from reconciler.fleet.source.kafka_metadata import choose_clusters
    from reconciler.fleet.source.spec_tree import find_tree

    read_at = _find_commit(path, asked.commit)
    tree = find_tree(path, read_at.sha if asked.commit and read_at else None)
    estate = tree.load()
    addresses = read_addresses(asked.addresses)
    if not (asked.clusters or estate.declared):
        raise UsageError("clusters.yaml names no cluster, so there is no fleet")
    entries = [find_cluster(estate, name) for name in asked.clusters or estate.declared]
    today = datetime.now(UTC).date().isoformat()
    used = {
        entry.name: [s.name for s in estate.topics_for(entry.name) if may_be_due(s, today)]
        for entry in entries
        if entry.name in estate.declared
    }
    chosen = choose_clusters(entries, addresses, asked.ranges, asked.time_limit, used)
    return Reading(tree, estate, read_at, chosen)


def _find_commit(estate: str, ref: str | None) -> Commit | None:
    """Return the requested commit, or the commit of the files, if git reports one."""
    from reconciler.model.plan import Commit

    if ref is not None:
        return Commit(Checkout(Path(estate)).find_commit(ref))
    try:
        return read_commit(Path(estate))
    except GitError as error:
        if error.is_surprising:
            print_note(f"the collection names no commit of its specs: {error}")
        return None
