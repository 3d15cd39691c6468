"""Where collections are kept: a directory of tables, to which every collection is added.

    partitions/date=2026-11-21/attempt=20261121T030000Z-state-1f0c…/cluster=prod-eu/*.parquet
    collections/*.parquet

An attempt that was brought to its end is named in `collections`, last of all; what is named
nowhere is never read. Collecting again under the same name is one more attempt, and the newest
counts. So nothing has to be renamed or replaced, and Parquet, Delta and Iceberg serve alike; tables
of Iceberg are named by a catalogue, and not by where they lie.
"""

from __future__ import annotations

import re
import shutil
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import FleetError
from reconciler.fleet import tables
from reconciler.model import Commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
    from pyspark.sql.types import StructType

    from reconciler.fleet.tables import Table

_NAME = re.compile(r"[0-9]{8}T[0-9]{6}Z")
STATE, PLAN, AUDIT, HISTORY = "state", "plan", "audit", "history"
_DIRTY = "-dirty"
PARTITIONED_BY = ("date", "attempt", "cluster")
OF_A_CATALOGUE = frozenset({"iceberg"})
"""Formats whose tables are found by name; the root is then a namespace of Spark's catalogue."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a collection. `collection` is when, as in 20261121T030000Z (UTC).

    `what` was collected or made of it: its states and specs, or their plans. `commit` is what
    the specs were read at, known of an attempt that the lake found.
    """

    collection: str
    what: str
    id: str
    commit: str | None = None

    @property
    def date(self) -> str:
        """The day of the collection, as in 2026-11-21."""
        day = self.collection[:8]
        return f"{day[:4]}-{day[4:6]}-{day[6:]}"


def start_attempt(collection: str, what: str = STATE) -> Attempt:
    """Begin a collection, or something made of one. Errors: FleetError for another form of name."""
    if not _NAME.fullmatch(collection):
        raise FleetError(f"{collection!r} is no collection; write when, as in 20261121T030000Z")
    return Attempt(collection, what, f"{collection}-{what}-{uuid.uuid4().hex[:8]}")


def write_commit(commit: Commit | None) -> str | None:
    """Spell a commit in one word, as `git describe --dirty` does."""
    return None if commit is None else commit.sha + (_DIRTY if commit.dirty else "")


def read_commit(text: str | None) -> Commit | None:
    """Return the commit that a word names."""
    return Commit(text.removesuffix(_DIRTY), text.endswith(_DIRTY)) if text else None


