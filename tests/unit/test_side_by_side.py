"""Side by side: results arrive in the caller's thread, and nothing holds up an interrupt."""

from __future__ import annotations

import subprocess
import sys
import time
from threading import Event, current_thread

import pytest

from reconciler import side_by_side
from reconciler.side_by_side import run_side_by_side


def test_every_result_is_handed_to_the_caller() -> None:
    results: list[int] = []
    threads = set()

    def take(result: int) -> None:
        results.append(result)
        threads.add(current_thread())

    run_side_by_side(lambda item: item * 2, range(50), 3, take)
    assert sorted(results) == [item * 2 for item in range(50)]
    assert threads == {current_thread()}


def test_nothing_to_do_is_nothing_done() -> None:
    run_side_by_side(pytest.fail, [], 3, pytest.fail)


def test_as_many_are_under_way_as_allowed() -> None:
    meeting, seen = Event(), []

    def work(item: int) -> bool:
        seen.append(item)
        if len(seen) == 2:
            meeting.set()
        return meeting.wait(5)

    results: list[bool] = []
    run_side_by_side(work, [1, 2], 2, results.append)
    assert results == [True, True]


def test_what_goes_wrong_in_a_thread_goes_wrong_here() -> None:
    def work(item: int) -> None:
        raise IndexError(item)

    with pytest.raises(IndexError, match="7"):
        run_side_by_side(work, [7], 3, lambda _: None)


def test_an_interrupt_starts_nothing_more_and_waits_for_what_is_under_way() -> None:
    ended = []

    def work(item: int) -> int:
        time.sleep(0.05 if item == 0 else 0.3)
        ended.append(item)
        return item

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_side_by_side(work, range(50), 2, interrupt)
    assert len(ended) <= 3
    assert 1 in ended


def test_an_answer_that_never_comes_does_not_hold_up_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(side_by_side, "GRACE_S", 0.1)
    never = Event()

    def work(item: int) -> int:
        if item:
            never.wait(30)
        return item

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_side_by_side(work, [0, 1, 2, 3], 3, interrupt)
    never.set()
    assert time.monotonic() - started < 5


INTERRUPT_OFTEN = """
import collections, random, signal, time
from reconciler.side_by_side import run_side_by_side

def interrupt(*_):
    global armed
    if armed:  # a signal that another thread takes may come late
        armed = False
        raise KeyboardInterrupt

armed = False
signal.signal(signal.SIGALRM, interrupt)
draw, counts = random.Random(7), collections.Counter()
while counts["interrupted"] < 800:
    worked = []
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.00005, 0.001))
        run_side_by_side(worked.append, range(8), 4, lambda _: None)
        armed = False
    except KeyboardInterrupt:
        counts["interrupted"] += 1
        before = len(worked)
        time.sleep(0.001)
        counts["worked on"] += len(worked) > before
    except RuntimeError as error:
        counts[str(error)] += 1
print(dict(+counts))
"""


def test_an_interrupt_at_any_moment_is_one_and_ends_the_work() -> None:
    command = [sys.executable, "-c", INTERRUPT_OFTEN]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "{'interrupted': 800}\n"
