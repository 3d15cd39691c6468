"""The rows of attempts in Spark: in files of their own, or in tables of Delta and Iceberg.

Parquet: a directory for each table and attempt, a few files in it, sorted by cluster. Other
formats: a table with a column `attempt`, to which the format adds rows as its own protocol says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation
from pyspark.sql.types import StringType, StructField, StructType

from reconciler.fleet.lake.attempts import Attempt
from reconciler.fleet.session import SHUFFLES
from reconciler.fleet.tables import COLLECTIONS, TABLES, LakeTable

PARQUET = "parquet"
OF_A_CATALOGUE = frozenset({"iceberg"})
"""Formats whose tables are found by name; the root is then a namespace of Spark's catalogue."""

_EXPIRE = "expire_snapshots(table => '{}')"
_REWRITE = "rewrite_data_files(table => '{}', options => map('min-input-files', '2'))"
"""Iceberg's procedures. It merges five files or more; an attempt has fewer of a table."""

LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
LISTING_DEFAULT = "10000"
_HELD = tuple(table for table in TABLES.values() if table is not COLLECTIONS)
_MISSING = ("NOT_FOUND", "NOT_EXIST", "MISSING_DELTA_TABLE")


class MissingError(Exception):
    """A directory or a table is missing; the text names it."""


