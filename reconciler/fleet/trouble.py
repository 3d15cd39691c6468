"""A running job: its progress in Spark, and its failures, each in one line."""

from __future__ import annotations

import errno
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError  # failures without an exception of Spark's own
from pyspark.core.status import StatusTracker
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reconciler.errors import Finding, FleetError, LakeError
from reconciler.sandbox.paths import state_directory

_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_TASK = re.compile(r"while writing rows to (\S+?)\.?(?:\s|$)")
_HEAP = re.compile(r"OutOfMemoryError|Java heap space|GC overhead limit|SparkOutOfMemory")
_UNREADABLE = re.compile(r"while reading file (\S+?)\.?(?:\s|$)")
_CRASHED = re.compile(r"Python worker exited unexpectedly|Lost task .* Lost executor")
_ENDED = "Connection refused"
_GONE = re.compile(
    rf"{_ENDED}|Answer from Java side is empty|occurred while trying to connect"
    # A thread without memory ends the JVM, which first stops the context below running jobs.
    r"|SparkContext was shut down|SparkContext\.\w+\(\)\" is null"
)
_OUTER = re.compile(r"TASK_WRITE_FAILED|Job aborted")


@contextmanager
def plain_reasons() -> Iterator[None]:
    """Translate errors of Spark and of the system to one line. Errors: LakeError, FleetError."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise explain_spark(_read_text(error)) from error
    except BrokenPipeError:  # the reader of our output has exited
        raise
    except ConnectionError as error:
        raise explain_spark(_ENDED) from error
    except OSError as error:
        raise explain_system(error) from error


def explain_spark(said: str) -> LakeError | FleetError:
    """Return what is wrong and the way out, from the message of Spark with all its causes.

    The order matters: a full disk or heap is often the cause behind a file or a lost JVM.
    """
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if ours := [line for line in lines if line.startswith("reconciler.errors.")]:
        return FleetError(f"Spark failed: {ours[-1].partition(': ')[2]}")
    if _FULL.search(said):
        return _say_full(f" while Spark writes {found[1]}" if (found := _TASK.search(said)) else "")
    if _HEAP.search(said):
        way_out = "give it more with --memory 4g, and add --large for millions of partitions"
        return _fail("fleet-memory", "the heap of Spark is too small for this job", way_out)
    if _CRASHED.search(said):
        what = (
            "a process of Spark was ended from outside, for example because the system is out of "
            "memory"
        )
        return _fail("fleet-memory", what, "run the job where there is more memory")
    if found := _UNREADABLE.search(said):
        what = f"{found[1]} cannot be read: it is damaged, or was removed during the job"
        return _fail("fleet-file", what, "make the collection again, or restore the file")
    log = state_directory("fleet") / "spark.log"
    if _GONE.search(said):
        what = "the JVM of Spark ended during the job, perhaps because it ran out of memory"
        return _fail(
            "fleet-memory", what, f"give it more with --memory 4g; {log} says why it ended"
        )
    return _fail("fleet-spark", f"Spark failed: {_choose_reason(lines)}", f"{log} has more")


def explain_system(error: OSError) -> LakeError:
    """Return what is wrong and the way out, from an error of the operating system."""
    place = f" while {error.filename} is written" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _say_full(place)
    what = f"{error.filename or 'a file of the job'}: {error.strerror or error}"
    return _fail(
        "fleet-file", what, "give this account read and write permission there, then run it again"
    )


def _read_text(error: Exception) -> str:
    """Return the text of an error. Py4J asks the JVM for some texts, and the JVM may have ended."""
    try:
        return str(error)
    except (Py4JError, OSError):
        return _ENDED


def _say_full(place: str) -> LakeError:
    what = f"no space is left on a disk{place}, and nothing was published"
    way_out = (
        "free some space, or put the lake (--lake) or Spark's files (SPARK_LOCAL_DIRS) on another "
        "disk"
    )
    return _fail("fleet-disk-full", what, way_out)


def _choose_reason(lines: list[str]) -> str:
    """Return the line with the cause, not the line with the place in Spark's code."""
    javas = [line for line in lines if line.startswith(": ")]  # after what was called
    first = (javas or lines or ["no reason is given"])[0]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    if causes and _OUTER.search(first):
        first = causes[-1].removeprefix("Caused by")
    return first.removeprefix(": ").partition(": ")[2] or first if first.startswith(": ") else first


def _fail(rule: str, what: str, way_out: str) -> LakeError:
    return LakeError([Finding(rule, what, way_out)])


EVERY_S = 0.3


@contextmanager
def watch_tasks(session: SparkSession, tell: Callable[[int, int], None]) -> Iterator[None]:
    """Report the number of finished tasks, and of all tasks, until the block ends.

    A thread polls Spark's status tracker; a Connect server reports by itself.
    """
    try:
        tracker = session.sparkContext.statusTracker()
    except PySparkException:  # Connect has no context
        with _hearing(session, tell):
            yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_ask, args=(tracker, tell, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _ask(tracker: StatusTracker, tell: Callable[[int, int], None], over: threading.Event) -> None:
    while not over.wait(EVERY_S):
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        running = [stage for stage in stages if stage is not None]
        if running:
            tell(sum(s.numCompletedTasks for s in running), sum(s.numTasks for s in running))


@contextmanager
def _hearing(session: SparkSession, tell: Callable[[int, int], None]) -> Iterator[None]:
    def hear(stages: Iterable[Any] | None = None, **_: Any) -> None:
        running = [stage for stage in stages or () if stage.num_completed_tasks < stage.num_tasks]
        if running:
            tell(sum(s.num_completed_tasks for s in running), sum(s.num_tasks for s in running))

    handler: Any = hear  # Spark's own type for it is a class
    session.registerProgressHandler(handler)
    try:
        yield
    finally:
        session.removeProgressHandler(handler)
