"""Whole processes timed side by side, and the estates and clusters they are timed on."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

SIZES = (10, 1_000, 5_000, 10_000)
LIMIT = [sys.executable, str(Path(__file__).with_name("limit.py"))]
HEAP = ("-Xmx768m",)  # one request for the configs of 5,000 topics needs more than a sandbox has
RECONCILER = [str(Path(sys.executable).with_name("reconciler"))]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one process: wall time, and CPU time of user and system together."""

    wall: float
    cpu: float


def time_process(command: Sequence[str]) -> Timing:
    """Run a command to its end and time it. Errors: SystemExit with what it said if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{command}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Timing(wall, cpu)


def describe(what: str, timings: Sequence[Timing]) -> str:
    """Say the medians, and the range of the wall times."""
    walls = [timing.wall for timing in timings]
    cpu = median(timing.cpu for timing in timings)
    return (
        f"  {what:<28} {median(walls):7.2f} s wall ({min(walls):.2f}..{max(walls):.2f}), "
        f"{cpu:6.2f} s CPU of its own"
    )


def ratio(ours: Sequence[Timing], limit: Sequence[Timing]) -> str:
    """Return the medians of the ratios, pair by pair."""
    pairs = list(zip(ours, limit, strict=True))
    wall = median(a.wall / b.wall for a, b in pairs)
    return f"{wall:.2f} wall, {median(a.cpu / b.cpu for a, b in pairs):.2f} CPU"


def write_estate(directory: Path, count: int, *, changed: int = 0) -> None:
    """Write `count` topics of four partitions, a hundred a file; `changed` have a config."""
    for start in range(0, count, 100):
        documents = [
            f"topic: bench.topic-{n:05}\npartitions: 4\nreplication_factor: 1\n"
            + "config: {retention.ms: 8d}\n" * (n < changed)
            for n in range(start, min(start + 100, count))
        ]
        (directory / f"topics-{start:05}.yaml").write_text("---\n".join(documents))
