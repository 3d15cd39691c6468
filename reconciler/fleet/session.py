"""The Spark session that a job runs in: on this machine, on a Spark cluster, or by Connect."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Self

from reconciler.errors import FleetError, UsageError, say_install
from reconciler.fleet.runtime import isolated_workers
from reconciler.sandbox.paths import state_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOCAL = "local[*]"
SHUFFLES = "spark.sql.shuffle.partitions"
CHOSEN = "spark.reconciler.shuffle.partitions"
"""Keeps the number that `size_shuffles` has chosen: any other number was configured by the user."""
ROWS_PER_SHUFFLE, LEAST_PARALLELISM = 200_000, 2
LOGGING = Path(__file__).with_name("log4j2.properties").as_uri()

LEAST_MEMORY, LEAST_MEGABYTES = "512m", 512
"""Spark refuses a heap of less than 450 MB, of which a collector may keep some for itself."""
_SIZE = re.compile(r"([0-9]+)([kmgt])b?", re.IGNORECASE)
_MEGABYTES = {"k": 2**-10, "m": 1, "g": 2**10, "t": 2**20}

COMMON: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    # With any lower limit, Spark measures the whole batch after each row that it sends to Python.
    # For nested columns, that took 72 % of a plan of a million partitions.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",  # a history reads many
    "spark.ui.showConsoleProgress": "false",
}
WORKERS: Mapping[str, str] = {"spark.executorEnv.PYTHONSAFEPATH": "1"}
"""Executors of a Spark cluster, and a JVM that others started: see `isolated_workers`."""
SPARK_PROFILE = "org/apache/spark/log4j2"
"""The log4j profile that Spark has if nobody configures one; it is in a jar of Spark."""

EMBEDDED: Mapping[str, str] = {
    # An audit needs more than 200 classes. Spark keeps 100, and so compiled most of them twice.
    # More of them are alike without the number of their stage in their name.
    "spark.sql.codegen.cache.maxEntries": "10000",
    "spark.sql.codegen.useIdInClassName": "false",
    # PySpark tells the JVM for every column where in Python it comes from, for its error messages.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine and the size of a job.

    `large` keeps the JVM's full compiler and Spark's adaptive execution: a job of millions of rows
    gains from both, and a small job pays for them. `memory` is the heap of the driver, such as 4g.
    """

    master: str | None = None
    remote: str | None = None
    large: bool = False
    memory: str | None = None

    def __post_init__(self) -> None:
        """Errors: UsageError for a memory that is no size, or too small for Spark."""
        if self.memory is None:
            return
        found = _SIZE.fullmatch(self.memory)
        if found is None or int(found[1]) * _MEGABYTES[found[2].lower()] < LEAST_MEGABYTES:
            raise UsageError(
                f"--memory {self.memory}: write a size of at least {LEAST_MEMORY}, as 4g"
            )


def open_session(engine: Engine, announce: Callable[[str], None] = lambda _: None) -> SparkSession:
    """Return the session of an engine, or the active one of spark-submit or of the caller.

    `announce` gets the name of a slow step. Errors: FleetError if the extra or Java is missing.
    """
    for module in ("pyspark", "pyarrow"):
        if find_spec(module) is None:
            raise FleetError(
                f"fleet runs on Spark, and {module} is not installed; {say_install('fleet')}"
            )
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if (active := SparkSession.getActiveSession()) is not None:
        # A running session refuses settings of its JVM; those of SQL are enough for a job.
        for key, value in COMMON.items():
            if active.conf.isModifiable(key):
                active.conf.set(key, value)
        size_shuffles(active)
        return active
    builder = SparkSession.builder.appName("reconciler fleet")
    where = engine.remote or engine.master or LOCAL
    if engine.remote:
        builder = builder.remote(where)
    elif not _is_submitted(engine):
        builder = builder.master(where)
    settings = {**COMMON, **_choose_settings(engine, announce)}
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    log = state_directory("fleet") / "spark.log"
    try:
        with isolated_workers(), _logging_to(log), Interrupts() as interrupts, interrupts.hold():
            if _is_submitted(engine):
                settings |= _join_submitted()
            for key, value in settings.items():
                builder = builder.config(key, value)
            session = builder.getOrCreate()
            size_shuffles(session)
            return session
    except (PySparkException, Py4JError, OSError) as error:
        said = str(error).splitlines()[0]
        raise FleetError(f"no Spark session on {where}: {said}; {log} has more") from error


