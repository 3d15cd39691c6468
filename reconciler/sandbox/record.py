"""The record of the sandbox that runs on this machine, which the cluster name `sandbox` means.

Its supervisor holds a lock until it ends. So a record without a lock is stale, even if another
process has the supervisor's id by now.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from reconciler.errors import SandboxError
from reconciler.files import write_file
from reconciler.model.cluster import Broker
from reconciler.sandbox.paths import state_directory

PROBES = 20
PROBE_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class SandboxRecord:
    """The sandbox that runs. `pid` is its supervisor's, `control` the socket that it listens on."""

    bootstrap_servers: str
    cluster_id: str
    kafka_version: str
    engine: str
    pid: int
    brokers: tuple[Broker, ...]
    directory: str
    control: str
    controllers: int = 1


def running_sandbox() -> SandboxRecord | None:
    """Return the sandbox that runs and is ready, or None."""
    with _lock_file().open("a") as lock:
        return _read_record() if _is_held(lock) else None  # no record: it is still starting


def find_lost_sandbox() -> SandboxRecord | None:
    """Return the last sandbox if it ended without removing its record, or None."""
    with _lock_file().open("a") as lock:
        return None if _is_held(lock) else _read_record()


def forget_lost_sandbox() -> None:
    """Remove the record and the socket that a killed supervisor left."""
    with own_sandbox():
        pass


def is_sandbox_starting() -> bool:
    """Return whether a supervisor runs that has no record yet."""
    with _lock_file().open("a") as lock:
        return _is_held(lock) and not _record_file().exists()


@contextmanager
def own_sandbox() -> Iterator[None]:
    """Be the only supervisor of this user's sandbox. Errors: SandboxError if there is another."""
    with _lock_file().open("a") as lock:
        for _ in range(PROBES):  # someone may be probing at this very moment
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(PROBE_PAUSE_S)
        else:
            raise SandboxError(
                "a sandbox runs already; `reconciler sandbox status` shows it,"
                " `reconciler sandbox down` ends it"
            )
        # Whoever has the lock is alone: a record that is there now was left by a killed supervisor.
        if (stale := _read_record()) is not None:
            remove_socket(Path(stale.control))
            _record_file().unlink(missing_ok=True)
        try:
            yield
        finally:
            _record_file().unlink(missing_ok=True)


def write_record(record: SandboxRecord) -> None:
    """Write the record by which others find the sandbox. Only its supervisor does this."""
    content = asdict(record)
    content["brokers"] = [{"id": broker.id, "rack": broker.rack} for broker in record.brokers]
    write_file(_record_file(), json.dumps(content, indent=1) + "\n")


def _read_record() -> SandboxRecord | None:
    try:
        content = json.loads(_record_file().read_bytes())
    except FileNotFoundError:
        return None
    content["brokers"] = tuple(Broker(b["id"], b["rack"]) for b in content["brokers"])
    return SandboxRecord(**content)


def remove_socket(control: Path) -> None:
    """Remove a supervisor's socket and its directory, and nothing next to it."""
    with suppress(OSError):
        control.unlink(missing_ok=True)
        control.parent.rmdir()


def _is_held(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _lock_file() -> Path:
    return state_directory("sandbox") / "running.lock"


def _record_file() -> Path:
    return state_directory("sandbox") / "running.json"
