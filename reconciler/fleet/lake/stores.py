"""The stores of a lake: publications, locks and directories, on local disks or elsewhere.

| store | an attempt is published by | dead attempts |
|---|---|---|
| a directory of this machine | one file, renamed into `collections` | go, once they are dead |
| a directory that Spark reaches, as s3a://… | one object, put into `collections` | stay |
| Delta, Iceberg | one row, appended to `collections` by the format's own commit | stay |

A job holds a lock on a file of its attempt, and the kernel frees it when the process ends.

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
import re
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession

from reconciler.files import appearing, write_file
from reconciler.fleet import tables
from reconciler.fleet.lake.attempts import (
    Attempt,
    Published,
    choose_newest,
    decode_publication,
    list_fields,
    read_publication,
)
from reconciler.fleet.lake.storage import PARQUET, MissingError, Storage, naming_missing
from reconciler.fleet.session import is_connect
from reconciler.fleet.tables import LakeTable

PUBLISHED, RUNNING = tables.COLLECTIONS.name, "running"


class Store(Protocol):
    """The interface of a store of a lake."""

    @property
    def root(self) -> str:
        """The root as Spark names it."""

    def list_published(self, what: str = "*") -> list[Published]:
        """List the publications of one kind, or of every kind. Errors: LakeError."""

    def publish(self, published: Published) -> None:
        """Publish an attempt atomically."""

    def withdraw(self, published: Published) -> None:
        """Withdraw an attempt, and remove its rows."""

    def hold(self, attempt: Attempt) -> AbstractContextManager[None]:
        """Mark an attempt as being written, until the block ends."""

    def touch(self, attempt: Attempt) -> None:
        """Mark an attempt as alive now."""

    def drop(self, table: LakeTable, attempt: Attempt) -> None:
        """Remove the rows of a table that an attempt wrote."""

    def discard(self, attempt: Attempt) -> None:
        """Remove the rows of a failed attempt."""

    def clean(self, now: datetime) -> None:
        """Remove dead attempts, and attempts that were superseded a day ago or earlier."""

    def measure(self) -> Mapping[str, Size]:
        """Return the files and bytes of each attempt, by id. Cost: lists the lake's files."""


def choose_store(session: SparkSession | None, root: str, form: str) -> Store:
    """Return the store of a lake. A Connect server has its own disks, so Spark reads them there.

    Only the disks of this machine need no session.
    """
    is_remote = session is not None and is_connect(session)
    if form == PARQUET and not is_remote and is_path(root):
        return LocalStore(Path(root.removeprefix("file:")).absolute())
    assert session is not None  # noqa: S101  # the caller asks is_path
    return SparkStore(Storage(session, root.rstrip("/"), form))


def is_path(root: str) -> bool:
    """Return whether a root is a local directory, not a URL of another file system."""
    return root.startswith("file:") or not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", root)


@dataclass(frozen=True, slots=True)
class LocalStore:
    """A directory on the disks of this machine, which needs no Spark."""

    path: Path

    @property
    def root(self) -> str:
        """The directory as Spark names it, for any file system."""
        return f"file:{self.path}"

    def list_published(self, what: str = "*") -> list[Published]:
        found = []
        for path in sorted((self.path / PUBLISHED).glob(f"*-{what}-*.json")):
            try:
                if path.is_dir():  # as Spark writes it; no line is left of one that was withdrawn
                    parts = sorted(path.glob("part-*.json"))
                    texts = [line for part in parts for line in part.read_text().splitlines()]
                else:
                    texts = [path.read_text()]
            except FileNotFoundError:  # withdrawn by another job in this moment
                continue
            found += [decode_publication(text, str(path)) for text in texts]
        return found

    def publish(self, published: Published) -> None:
        path = self.path / PUBLISHED / f"{published.id}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, json.dumps(list_fields(published), sort_keys=True) + "\n")

    def withdraw(self, published: Published) -> None:
        path = self.path / PUBLISHED / f"{published.id}.json"
        with self.hold(published):  # if this job is killed, the next one finds what is left
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            self.discard(published)

    def hold(self, attempt: Attempt) -> AbstractContextManager[None]:
        return hold_attempt_lock(self._lock(attempt.id))

    def touch(self, attempt: Attempt) -> None:
        if self._lock(attempt.id).exists():
            os.utime(self._lock(attempt.id))

    def drop(self, table: LakeTable, attempt: Attempt) -> None:
        shutil.rmtree(self.path / table.name / f"attempt={attempt.id}", ignore_errors=True)

    def discard(self, attempt: Attempt) -> None:
        if self._is_published(attempt.id):  # an interrupt came right after the publication
            return
        for directory in self._directories(attempt.id):
            shutil.rmtree(directory, ignore_errors=True)

    def clean(self, now: datetime) -> None:
        published = self.list_published()
        for one in _list_superseded(published, now):
            self.withdraw(one)
        # A file without its final name begins with a dot, and may not be locked yet.
        for lock in sorted((self.path / RUNNING).glob("[0-9]*")):
            with try_lock(lock, now) as is_dead:
                if not is_dead:
                    continue
                # Asked under its lock: an attempt publishes while it holds that.
                is_published = self._is_published(lock.name)
                left = [] if is_published else self._directories(lock.name)
                for directory in left:
                    shutil.rmtree(directory, ignore_errors=True)
                # Spark's JVM may outlive its Python by a moment, and write once more.
                is_old = now.timestamp() - lock.stat().st_mtime > SILENT.total_seconds()
                if is_published or (is_old and not left):
                    lock.unlink()

    def measure(self) -> Mapping[str, Size]:
        found = (
            (path.parent.name.removeprefix("attempt="), path.stat().st_size)
            for path in self.path.glob("*/attempt=*/part-*")
        )
        return add_sizes(found)

    def _is_published(self, attempt_id: str) -> bool:
        return (self.path / PUBLISHED / f"{attempt_id}.json").exists()

    def _lock(self, attempt_id: str) -> Path:
        return self.path / RUNNING / attempt_id

    def _directories(self, attempt_id: str) -> list[Path]:
        return sorted(self.path.glob(f"*/attempt={attempt_id}"))


