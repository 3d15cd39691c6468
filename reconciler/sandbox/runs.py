"""The directories of runs: logs and property files, kept for a while, and data, which is not.

A run holds a lock on its directory. What a killed run left behind has no lock, and is swept.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.sandbox.places import state_directory

if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT_RUNS = 20
BEING_MADE_S = 60
LOCK = "lock"
DATA = "data"


@contextmanager
def open_run() -> Iterator[Path]:
    """Yield a new directory for a run. Its data is removed in the end, its logs stay for now."""
    runs = state_directory("sandbox/runs")
    sweep_runs(runs)
    directory = Path(tempfile.mkdtemp(prefix=f"{time.strftime('%Y%m%dT%H%M%S')}-", dir=runs))
    with (directory / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield directory
        finally:
            shutil.rmtree(directory / DATA, ignore_errors=True)


def sweep_runs(runs: Path) -> None:
    """Remove the data of runs that have ended, and all of the oldest ones."""
    ended = [
        directory for directory in sorted(runs.iterdir(), reverse=True) if has_ended(directory)
    ]
    for directory in ended:
        shutil.rmtree(directory / DATA, ignore_errors=True)
    for directory in ended[KEPT_RUNS:]:
        shutil.rmtree(directory, ignore_errors=True)


def has_ended(directory: Path) -> bool:
    """Tell whether nobody holds a run's lock any more."""
    try:
        with (directory / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return _is_abandoned(directory)
    except BlockingIOError:
        return False
    return True


def _is_abandoned(directory: Path) -> bool:
    """Tell a directory without a lock, or none at all, from one that is just being made."""
    try:
        return time.time() - directory.stat().st_mtime > BEING_MADE_S
    except FileNotFoundError:
        return True
