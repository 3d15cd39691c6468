"""This machine: directories of the sandbox and of its runs, memory, the limit of files, Python.

Follows the XDG base directories: XDG_CACHE_HOME, XDG_DATA_HOME, XDG_STATE_HOME, else ~/.cache,
~/.local/share, ~/.local/state.
Logs and property files of a run are kept for a while, its data is not. A run holds a lock on its
directory; a directory that a killed run left has no lock, and is removed.
"""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.errors import SandboxError


def cache_directory(name: str) -> Path:
    """Return a directory whose loss costs only time, and whose files are checked before use.

    A CI may restore it from another run, so anybody may have written it.
    """
    return _directory("XDG_CACHE_HOME", ".cache", name)


def data_directory(name: str) -> Path:
    """Return a directory for what this machine has made and executes, which nothing can check."""
    return _directory("XDG_DATA_HOME", ".local/share", name)


def state_directory(name: str) -> Path:
    """Return a directory for what outlives a run: logs, and the record of the sandbox."""
    return _directory("XDG_STATE_HOME", ".local/state", name)


def _directory(variable: str, fallback: str, name: str) -> Path:
    """Return `name` under the base directory, made if need be, for this user only."""
    chosen = os.environ.get(variable, "")
    # The specification asks for absolute paths; a relative one counts as unset.
    base = Path(chosen) if chosen.startswith("/") else Path.home() / fallback
    directory = base / "reconciler" / name
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise SandboxError(
            f"cannot make {directory}: {error.strerror}; {variable} names another place for it"
        ) from error
    return directory


def isolated_python() -> list[str]:
    """Return how a child process of Python begins. It imports nothing from the working directory.

    If this process is isolated, so is the child: nothing from the home, nothing by PYTHONPATH.
    """
    return [sys.executable, "-I" if sys.flags.isolated else "-P"]


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
    """Return whether no one holds a run's lock any more."""
    try:
        with (directory / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return _is_abandoned(directory)
    except BlockingIOError:
        return False
    return True


def _is_abandoned(directory: Path) -> bool:
    """Distinguish a directory without a lock, or none at all, from one that is just being made."""
    try:
        return time.time() - directory.stat().st_mtime > BEING_MADE_S
    except FileNotFoundError:
        return True


MEMORY = Path("/proc/meminfo")


def read_free_memory_mb() -> int | None:
    """Return the memory that programs can still be given, caches included. Source: proc(5)."""
    try:
        lines = MEMORY.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) // 1024 if found else None


def read_file_limit() -> int | None:
    """Return how many files one process may open; a JVM raises its limit to the hard one."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if limit == resource.RLIM_INFINITY else limit