@dataclass(frozen=True, slots=True)
class Storage:
    """The tables below a root, in one format."""

    session: SparkSession
    root: str
    form: str = PARQUET

    def place_of(self, table: LakeTable, attempt: Attempt | None = None) -> str:
        """Return the place of a table, or of its rows of one attempt."""
        if self.form in OF_A_CATALOGUE:
            return f"{self.root}.{table.name}"
        within = f"/attempt={attempt.id}" if attempt and self.form == PARQUET else ""
        return f"{self.root}/{table.name}{within}"

    def write(self, table: LakeTable, rows: DataFrame, attempt: Attempt) -> int:
        """Add the rows of an attempt. Returns: the number of rows that the writing tasks got."""
        handed = Observation()
        seen = rows.select(*table.columns).observe(handed, F.count(F.lit(1)).alias("rows"))
        place = self.place_of(table, attempt)
        if self.form == PARQUET:
            seen.write.parquet(place)
        else:
            self.append(table, seen.withColumn("attempt", F.lit(attempt.id)), "attempt")
        return int(handed.get.get("rows", 0))

    def append(self, table: LakeTable, rows: DataFrame, *partitioned_by: str) -> None:
        """Add rows to a table of another format than Parquet; create a missing table."""
        adding = rows.write.format(self.form).mode("append").partitionBy(*partitioned_by)
        if self.form in OF_A_CATALOGUE:
            # Iceberg would hand all rows of a partition, that is of the attempt, to one task.
            adding.option("distribution-mode", "none").saveAsTable(self.place_of(table))
        else:
            adding.save(self.place_of(table))

    def open(self, table: LakeTable) -> DataFrame:
        """Open a table of another format than Parquet. Errors: MissingError."""
        with naming_missing():
            if self.form in OF_A_CATALOGUE:
                rows = self.session.read.table(self.place_of(table))
            else:
                rows = self.session.read.format(self.form).load(self.place_of(table))
            rows.schema  # noqa: B018  # Connect finds out only when asked
        return rows

    def count(
        self, wanted: Sequence[LakeTable], attempts: Sequence[Attempt]
    ) -> Mapping[str, Sequence[Row]]:
        """Count the rows that can be read, of each attempt, cluster and file, by table.

        A damaged file is left out here, so that counting finds out whose rows it had.
        Errors: MissingError. Cost: one scan of all tables, which reads one column.
        """
        rows: dict[str, list[Row]] = defaultdict(list)
        if not (wanted and attempts):
            return rows
        with naming_missing():
            scanned = self._scan(wanted, attempts).groupBy("table", "attempt", "cluster", "file")
            found = scanned.agg(F.count(F.lit(1)).alias("rows")).collect()
        for row in found:
            rows[row["table"]].append(row)
        return rows

    def load(
        self, table: LakeTable, attempts: Sequence[Attempt], counted: Sequence[Row]
    ) -> DataFrame:
        """Return the rows of the files that were counted, and `attempt` for each."""
        # `StructType.add` would change the declaration.
        schema = StructType([*table.schema.fields, StructField("attempt", StringType())])
        if not counted:
            return self.session.createDataFrame([], schema)
        of = {attempt.id: attempt for attempt in attempts}
        if self.form != PARQUET:
            return self.open(table).where(F.col("attempt").isin(list(of)))
        files = sorted({(row["attempt"], row["file"]) for row in counted})
        reader = self.session.read.schema(schema).option("basePath", self.place_of(table))
        paths = [f"{self.place_of(table, of[attempt])}/{name}" for attempt, name in files]
        return reader.parquet(*map(_escape, paths))

    def delete(self, table: LakeTable, attempt: Attempt) -> None:
        """Remove the rows of an attempt."""
        place = self.place_of(table, attempt)
        if self.form == PARQUET:
            # DataFrames can overwrite a directory, and not remove one: an empty file is left.
            self.session.createDataFrame([], table.schema).write.mode("overwrite").parquet(place)
            return
        where = f"WHERE attempt = '{attempt.id}'"
        self.session.sql(f"DELETE FROM {self._name(table)} {where}")  # noqa: S608

    def list_files(self) -> Iterator[tuple[str, int]]:
        """Yield the attempt and the bytes of each file of the lake. Errors: MissingError."""
        if self.form == PARQUET:
            reader = self.session.read.format("binaryFile").option("recursiveFileLookup", "true")
            found = reader.load(_escape(self.root)).where(F.col("path").contains("/attempt="))
            attempt = F.regexp_extract("path", "/attempt=([^/]+)/", 1)
            files = found.select(attempt.alias("attempt"), F.col("length").alias("bytes"))
        elif (places := self._list_places(_HELD)) and self.form in OF_A_CATALOGUE:
            files = _stack(
                self.session.read.table(f"{place}.files").select(
                    F.col("partition.attempt").alias("attempt"),
                    F.col("file_size_in_bytes").alias("bytes"),
                )
                for place in places
            )
        elif places:
            held = F.col("_metadata.file_path"), F.col("_metadata.file_size")
            opened = (self.session.read.format(self.form).load(place) for place in places)
            each = _stack(rows.select("attempt", *held).distinct() for rows in opened)
            files = each.select("attempt", F.col("file_size").alias("bytes"))
        else:
            return
        for row in files.collect():
            yield row["attempt"], row["bytes"]

    def maintain(self, *, expire: bool) -> None:
        """Have the format merge small files, or remove those that nothing reads any more.

        A format keeps files for some days (Delta 7, Iceberg 5), for jobs that still read them.
        """
        with self.listing_in_few_tasks():
            for place in self._list_places(TABLES.values()):
                if self.form in OF_A_CATALOGUE:
                    catalogue, _, name = place.partition(".")
                    call = _EXPIRE if expire else _REWRITE
                    self.session.sql(f"CALL {catalogue}.system.{call.format(name)}")
                else:
                    verb = "VACUUM" if expire else "OPTIMIZE"
                    self.session.sql(f"{verb} {self.form}.`{place}`")

    @contextmanager
    def listing_in_few_tasks(self) -> Iterator[None]:
        """Have Spark list directories in as many tasks as a shuffle has, unless it is configured.

        VACUUM starts the configured number for each table, however few directories that has.
        """
        conf = self.session.conf
        before, few = conf.get(LISTING), conf.get(SHUFFLES)
        if before != LISTING_DEFAULT or few is None:
            yield
            return
        conf.set(LISTING, few)
        try:
            yield
        finally:
            conf.set(LISTING, before)

    def _list_places(self, tables: Iterable[LakeTable]) -> list[str]:
        """Return the places of those tables of another format than Parquet that exist."""
        found = []
        for table in tables:
            with suppress(MissingError):
                if "attempt" in self.open(table).columns:
                    found.append(self.place_of(table))
        return found

    def _name(self, table: LakeTable) -> str:
        """Name a table of another format than Parquet in SQL."""
        place = self.place_of(table)
        return place if self.form in OF_A_CATALOGUE else f"{self.form}.`{place}`"

    def _scan(self, wanted: Sequence[LakeTable], attempts: Sequence[Attempt]) -> DataFrame:
        """Return table, attempt, cluster and file of every row that can be read."""
        if self.form != PARQUET:
            of_these = F.col("attempt").isin([one.id for one in attempts])
            columns = ("attempt", "cluster", F.lit("").alias("file"))
            tables = [
                self.open(table).where(of_these).select(F.lit(table.name).alias("table"), *columns)
                for table in wanted
            ]
            return _stack(tables)
        reader = self.session.read.schema("cluster string")
        # One scan for all tables, so that Spark makes one plan: a path says whose rows a file has.
        # Without `recursiveFileLookup`, Spark refuses `attempt=` below several directories.
        reader = reader.options(
            ignoreCorruptFiles="true", ignoreMissingFiles="true", recursiveFileLookup="true"
        )
        paths = [_escape(self.place_of(table, one)) for table in wanted for one in attempts]
        path = F.split("_metadata.file_path", "/")
        return reader.parquet(*paths).select(
            F.element_at(path, -3).alias("table"),
            F.substring_index(F.element_at(path, -2), "=", -1).alias("attempt"),
            "cluster",
            F.col("_metadata.file_name").alias("file"),
        )


def _stack(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(lambda above, below: above.unionByName(below), frames)


@contextmanager
def naming_missing() -> Iterator[None]:
    """Translate Spark's errors about missing tables and paths to MissingError."""
    try:
        yield
    except AnalysisException as error:
        if not any(word in (error.getCondition() or "") for word in _MISSING):
            raise
        path = (error.getMessageParameters() or {}).get("path")
        said = path.replace("\\", "") if path else str(error).splitlines()[0]
        raise MissingError(said) from error


def _escape(path: str) -> str:
    """Escape the characters of a path that Spark would read as a pattern."""
    return "".join(f"\\{c}" if c in "[]{}*?\\" else c for c in path)
