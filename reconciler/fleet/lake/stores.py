"""Where a lake is: publications, locks and directories, on this machine's disks or elsewhere.

| store | an attempt is published by | dead attempts |
|---|---|---|
| a directory of this machine | one file, renamed into `collections` | go, once they are dead |
| a directory that Spark reaches, as s3a://… | one object, put into `collections` | stay |
| Delta, Iceberg | one row, appended to `collections` by the format's own commit | stay |
"""

from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from reconciler.errors import LakeError
from reconciler.files import write_file
from reconciler.fleet import tables
from reconciler.fleet.lake.attempts import (
    choose_newest,
    decode_publication,
    find_version,
    list_fields,
    read_publication,
)
from reconciler.fleet.lake.locks import SILENT, hold_lock, try_lock
from reconciler.fleet.lake.storage import PARQUET, MissingError, Storage, naming_missing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from reconciler.fleet.lake.attempts import Attempt, Published
    from reconciler.fleet.tables import Table

PUBLISHED, RUNNING = tables.COLLECTIONS.name, "running"
_OLDER = "was written by an earlier release"


class Store(Protocol):
    """What a lake asks of the place that it is in."""

    @property
    def root(self) -> str:
        """The place as Spark is told it."""

    def check_layout(self) -> None:
        """Refuse a lake of another layout. Errors: LakeError."""

    def list_published(self, what: str = "*") -> list[Published]:
        """List the publications of a kind, of every kind unless one is named. Errors: LakeError."""

    def publish(self, published: Published) -> None:
        """Let an attempt be seen: at once, and whole or not at all."""

    def withdraw(self, published: Published) -> None:
        """Let an attempt be seen no more, and remove its rows."""

    def hold(self, attempt: Attempt) -> AbstractContextManager[None]:
        """Show that an attempt is being written, for as long as the block lasts."""

    def touch(self, attempt: Attempt) -> None:
        """Show that an attempt goes on."""

    def drop(self, table: Table, attempt: Attempt) -> None:
        """Remove the rows of a table that an attempt wrote."""

    def discard(self, attempt: Attempt) -> None:
        """Remove what an attempt wrote that failed."""

    def clean(self, now: datetime) -> None:
        """Remove dead attempts, and those superseded a day ago: no job reads them any more."""


def choose_store(session: SparkSession | None, root: str, form: str) -> Store:
    """Return the store of a lake. A Connect server has disks of its own, so Spark is asked there.

    A session is needed everywhere but on the disks of this machine.
    """
    is_connect = session is not None and "connect" in type(session).__module__
    if form == PARQUET and not is_connect and is_path(root):
        return LocalStore(Path(root.removeprefix("file:")).absolute())
    assert session is not None  # noqa: S101  # the caller asks is_path
    return SparkStore(Storage(session, root.rstrip("/"), form))


def is_path(root: str) -> bool:
    """Tell whether a root is a directory of this machine, and no URL of another file system."""
    return root.startswith("file:") or not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", root)


@dataclass(frozen=True, slots=True)
class LocalStore:
    """A directory on the disks of this machine, which needs no Spark."""

    path: Path

    @property
    def root(self) -> str:
        """The directory as Spark is told it, whatever its own file system is."""
        return f"file:{self.path}"

    def check_layout(self) -> None:
        if any((self.path / PUBLISHED).glob("*.parquet")):
            raise LakeError([find_version(str(self.path), _OLDER)])

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
        return hold_lock(self._lock(attempt.id))

    def touch(self, attempt: Attempt) -> None:
        if self._lock(attempt.id).exists():
            os.utime(self._lock(attempt.id))

    def drop(self, table: Table, attempt: Attempt) -> None:
        shutil.rmtree(self.path / table.name / f"attempt={attempt.id}", ignore_errors=True)

    def discard(self, attempt: Attempt) -> None:
        if self._is_published(attempt.id):  # and interrupted in the next moment
            return
        for directory in self._directories(attempt.id):
            shutil.rmtree(directory, ignore_errors=True)

    def clean(self, now: datetime) -> None:
        published = self.list_published()
        for one in _list_superseded(published, now):
            self.withdraw(one)
        # One that is about to get its name may not be locked yet: its first letter is a dot.
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

    def _is_published(self, attempt_id: str) -> bool:
        return (self.path / PUBLISHED / f"{attempt_id}.json").exists()

    def _lock(self, attempt_id: str) -> Path:
        return self.path / RUNNING / attempt_id

    def _directories(self, attempt_id: str) -> list[Path]:
        return sorted(self.path.glob(f"*/attempt={attempt_id}"))


@dataclass(frozen=True, slots=True)
class SparkStore:
    """A place that only Spark reaches: an object store, a table format, a Connect server's disk.

    Nobody can prove here that an attempt is dead, so none is removed. docs/fleet.md says how to.
    """

    storage: Storage

    @property
    def root(self) -> str:
        """The place as Spark is told it."""
        return self.storage.root

    def check_layout(self) -> None:
        with suppress(MissingError), naming_missing():
            if self.storage.form == PARQUET:
                old = self.storage.session.read.parquet(f"{self.root}/{PUBLISHED}/*.parquet")
            else:
                old = self.storage.open(tables.COLLECTIONS)
            if "version" not in old.columns:
                raise LakeError([find_version(self.root, _OLDER)])

    def list_published(self, what: str = "*") -> list[Published]:
        place, rows = f"{self.root}/{PUBLISHED}", []
        with suppress(MissingError), naming_missing():
            rows = self._open(what).collect()
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

    def drop(self, table: Table, attempt: Attempt) -> None:
        self.storage.delete(table, attempt)

    def discard(self, attempt: Attempt) -> None:
        pass

    def clean(self, now: datetime) -> None:
        pass

    def _open(self, what: str) -> DataFrame:
        if self.storage.form != PARQUET:
            return self.storage.open(tables.COLLECTIONS)
        reader = self.storage.session.read.schema(tables.COLLECTIONS.schema)
        return reader.json(self._file(f"*-{what}-*"))

    def _file(self, name: str) -> str:
        return f"{self.root}/{PUBLISHED}/{name}.json"


def _list_superseded(published: list[Published], now: datetime) -> Iterator[Published]:
    """Yield what a newer attempt has replaced for so long that no job reads it any more."""
    before = (now - SILENT).isoformat(timespec="microseconds")
    for what in {one.what for one in published}:
        of_it = [one for one in published if one.what == what]
        newest = {one.collection: one for one in choose_newest(of_it)}
        for one in of_it:
            newer = newest[one.collection]
            if newer is not one and newer.finished_at < before:
                yield one
