"""Several requests at once, in threads that do not block the end of the program."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
R = TypeVar("R")

GRACE_S = 5.0


def run_side_by_side(
    work: Callable[[T], R], items: Sequence[T], at_once: int, take: Callable[[R], None]
) -> None:
    """Work on items in threads, and hand each result to `take` in the caller's own.

    An interrupt starts nothing more and gives what is under way GRACE_S to end; the threads are
    daemons, since an answer that never comes must not hold up the end of the program.
    Errors: what `work` raises is raised here.
    """
    waiting = deque(items)
    ended: SimpleQueue[Future[R]] = SimpleQueue()

    def go_on() -> None:
        while waiting:
            try:
                item = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            ended.put(_keep(work, item))

    threads = [Thread(target=go_on, daemon=True) for _ in range(min(at_once, len(items)))]
    for thread in threads:
        thread.start()
    try:
        for _ in items:
            take(ended.get().result())
    finally:
        waiting.clear()
        _join(threads)


def _keep(work: Callable[[T], R], item: T) -> Future[R]:
    """Work on one item and keep its result or error."""
    kept: Future[R] = Future()
    try:
        kept.set_result(work(item))
    except BaseException as error:  # noqa: BLE001 - raised again by whoever waits for it
        kept.set_exception(error)
    return kept


def _join(threads: Sequence[Thread]) -> None:
    """Wait for threads to end, for all of them together hardly longer than for one."""
    patience_s = GRACE_S
    for thread in threads:
        thread.join(patience_s)
        if thread.is_alive():
            patience_s = 0.0
