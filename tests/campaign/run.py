"""The lanes of a campaign, each a process, and what a person sees of them."""

from __future__ import annotations

import json
import multiprocessing
import queue
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.lane import run_lane
from campaign.page import find_release

if TYPE_CHECKING:
    from campaign.rounds import Result


def run_campaign(
    file: Path, seed: int, minutes: float, lanes: int, rounds: Sequence[int] | None
) -> None:
    """Drive rounds on several clusters at a time, and keep each result as a line of a file."""
    directory = file.with_suffix("").resolve()
    directory.mkdir(parents=True)
    context = multiprocessing.get_context("spawn")
    results: Any = context.Queue()
    stop = context.Event()
    numbers = list(rounds) if rounds else range(100_000)
    next_turn = context.Value("i", 0)
    arguments = (directory, seed, time.time() + 60 * minutes, next_turn, numbers, results, stop)
    workers = [context.Process(target=_work, args=(n, *arguments)) for n in range(lanes)]
    signal.signal(signal.SIGINT, partial(_end, stop))
    began = time.monotonic()
    for worker in workers:
        worker.start()
    tally: Counter[str] = Counter()
    with file.open("w", buffering=1) as out:
        out.write(json.dumps({**find_release(), "seed": seed, "minutes": minutes}) + "\n")
        while any(worker.is_alive() for worker in workers) or not results.empty():
            try:
                result: Result = results.get(timeout=1)
            except queue.Empty:
                continue
            out.write(json.dumps(asdict(result)) + "\n")
            _show(result, tally, time.monotonic() - began, directory)


def _work(
    lane: int,
    directory: Path,
    seed: int,
    until: float,
    next_turn: Any,
    numbers: Sequence[int],
    results: Any,
    stop: Any,
) -> None:
    """Be a lane, in a process of its own."""
    signal.signal(signal.SIGINT, lambda *_: None)  # ignored, it would be ignored by apply as well

    def take() -> int | None:
        with next_turn.get_lock():
            if stop.is_set() or time.time() > until or next_turn.value >= len(numbers):
                return None
            next_turn.value += 1
            return numbers[next_turn.value - 1]

    run_lane(lane, directory, seed, take, results.put)


def _end(stop: Any, *_: object) -> None:
    """Begin no further round. At once: an event could be waited for by the loop that is held up."""
    print("ending after the rounds that are under way …", file=sys.stderr)
    threading.Thread(target=stop.set).start()


def _show(result: Result, tally: Counter[str], elapsed_s: float, directory: Path) -> None:
    """Show how far the campaign is: a line a round."""
    tally.update(
        rounds=1,
        struck=int(result.struck),
        violated=int(bool(result.violations)),
        troubled=int(bool(result.trouble)),
        late=result.unknown.get("full", 0),
    )
    pace = 60 * tally["rounds"] / elapsed_s
    ends = " → ".join(str(run["ended"] or f"code {run['code']}") for run in result.runs)
    print(
        f"{result.round:5} {result.kind:34} {result.stage:24}"
        f" {'struck' if result.struck else '–':6} {result.seconds:5.1f} s  {ends}",
    )
    for violation in result.violations:
        print(f"      VIOLATION {violation}\n      see {directory}/{result.round:05}")
    if result.trouble:
        print(f"      trouble of the harness: {result.trouble.strip().splitlines()[-1]}")
    print(
        f"      {tally['rounds']} rounds, {pace:.1f} a minute, {tally['violated']} violated,"
        f" {tally['troubled']} void, {tally['late']} unknown and done",
        end="\r" if sys.stdout.isatty() else "\n",
        flush=True,
    )
