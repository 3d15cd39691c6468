"""`kafka_metadata`: the state of live clusters, one input partition per cluster and topic range.

    session.dataSource.register(KafkaMetadata)
    rows = session.read.format("kafka_metadata").options(**choose_clusters(entries)).load()

Rows of every state table are in one table, whose column `table` tells them apart, so that a cluster
is read once. A range that cannot be read, or not within its limit, is a row of `readings` with the
reason; `settle_readings` chooses the row that counts. A filter on `cluster` is pushed down: other
clusters are not contacted. A schema of fewer columns asks the brokers for less.
"""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, In, InputPartition
from pyspark.sql.types import StructType

from reconciler.errors import ClusterError, Finding, FindingsError, Location, ReconcilerError
from reconciler.fleet import tables
from reconciler.fleet.lake.attempts import READ
from reconciler.fleet.rows import arrow_schema, describe_reading, make_table, write_state
from reconciler.model.cluster import ClusterState
from reconciler.spec.entry import ClusterEntry

T = TypeVar("T")

UNREADABLE = "unreadable"
BATCH_ROWS = 50_000
LIMIT_S = 300.0
"""The timeout for reading one range, including all retries."""


def choose_clusters(
    entries: Iterable[ClusterEntry],
    bootstrap_servers: Mapping[str, str] | None = None,
    ranges: int = 1,
    limit_s: float = LIMIT_S,
    used: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """Return the options that name clusters to read; `ranges` splits the topics of each.

    `used` names, by cluster, the topics of which it must be known who uses them.

    They hold references to secrets, which the executors resolve, and no secret.
    """
    named = {
        entry.name: {
            "client": dict(entry.client),
            "cluster_id": entry.cluster_id,
            "kafka_version": entry.kafka_version,
            "location": astuple(entry.location),
            "drains": bool(entry.drain_brokers),
            "bootstrap_servers": (bootstrap_servers or {}).get(entry.name),
            "used": list((used or {}).get(entry.name, ())),
        }
        for entry in entries
    }
    return {"clusters": json.dumps(named), "ranges": str(ranges), "limit_s": str(limit_s)}


@dataclass
class TopicRange(InputPartition):
    """The topics of one cluster whose names have the same hash, modulo the number of ranges."""

    cluster: str
    number: int
    of: int

    def holds(self, topic: str) -> bool:
        """Return whether a topic is in this range."""
        # Python's own hash of a text differs between processes, and ranges must not overlap.
        return zlib.crc32(topic.encode()) % self.of == self.number


class KafkaMetadata(DataSource):
    """The state of live Kafka clusters. Source: the Python Data Source API of Spark 4."""

    @classmethod
    def name(cls) -> str:
        """Name the format."""
        return "kafka_metadata"

    def schema(self) -> StructType:
        """Return the columns of every state table, in parallel."""
        return tables.FACTS.schema

    def reader(self, schema: StructType) -> KafkaMetadataReader:
        """Return the reader of the wanted columns."""
        return KafkaMetadataReader(dict(self.options), schema.names)


class KafkaMetadataReader(DataSourceReader):
    """Reads clusters; an input partition is one topic range of one of them."""

    def __init__(self, options: Mapping[str, str], columns: Sequence[str]) -> None:
        self._clusters: dict[str, dict[str, Any]] = json.loads(options.get("clusters", "{}"))
        self._ranges = int(options.get("ranges", "1"))
        self._limit_s = float(options.get("limit_s", LIMIT_S))
        self._columns = list(columns)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's name
        """Apply filters on `cluster`: other clusters are not contacted. Yield the other filters."""
        for one in filters:
            match one:
                case EqualTo(("cluster",), wanted):
                    self._keep({wanted})
                case In(("cluster",), wanted):
                    self._keep(set(wanted))
                case _:
                    yield one

    def partitions(self) -> Sequence[InputPartition]:
        """Return the topic ranges of every cluster. Spark reads each in a task of its own."""
        return [
            TopicRange(cluster, number, self._ranges)
            for cluster in sorted(self._clusters)
            for number in range(self._ranges)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one range of one cluster. Errors: none; an error is a row of `readings`."""
        assert isinstance(partition, TopicRange)  # noqa: S101  # as `partitions` made them
        reading = _Reading(partition, self._clusters[partition.cluster], self._limit_s)
        for name, rows in reading.take(self._columns).items():
            yield from _widen(name, rows, self._columns).to_batches(BATCH_ROWS)

    def _keep(self, wanted: set[str]) -> None:
        self._clusters = {name: c for name, c in self._clusters.items() if name in wanted}


def settle_readings(rows: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the row that counts for each cluster: an unread range overrides the others.

    The entire cluster then counts as unread, because a plan without some of its live topics would
    create them again.
    """
    settled: dict[str, Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: (row["cluster"], row["status"] == READ)):
        settled.setdefault(row["cluster"], row)
    return settled


@dataclass(slots=True)
class _Reading:
    """One reading of one range of a cluster."""

    range: TopicRange
    options: Mapping[str, Any]
    limit_s: float

    def take(self, columns: Sequence[str]) -> Mapping[str, pa.Table]:
        """Return the rows of every table; of `readings` alone if the range is not read."""
        started, at = time.monotonic(), datetime.now(UTC)
        try:
            state = _call_within(self.limit_s, lambda: self._read(columns), self.range.cluster)
            read: dict[str, Any] = {"status": READ, **describe_reading(state)}
            rows = dict(write_state(self.range.cluster, state))
        except FindingsError as error:
            read, rows = {"status": error.findings[0].rule, "error": str(error)}, {}
        except ReconcilerError as error:
            read, rows = {"status": UNREADABLE, "error": str(error)}, {}
        except Exception as error:  # noqa: BLE001  # one cluster must not end the fleet's job
            # Its text may quote an answer, or a property with a secret: only its type is shown.
            said = f"its answers are not understood ({type(error).__name__})"
            read, rows = {"status": UNREADABLE, "error": said}, {}
        # Only the first range gives the brokers and a good reading: otherwise there would be N.
        if self.range.number:
            rows.pop(tables.BROKERS.name, None)
            if read["status"] == READ:
                return rows
        read |= {"read_at": at.isoformat(timespec="seconds"), "synthetic": False}
        read["read_ms"] = round((time.monotonic() - started) * 1000)
        row = {"cluster": self.range.cluster, **read}
        named = make_table(tables.READINGS, {name: [value] for name, value in row.items()})
        return {tables.READINGS.name: named, **rows}

    def _read(self, columns: Sequence[str]) -> ClusterState:
        from reconciler.kafka.connection import connect
        from reconciler.kafka.reader import KafkaReader

        told = self.options
        where = Location(*told["location"])
        entry = ClusterEntry(self.range.cluster, where, told["cluster_id"], client=told["client"])
        with connect(entry, bootstrap_servers=told["bootstrap_servers"]) as connection:
            reader = KafkaReader(connection)
            reader.check_rights([], for_apply=False)
            # Configs are most of the cost: a range reads the names, then the configs of its topics.
            is_all = self.range.of == 1 and "value" in columns
            state = reader.read_cluster(None if is_all else ())
            if self.range.of > 1:
                held = [name for name in state.topics if self.range.holds(name)]
                if "value" in columns and held:
                    state = reader.read_cluster(held)
                kept = {name: state.topics[name] for name in held if name in state.topics}
                state = replace(state, topics=kept)
            if "topic_id" in columns:
                ids = reader.read_topic_ids(state.topics.keys())
                topics = {n: replace(t, topic_id=ids.get(n)) for n, t in state.topics.items()}
                state = replace(state, topics=topics)
            if "size_bytes" in columns:
                # Write rates would take ten seconds a cluster, in which a task does nothing.
                # Throttle lists are in the configs, if these are wanted.
                state = reader.read_moves(state, interval_s=0, lists=False)
            if "last_write_ms" in columns:
                used = [name for name in told["used"] if name in state.topics]
                state = replace(state, usage=reader.read_usage(used))
            if told["drains"] and not self.range.number:
                state = reader.read_voters(state)
        return replace(state, kafka_version=told["kafka_version"])


def _call_within(limit_s: float, call: Callable[[], T], cluster: str) -> T:
    """Return the result of a call. Errors: its own; ClusterError when the time is up.

    The call then continues in its thread: a client that waits cannot be stopped. Spark has no
    timeout for a task, and one dead cluster must not hold the job.
    """
    answers: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def answer() -> None:
        try:
            answers.put((call(), None))
        except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
            answers.put((None, error))

    threading.Thread(target=answer, daemon=True).start()
    try:
        found, error = answers.get(timeout=limit_s)
    except Empty:
        what = f"reading {cluster} took longer than {limit_s:g} s"
        way_out = "look at its brokers, or allow more with --time-limit"
        raise ClusterError([Finding("fleet-time-limit", what, way_out)]) from None
    if error is not None:
        raise error
    return found  # type: ignore[return-value]  # there is no error, so there is a value


def _widen(name: str, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Put rows of a table into the wanted columns of the wide one; what it lacks is null."""
    schema = arrow_schema(tables.FACTS.name)
    length = rows.num_rows
    arrays = [
        pa.array([name] * length)
        if column == "table"
        else rows[column]
        if column in rows.column_names
        else pa.nulls(length, schema.field(column).type)
        for column in columns
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema([schema.field(c) for c in columns]))
