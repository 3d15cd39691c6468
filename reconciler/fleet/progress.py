"""How far Spark is while it works: the tasks of the stages that run, done and in all."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.core.status import StatusTracker
    from pyspark.sql import SparkSession

EVERY_S = 0.3


@contextmanager
def watch_tasks(session: SparkSession, tell: Callable[[int, int], None]) -> Iterator[None]:
    """Tell, while the block lasts, how many tasks are done and of how many.

    Asks Spark's status tracker now and then, from a thread of its own; a Connect server tells
    unasked. Either is gone when the block ends.
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