def size_shuffles(session: SparkSession, rows: int = 0) -> None:
    """Size the shuffles of a session for so many rows, unless its user has configured a size.

    Spark's 200 parts cost more than the rows of a small fleet, and are too few for a huge one.
    """
    configured = session.conf.getAll
    if configured.get(SHUFFLES) != configured.get(CHOSEN):
        return
    parts = str(max(2 * _count_cores(session), -(-rows // ROWS_PER_SHUFFLE)))
    session.conf.set(SHUFFLES, parts)
    session.conf.set(CHOSEN, parts)


def is_connect(made: SparkSession | DataFrame) -> bool:
    """Return whether a session or a table is that of a Connect client, without a JVM of its own."""
    return "connect" in type(made).__module__


def _count_cores(session: SparkSession) -> int:
    """Return how many tasks run at once; Connect does not say it."""
    if is_connect(session):
        return LEAST_PARALLELISM
    return max(session.sparkContext.defaultParallelism, LEAST_PARALLELISM)


class Interrupts:
    """Ctrl-C around Spark: held back while PySpark starts its JVM, and remembered until the end.

    An interrupted PySpark removes the file in which the JVM writes its port. A JVM that does not
    find this file neither serves nor ends. Also, about one Ctrl-C in a hundred had no effect while
    Spark started: Python drops an exception in a finalizer, for example.
    """

    def __init__(self) -> None:
        self._taken = self._held = False
        self._before = signal.getsignal(signal.SIGINT)
        self._ours: object = None

    def __enter__(self) -> Self:
        self.watch()
        return self

    def __exit__(self, *_: object) -> None:
        if signal.getsignal(signal.SIGINT) is self._ours:  # a new context has its own handler
            signal.signal(signal.SIGINT, self._before)

    def watch(self) -> None:
        """Remember the calls of the current handler."""
        handler = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(handler):
            return  # Python calls handlers in the main thread only; or Ctrl-C is ignored

        def take(number: int, frame: FrameType | None) -> None:
            self._taken = True
            if not self._held:
                handler(number, frame)

        signal.signal(signal.SIGINT, take)
        self._ours = take
        self.check()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold Ctrl-C back until the end of the block. Errors: KeyboardInterrupt if it came."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self.check()

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed, even if Python dropped the exception."""
        if self._taken:
            raise KeyboardInterrupt


@contextmanager
def _logging_to(log: Path) -> Iterator[None]:
    """Redirect the terminal output of a JVM that starts in the block to a file."""
    sys.stderr.flush()
    before = os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _is_submitted(engine: Engine) -> bool:
    """Return whether spark-submit started this process: then it has chosen where jobs run."""
    return "PYSPARK_GATEWAY_PORT" in os.environ and engine.master is None


def _join_submitted() -> dict[str, str]:
    """Join the JVM of spark-submit. Returns: the settings of a local master that nobody configured.

    The JVM logs as its user has configured, else errors only.
    """
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # connects; the context that logs most starts later
    jvm = SparkContext._jvm
    assert jvm is not None  # noqa: S101  # there is one, as the line above connected to it
    configured = SparkConf()  # the properties of the JVM
    # Spark sets up its logging when it first logs: after ours, it would replace ours.
    jvm.org.apache.spark.SparkConf().initializeLogIfNecessary(False, True)  # noqa: FBT003
    log4j = jvm.org.apache.logging.log4j
    configuration = log4j.LogManager.getContext(False).getConfiguration()  # noqa: FBT003
    profile = configuration.getConfigurationSource().getLocation()
    if profile is None or SPARK_PROFILE in profile:
        log4j.core.config.Configurator.reconfigure(jvm.java.net.URI(LOGGING))
    if not (configured.get("spark.master") or LOCAL).startswith("local"):
        return {**WORKERS}
    free = {key: value for key, value in EMBEDDED.items() if not configured.contains(key)}
    return {**WORKERS, **free}


def _choose_settings(engine: Engine, announce: Callable[[str], None]) -> dict[str, str]:
    """Return the settings of a session that starts here; a Spark cluster has its own."""
    if engine.remote is not None or _is_submitted(engine):
        return {}
    embedded = (engine.master or LOCAL).startswith("local")
    memory = {"spark.driver.memory": engine.memory} if engine.memory else {}
    if not embedded:
        return {**WORKERS, **memory, **_options(announce, quick=False)}
    if engine.large:
        return {**EMBEDDED, **memory, **_options(announce, quick=False)}
    small = {"spark.sql.adaptive.enabled": "false"}
    return {**EMBEDDED, **small, **memory, **_options(announce, quick=True)}


def _options(announce: Callable[[str], None], *, quick: bool) -> dict[str, str]:
    """Return the options of the JVM that this process is about to start."""
    from reconciler.fleet.runtime import QUICK, find_archive, use_java

    archive = find_archive(use_java(), announce)
    options = [*(QUICK if quick else ())]
    if archive is not None:
        # The JVM ignores an archive that does not fit. Its warning must not be among the results.
        options += [f"-XX:SharedArchiveFile={archive}"]
        options += ["-Xlog:disable", "-Xlog:all=warning:stderr"]
    options += [f"-Dlog4j2.configurationFile={LOGGING}"]
    return {"spark.driver.extraJavaOptions": " ".join(options)}
