"""What the jobs of a fleet share: where Spark runs, where the lake is, and how a job is watched."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from reconciler.cli.terminal import print_note, working
from reconciler.errors import UsageError
from reconciler.fleet.session import Engine, open_session
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import FrameType

    from pyspark.sql import SparkSession

    from reconciler.fleet.lake import Lake

T = TypeVar("T")

lake_option = click.option(
    "--lake",
    "root",
    required=True,
    metavar="DIR",
    help="Where collections are kept: a directory, what else Spark can write to, or a namespace.",
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
    """A session that jobs run in, and whom they tell what they do."""

    session: SparkSession
    announce: Callable[[str], None]


@contextmanager
def spark_job(engine: Engine) -> Iterator[Job]:
    """Open a session, and show how far its work is where a person is looking.

    The session is left open: the JVM ends with this process, and `stop` waits a second.
    """
    with working("starting Spark") as say, _Interrupts() as interrupts:
        session, line = open_session(engine, say), _Line(say, interrupts)
        interrupts.watch()  # PySpark has put a handler of its own in the place of ours
        from reconciler.fleet.progress import watch_tasks
        from reconciler.fleet.trouble import plain_reasons

        watched = watch_tasks(session, line.count) if sys.stderr.isatty() else nullcontext()
        with plain_reasons(), watched:
            yield Job(session, line.announce)


class _Interrupts:
    """Remembers Ctrl-C: one in some hundred had no effect while Spark started.

    Python drops an exception in what it calls when a value is let go, for example.
    """

    def __init__(self) -> None:
        self._taken = False
        self._before = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Self:
        self.watch()
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def watch(self) -> None:
        """Remember what the handler of this moment is called for."""
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):  # it is ignored
            return

        def take(number: int, frame: FrameType | None) -> None:
            self._taken = True
            handler(number, frame)

        signal.signal(signal.SIGINT, take)
        self.check()

    def check(self) -> None:
        """Errors: KeyboardInterrupt if one has come, taken or dropped."""
        if self._taken:
            raise KeyboardInterrupt


class _Line:
    """The line on the screen that says what a job does, and how many of its tasks are done."""

    def __init__(self, say: Callable[[str], None], interrupts: _Interrupts) -> None:
        self._say, self._interrupts, self._what = say, interrupts, "working"

    def announce(self, what: str) -> None:
        self._interrupts.check()
        self._what = what
        self._say(what)

    def count(self, done: int, of: int) -> None:
        self._say(f"{self._what}, {done} of {count(of, 'task')}")


def open_lake(session: SparkSession, root: str, form: str) -> Lake:
    """Return the lake, whose place Spark is told in full where it is on this machine.

    Warns of collections that are ahead of the clock. Errors: LakeError for another layout.
    """
    from pathlib import Path

    from reconciler.fleet.lake import OF_A_CATALOGUE, Lake
    from reconciler.fleet.lake.stores import is_path

    if is_path(root) and form not in OF_A_CATALOGUE:
        root = str(Path(root.removeprefix("file:")).absolute())
    lake = Lake(session, root, form)
    warn_ahead((attempt.collection for attempt in lake.list_attempts()), root)
    return lake


def warn_ahead(collections: Iterable[str], root: str) -> None:
    """Warn of collections that are ahead of the clock: they count as the latest."""
    from reconciler.fleet.lake import find_ahead

    for finding in find_ahead(collections, datetime.now(UTC), root):
        print_note(f"warning: {finding}")


def read_addresses(pairs: tuple[str, ...]) -> Mapping[str, str]:
    """Read NAME=HOST:PORT,… of --bootstrap-servers. Errors: UsageError."""
    for pair in pairs:
        if not pair.partition("=")[2]:
            raise UsageError(f"--bootstrap-servers {pair}: write NAME=HOST:PORT,…")
    return {pair.partition("=")[0]: pair.partition("=")[2] for pair in pairs}
