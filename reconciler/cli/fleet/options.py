"""Shared by the jobs of a fleet: the Spark engine, the lake, and the progress display."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reconciler.cli.terminal import print_note, working
from reconciler.errors import UsageError
from reconciler.fleet.session import Engine, Interrupts, open_session
from reconciler.units import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.fleet.lake.attempts import Published
    from reconciler.fleet.lake.lake import Lake

T = TypeVar("T")

lake_option = click.option(
    "--lake",
    "root",
    required=True,
    metavar="DIR",
    help="Where collections are kept: a directory, a URL that Spark can write to, or a namespace.",
)
collection_option = click.option(
    "--collection",
    metavar="WHEN",
    help="Collection, such as 20261121T030000Z.  [default: the latest]",
)


def engine_options(function: Callable[..., T]) -> Callable[..., T]:
    """Add the options that say where Spark runs; they arrive as one `engine`."""

    @click.option("--master", metavar="URL", help="Spark's master.  [default: local[*]]")
    @click.option("--remote", metavar="URL", help="A Spark Connect server, as sc://host.")
    @click.option("--memory", metavar="SIZE", help="The heap of the local Spark, such as 4g.")
    @click.option("--large", is_flag=True, help="Tune for millions of partitions.")
    @click.option(
        "--lake-format",
        "form",
        default="parquet",
        show_default=True,
        metavar="NAME",
        help="How Spark stores the tables of the lake.",
    )
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


@dataclass(frozen=True, slots=True)
class Job:
    """The session of jobs, and the receiver of their progress."""

    session: SparkSession
    announce: Callable[[str], None]


@contextmanager
def spark_job(engine: Engine) -> Iterator[Job]:
    """Open a session, and show the progress of its tasks on a terminal.

    The session stays open: the JVM ends with this process, and `stop` takes a second.
    """
    with working("starting Spark") as say, Interrupts() as interrupts:
        session, line = open_session(engine, say), _Line(say, interrupts)
        interrupts.watch()  # PySpark replaces the handler of SIGINT when a session starts
        from reconciler.fleet.trouble import plain_reasons, watch_tasks

        watched = watch_tasks(session, line.count) if sys.stderr.isatty() else nullcontext()
        with plain_reasons(), watched:
            yield Job(session, line.announce)


class _Line:
    """The progress line of a job: its stage, and the number of finished tasks."""

    def __init__(self, say: Callable[[str], None], interrupts: Interrupts) -> None:
        self._say, self._interrupts, self._what = say, interrupts, "working"

    def announce(self, what: str) -> None:
        self._interrupts.check()
        self._what = what
        self._say(what)

    def count(self, done: int, of: int) -> None:
        self._say(f"{self._what}, {done} of {count(of, 'task')}")


def open_lake(session: SparkSession, root: str, form: str) -> Lake:
    """Return the lake. On this machine, Spark gets its absolute path.

    Warns of collections with a time in the future. Errors: LakeError for another layout.
    """
    from pathlib import Path

    from reconciler.fleet.lake.lake import Lake
    from reconciler.fleet.lake.storage import OF_A_CATALOGUE
    from reconciler.fleet.lake.stores import is_path

    if is_path(root) and form not in OF_A_CATALOGUE:
        root = str(Path(root.removeprefix("file:")).absolute())
    lake = Lake(session, root, form, counts_once=True)
    warn_ahead((attempt.collection for attempt in lake.list_attempts()), root)
    return lake


def refuse_unread(clusters: Iterable[str], attempts: Iterable[Published]) -> None:
    """Refuse names of clusters that no attempt at a collection has. Errors: UsageError."""
    from reconciler.diff.notes import name_some

    known = {name for attempt in attempts for name in attempt.rows["readings"]}
    for name in clusters:
        if name not in known:
            listed = name_some(sorted(known)) or "none"
            raise UsageError(f"no cluster of the lake matches --cluster {name!r}; it has: {listed}")


def warn_ahead(collections: Iterable[str], root: str) -> None:
    """Warn of collections with a time in the future: they count as the latest."""
    from reconciler.fleet.lake.attempts import find_ahead

    for finding in find_ahead(collections, datetime.now(UTC), root):
        print_note(f"warning: {finding}")


def read_addresses(pairs: tuple[str, ...]) -> Mapping[str, str]:
    """Read NAME=HOST:PORT,… of --bootstrap-servers. Errors: UsageError."""
    for pair in pairs:
        if not pair.partition("=")[2]:
            raise UsageError(f"--bootstrap-servers {pair}: write NAME=HOST:PORT,…")
    return {pair.partition("=")[0]: pair.partition("=")[2] for pair in pairs}
