"""Where a command that only reads may read: a cluster of an estate, an address, or a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from reconciler.api.connections import find_cluster
from reconciler.api.inventory import Target
from reconciler.api.planning import load_estate
from reconciler.cli.options import bootstrap_option
from reconciler.errors import UsageError

F = TypeVar("F", bound="Callable[..., Any]")

_TARGET = (
    click.argument("estate", required=False, type=click.Path(path_type=Path)),
    click.option("--cluster", metavar="NAME", help="Cluster of ESTATE; one per run."),
    bootstrap_option,
    click.option(
        "--against",
        metavar="SNAPSHOT",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Read this snapshot instead of the cluster.",
    ),
)


def target_options(command: F) -> F:
    """Add the argument and the options that `aim` takes."""
    for option in reversed(_TARGET):
        command = option(command)
    return command


def aim(
    estate: Path | None, cluster: str | None, bootstrap_servers: str | None, against: Path | None
) -> Target:
    """Return where to read, with the specs of the cluster if it is one of an estate.

    Errors: SpecError; UsageError for an unknown cluster, and for an estate without a cluster.
    """
    if cluster is not None:
        loaded = load_estate(estate or "topics")
        find_cluster(loaded, cluster)
        return Target(loaded, cluster, bootstrap_servers, against)
    if estate is not None:
        raise UsageError("ESTATE has several clusters; name one with --cluster NAME")
    return Target(None, None, bootstrap_servers, against)
