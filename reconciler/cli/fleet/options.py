"""What the jobs of a fleet share: where Spark runs, where the lake is, and how a job is watched."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reconciler.cli.terminal import print_note
from reconciler.errors import FleetError, UsageError
from reconciler.fleet.session import Engine, open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from reconciler.fleet.lake import Lake

T = TypeVar("T")

lake_option = click.option(
    "--lake",
    "root",
    required=True,
    metavar="DIR",
    help="Where collections are kept: a directory, or what else Spark can write to.",
)
collection_option = click.option(
    "--collection", metavar="WHEN", help="Which, as 20261121T030000Z.  [default: the latest]"
)


def engine_options(function: Callable[..., T]) -> Callable[..., T]:
    """Add the options that say where Spark runs; they arrive as one `engine`."""

    @click.option("--master", metavar="URL", help="Spark's master.  [default: local[*]]")
    @click.option("--remote", metavar="URL", help="A Spark Connect server, as sc://host.")
    @click.option("--memory", metavar="SIZE", help="The heap of this machine's Spark, as 4g.")
    @click.option("--large", is_flag=True, help="Tune for millions of partitions.")
    @click.option("--lake-format", "form", default="parquet", show_default=True, metavar="NAME")
    @wraps(function)
    def wrapped(
        *arguments: Any,
        master: str | None,
        remote: str | None,
        memory: str | None,
        large: bool,
        **options: Any,
    ) -> T:
        if master and remote:
            raise UsageError("--master and --remote are two places; name one")
        engine = Engine(master=master, remote=remote, memory=memory, large=large)
        return function(*arguments, engine=engine, **options)

    return wrapped


@contextmanager
def spark_job(engine: Engine) -> Iterator[SparkSession]:
    """Open a session, and tell what Spark reports in words instead of a traceback.

    The session is left open: the JVM ends with this process, and `stop` waits a second.
    """
    session = open_session(engine, announce)
    from pyspark.errors import PySparkException

    try:
        yield session
    except PySparkException as error:
        raise FleetError(f"Spark gave up: {_first_reason(error)}") from error


def announce(what: str) -> None:
    """Say on stderr what a job does now."""
    if sys.stderr.isatty():
        print_note(f"{what} …")


def open_lake(session: SparkSession, root: str, form: str) -> Lake:
    """Return the lake, whose place Spark is told in full where it is on this machine."""
    from pathlib import Path

    from reconciler.fleet.lake import Lake

    place = root if "://" in root else str(Path(root).absolute())
    return Lake(session, place, form)


def read_addresses(pairs: tuple[str, ...]) -> Mapping[str, str]:
    """Read NAME=HOST:PORT,… of --bootstrap-servers. Errors: UsageError."""
    for pair in pairs:
        if not pair.partition("=")[2]:
            raise UsageError(f"--bootstrap-servers {pair}: write NAME=HOST:PORT,…")
    return {pair.partition("=")[0]: pair.partition("=")[2] for pair in pairs}


def _first_reason(error: Exception) -> str:
    """Return the line that says what went wrong, not where in Spark it did."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("reconciler.errors.")]
    return ours[-1].partition(": ")[2] if ours else lines[0] if lines else repr(error)