@dataclass(frozen=True, slots=True)
class SparkStore:
    """A store that only Spark reaches: an object store, a table format, a Connect server's disk.

    Nothing here proves that an attempt is dead, so none is removed. docs/reference/lake-layout.md
    shows how to remove one.
    """

    storage: Storage

    @property
    def root(self) -> str:
        """The root as Spark names it."""
        return self.storage.root

    def list_published(self, what: str = "*") -> list[Published]:
        place, rows = f"{self.root}/{PUBLISHED}", []
        with suppress(MissingError), naming_missing():
            if self.storage.form == PARQUET:
                reader = self.storage.session.read.schema(tables.COLLECTIONS.schema)
                rows = reader.json(self._file(f"*-{what}-*")).collect()
            else:
                rows = self.storage.open(tables.COLLECTIONS).collect()
        found = [read_publication(row.asDict(), place) for row in rows]
        return [one for one in found if what in ("*", one.what)]

    def publish(self, published: Published) -> None:
        fields = list_fields(published)
        row = tuple(fields[name] for name in tables.COLLECTIONS.columns)
        rows = self.storage.session.createDataFrame([row], tables.COLLECTIONS.schema).coalesce(1)
        if self.storage.form == PARQUET:
            rows.write.json(self._file(published.id))
        else:
            self.storage.append(tables.COLLECTIONS, rows)

    def withdraw(self, published: Published) -> None:
        if self.storage.form == PARQUET:
            empty = self.storage.session.createDataFrame([], tables.COLLECTIONS.schema)
            empty.write.mode("overwrite").json(self._file(published.id))
        else:
            self.storage.delete(tables.COLLECTIONS, published)
        for name in published.rows:
            self.storage.delete(tables.TABLES[name], published)

    def hold(self, attempt: Attempt) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()

    def touch(self, attempt: Attempt) -> None:
        pass

    def drop(self, table: LakeTable, attempt: Attempt) -> None:
        self.storage.delete(table, attempt)

    def discard(self, attempt: Attempt) -> None:
        pass

    def clean(self, now: datetime) -> None:
        pass

    def measure(self) -> Mapping[str, Size]:
        with suppress(MissingError), naming_missing():
            return add_sizes(self.storage.list_files())
        return {}

    def _file(self, name: str) -> str:
        return f"{self.root}/{PUBLISHED}/{name}.json"


@dataclass(frozen=True, slots=True)
class Size:
    """The files of an attempt. Units: `size_bytes` as stored, without replication."""

    files: int = 0
    size_bytes: int = 0


def add_sizes(files: Iterable[tuple[str, int]]) -> Mapping[str, Size]:
    """Return the size of each attempt. In: the attempt and the bytes of each file."""
    sizes: dict[str, Size] = {}
    for attempt_id, size_bytes in files:
        so_far = sizes.get(attempt_id, Size())
        sizes[attempt_id] = Size(so_far.files + 1, so_far.size_bytes + size_bytes)
    return sizes


def _list_superseded(published: list[Published], now: datetime) -> Iterator[Published]:
    """Yield attempts that a newer one superseded so long ago that no job reads them any more."""
    before = (now - SILENT).isoformat(timespec="microseconds")
    for what in {one.what for one in published}:
        of_it = [one for one in published if one.what == what]
        newest = {one.collection: one for one in choose_newest(of_it)}
        for one in of_it:
            newer = newest[one.collection]
            if newer is not one and newer.counts_since < before:
                yield one


SILENT = timedelta(days=1)
"""The age at which an attempt of another machine with a free lock counts as dead."""


@contextmanager
def hold_attempt_lock(path: Path) -> Iterator[None]:
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
        path.unlink(missing_ok=True)  # after an error it stays, so that `clean` finds the attempt


@contextmanager
def try_lock(path: Path, now: datetime) -> Iterator[bool]:
    """Yield whether the attempt of a lock is dead. The lock is held until the block ends."""
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