@dataclass(frozen=True, slots=True)
class Lake:
    """A directory of tables, local or of any file system that Spark reaches; or a namespace."""

    session: SparkSession
    root: str
    form: str = "parquet"

    def append(self, table: Table, rows: DataFrame, attempt: Attempt) -> None:
        """Add the rows of an attempt, which nobody sees before the attempt is finished."""
        from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

        placed = rows.select(*table.columns).withColumns(
            {"date": F.lit(attempt.date), "attempt": F.lit(attempt.id)}
        )
        self._save(placed.write.partitionBy(*PARTITIONED_BY), table)

    def finish(self, attempt: Attempt, clusters: int, commit: str | None) -> None:
        """Let an attempt be seen, in place of earlier ones of the same collection."""
        finished_at = datetime.now(UTC).isoformat(timespec="microseconds")
        row = (attempt.collection, attempt.what, attempt.id, finished_at, commit, clusters)
        rows = self.session.createDataFrame([row], tables.COLLECTIONS.schema)
        self._save(rows.coalesce(1).write, tables.COLLECTIONS)
        self._remove_superseded(attempt)

    def list_attempts(self, what: str = STATE) -> tuple[Attempt, ...]:
        """List the attempt that counts of every collection, the oldest first."""
        newest = self._list_newest(what)
        return tuple(newest[name] for name in sorted(newest))

    def find_attempt(self, collection: str | None = None, what: str = STATE) -> Attempt:
        """Return a collection, the latest unless one is named. Errors: FleetError."""
        attempts = self.list_attempts(what)
        if not attempts:
            verb = "collect" if what == STATE else what
            raise FleetError(f"{self.root} holds no {what}; start with: reconciler fleet {verb}")
        if collection is None:
            return attempts[-1]
        for attempt in attempts:
            if attempt.collection == collection:
                return attempt
        known = ", ".join(attempt.collection for attempt in attempts[-5:])
        raise FleetError(f"{self.root} holds no {what} of {collection}; the latest are: {known}")

    def read(self, table: Table, attempt: Attempt) -> DataFrame:
        """Return a table as a collection has it, in exactly the declared columns."""
        return self.read_all(table, [attempt]).select(*table.columns)

    def read_all(self, table: Table, attempts: Iterable[Attempt]) -> DataFrame:
        """Return a table of several collections; `collection` comes first."""
        from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

        wanted = list(attempts)
        kept = self._load(table, wanted).where(F.col("attempt").isin([a.id for a in wanted]))
        collection = F.split_part("attempt", F.lit("-"), F.lit(1)).alias("collection")
        return kept.select(collection, *table.columns)

    def _load(self, table: Table, attempts: list[Attempt]) -> DataFrame:
        """Load some attempts: directory by directory, where the format is one of directories."""
        if self.form != "parquet":
            return self._try(table, lambda: self._open(table))
        frames = [self._load_directory(table, attempt) for attempt in attempts]
        return reduce(lambda a, b: a.unionByName(b), frames)

    def _load_directory(self, table: Table, attempt: Attempt) -> DataFrame:
        """Load what an attempt wrote; where it had no rows, there is no directory either."""
        place = self._place(table)
        reader = self.session.read.schema(_place_beside(table)).option("basePath", place)
        path = f"{place}/date={attempt.date}/attempt={attempt.id}"
        return self._try(table, lambda: reader.parquet(path))

    def _try(self, table: Table, load: Callable[[], DataFrame]) -> DataFrame:
        """Load rows, none where nobody has written any."""
        from pyspark.errors import AnalysisException

        try:
            rows = load()
            rows.schema  # noqa: B018  # Connect finds out only when asked
        except AnalysisException:
            return self.session.createDataFrame([], _place_beside(table))
        return rows

    def _list_newest(self, what: str) -> Mapping[str, Attempt]:
        """Return the newest finished attempt of each collection."""
        from pyspark.errors import AnalysisException

        try:
            kept = self._open(tables.COLLECTIONS)
            rows = kept.where(kept["what"] == what).collect()
        except AnalysisException:
            return {}
        ordered = sorted(rows, key=lambda row: (row["finished_at"], row["attempt"]))
        found = (Attempt(r["collection"], what, r["attempt"], r["commit"]) for r in ordered)
        return {attempt.collection: attempt for attempt in found}

    def _save(self, writer: DataFrameWriter, table: Table) -> None:
        """Add rows to a table, which is made where it is not there yet."""
        adding = writer.format(self.form).mode("append")
        if self.form in OF_A_CATALOGUE:
            adding.saveAsTable(self._place(table))
        else:
            adding.save(self._place(table))

    def _open(self, table: Table) -> DataFrame:
        """Open a whole table, every attempt in it. Errors: AnalysisException where it is not."""
        if self.form in OF_A_CATALOGUE:
            return self.session.read.table(self._place(table))
        return self.session.read.format(self.form).load(self._place(table))

    def _place(self, table: Table) -> str:
        separator = "." if self.form in OF_A_CATALOGUE else "/"
        return f"{self.root.rstrip('/')}{separator}{table.name}"

    def _remove_superseded(self, attempt: Attempt) -> None:
        """Take away what earlier attempts at the same collection left, on a local disk."""
        root = Path(self.root.removeprefix("file:"))
        if self.form != "parquet" or not root.is_dir():
            return
        pattern = f"*/date={attempt.date}/attempt={attempt.collection}-{attempt.what}-*"
        for directory in sorted(root.glob(pattern)):
            if directory.name != f"attempt={attempt.id}":
                shutil.rmtree(directory, ignore_errors=True)


def _place_beside(table: Table) -> StructType:
    """Return the columns of a table and those that say which attempt a row is of."""
    from pyspark.sql.types import StringType, StructField, StructType

    beside = [StructField(name, StringType()) for name in ("date", "attempt")]
    return StructType([*table.schema.fields, *beside])  # `add` would change the declaration
