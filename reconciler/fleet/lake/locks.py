"""Who works on an attempt: a file that its process has locked, and the kernel frees when it ends.

| the lock of an attempt | the attempt |
|---|---|
| held | is being written |
| free, made on this machine | is dead: its process has ended, by kill -9 as well |
| free, made elsewhere, touched within a day | may live: a network file system may not share locks |
| free, made elsewhere, untouched for a day | is dead |
| cannot be asked for, or there is none | may live |

An attempt touches its file with every table. One that was taken for dead by mistake publishes
nothing: its rows are counted before, and are gone.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from reconciler.files import appearing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SILENT = timedelta(days=1)
"""After so long an attempt of another machine is dead, if its lock is free."""


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock of an attempt. The file gets its name when it is locked, never before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        with appearing(path) as file:
            handle = os.dup(file.fileno())  # the lock lasts as long as any of the two is open
            held.callback(os.close, handle)
            with suppress(OSError):  # without locks, the attempt may live for ever
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            at = datetime.now(UTC).isoformat(timespec="seconds")
            holder = {"host": socket.gethostname(), "pid": os.getpid(), "started_at": at}
            os.write(handle, f"{json.dumps(holder)}\n".encode())
        yield
        path.unlink(missing_ok=True)  # after an error it stays: who cleans up looks for it


@contextmanager
def try_lock(path: Path, now: datetime) -> Iterator[bool]:
    """Yield whether the attempt of a lock is dead; it stays locked for as long as the block."""
    with ExitStack() as held:
        try:
            handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            held.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            silent_s = now.timestamp() - path.stat().st_mtime  # another cleaner may have removed it
        except OSError:  # held, or not there, or this file system has no locks
            is_dead = False
        else:
            is_dead = _is_ours(path) or silent_s > SILENT.total_seconds()
        yield is_dead


def _is_ours(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text())["host"] == socket.gethostname())
    except (OSError, ValueError, TypeError, KeyError):
        return False
