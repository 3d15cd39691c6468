"""Several requests at once, in threads that do not block the end of the program."""

from __future__ import annotations

import _thread
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

GRACE_S = 5.0


def run_side_by_side(
    work: Callable[[T], R], items: Sequence[T], at_once: int, take: Callable[[R], None]
) -> None:
    """Work on items in threads, and hand each result to `take` in the caller's thread.

    An interrupt starts nothing more and gives what is under way GRACE_S to end; the program does
    not wait for the threads, since an answer that never comes must not delay its end.
    Errors: what `work` raises is raised here.
    """
    waiting = deque(items)
    ended: SimpleQueue[Future[R]] = SimpleQueue()
    over: list[T] = []

    def go_on() -> None:
        while waiting:
            try:
                item = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            result = _keep(work, item)
            over.append(item)  # counted here: an interrupt can lose what the caller counts
            ended.put(result)

    try:
        for _ in range(min(at_once, len(items))):
            # Not threading.Thread: its start waits for a lock that an interrupt can leave broken
            # (RuntimeError), and its end runs a weakref's callback, which drops interrupts.
            _thread.start_new_thread(go_on, ())
        for _ in items:
            take(ended.get().result())
    finally:
        begun = len(items) - _drain(waiting)
        with suppress(Empty):
            while len(over) < begun:
                ended.get(timeout=GRACE_S)


def _keep(work: Callable[[T], R], item: T) -> Future[R]:
    """Work on one item and keep its result or error."""
    kept: Future[R] = Future()
    try:
        kept.set_result(work(item))
    except BaseException as error:  # noqa: BLE001 - raised again by whoever waits for it
        kept.set_exception(error)
    return kept


def _drain(waiting: deque[T]) -> int:
    """Take all items, one by one as the threads do. Returns how many were left."""
    left = 0
    with suppress(IndexError):
        while True:
            waiting.popleft()
            left += 1
    return left
