"""States and specs as rows, and back: pure Arrow, so that readers and planners need no session.

Source: the tables of reconciler.fleet.tables. A state is equal after a round trip through rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import TypeAdapter
from pyspark.sql.pandas.types import to_arrow_schema

from reconciler.errors import Finding, Location
from reconciler.fleet import tables
from reconciler.fleet.tables import LakeTable
from reconciler.model.cluster import (
    Broker,
    ClusterState,
    LogDirectory,
    RateSource,
    Reassignment,
    ThrottleRate,
    ThrottleSide,
    TopicSpec,
    TopicState,
)

Rows = dict[str, list[Any]]

_NO_PARTITIONS: Mapping[str, Any] = MappingProxyType({"assignment": ()})


@cache
def arrow_schema(name: str) -> pa.Schema:
    """Return the schema of a table for Arrow."""
    return to_arrow_schema(tables.TABLES[name].schema, prefers_large_types=False)


def make_table(table: LakeTable, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Make rows of a table out of its columns; those left out are null."""
    schema = arrow_schema(table.name)
    length = max((len(values) for values in columns.values()), default=0)
    arrays = [
        pa.array(columns.get(field.name, [None] * length), type=field.type) for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_state(cluster: str, state: ClusterState) -> Mapping[str, pa.Table]:
    """Turn a state into rows of every state table but `readings`. Returns: rows by table.

    What is in flight of a topic that the state does not have is left out.
    """
    topics = [state.topics[name] for name in sorted(state.topics)]
    brokers: Rows = {
        "cluster": [cluster] * len(state.brokers),
        "id": [broker.id for broker in state.brokers],
        "rack": [broker.rack for broker in state.brokers],
        "alive": [broker.alive for broker in state.brokers],
        "cordoned": [broker.cordoned for broker in state.brokers],
        "log_directories": [
            None if held is None else [_write_directory(each) for each in held if each.online]
            for held in (state.directories.get(broker.id) for broker in state.brokers)
        ],
        "failed_directories": [
            None if held is None else [each.path for each in held if not each.online]
            for held in (state.directories.get(broker.id) for broker in state.brokers)
        ],
    }
    described: Rows = {
        "cluster": [cluster] * len(topics),
        "topic": [topic.name for topic in topics],
        "topic_id": [topic.topic_id for topic in topics],
        "internal": [topic.internal for topic in topics],
        "partitions": [len(topic.assignment) for topic in topics],
    }
    usages = [state.usage.get(topic.name) for topic in topics]
    described |= {
        "last_write_ms": [None if used is None else used.newest_ms for used in usages],
        "readers": [None if used is None or used.unseen else used.groups for used in usages],
        "use_unknown": [None if used is None else used.unseen or None for used in usages],
    }
    found = [
        (topic.name, key, value) for topic in topics for key, value in sorted(topic.config.items())
    ]
    configs: Rows = {
        "cluster": [cluster] * len(found),
        "topic": [name for name, _, _ in found],
        "config": [key for _, key, _ in found],
        "value": [value for _, _, value in found],
    }
    return {
        tables.BROKERS.name: make_table(tables.BROKERS, brokers),
        tables.TOPICS.name: make_table(tables.TOPICS, described),
        tables.PARTITIONS.name: _write_partitions(cluster, topics, state.reassignments),
        tables.CONFIGS.name: make_table(tables.CONFIGS, configs),
    }


def _write_directory(directory: LogDirectory) -> dict[str, Any]:
    return {name: value for name, value in asdict(directory).items() if name != "online"}


def describe_reading(state: ClusterState) -> dict[str, Any]:
    """Return what a row of `readings` says of the cluster itself."""
    return {
        "cluster_id": state.cluster_id,
        "kafka_version": state.kafka_version,
        "defaults": list(state.config_defaults.items()),
        "can_cordon": state.can_cordon,
        "voters": sorted(state.voters),
        "throttle_rates": list(map(asdict, state.throttle_rates)),
        "notes": _findings().dump_json(state.notes).decode(),
    }


def read_notes(text: str | None) -> tuple[Finding, ...]:
    """Return the findings of a column `notes`."""
    return _findings().validate_json(text) if text else ()


def _write_partitions(
    cluster: str, topics: Sequence[TopicState], in_flight: Iterable[Reassignment]
) -> pa.Table:
    columns: Rows = defaultdict(list)
    flights: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for each in in_flight:
        flights[each.topic][each.partition] = asdict(each)
    for topic in topics:
        count = len(topic.assignment)
        columns["topic"] += [topic.name] * count
        columns["partition"] += range(count)
        columns["replicas"] += topic.assignment
        columns["moving"] += [number in topic.reassigning for number in range(count)]
        columns["in_sync"] += topic.in_sync or [None] * count
        columns["leader"] += topic.leaders or [None] * count
        for field, name in _AMOUNTS.items():
            known = getattr(topic, field)
            columns[name] += [None if each < 0 else each for each in known] or [None] * count
        moving = flights.get(topic.name)
        columns["reassignment"] += map(moving.get, range(count)) if moving else [None] * count
    return make_table(tables.PARTITIONS, {**columns, "cluster": [cluster] * len(columns["topic"])})


def read_state(
    reading: Mapping[str, Any],
    brokers: Sequence[Mapping[str, Any]],
    topics: pa.Table,
    partitions: pa.Table,
    configs: pa.Table,
) -> ClusterState:
    """Turn the rows of one cluster, in any order, back into its state.

    A missing column of `partitions` means that its values are unknown. Cost: 1 µs per partition.
    """
    internal = set(_list(topics.filter(topics["internal"]), "topic"))
    overrides: dict[str, dict[str, str | None]] = defaultdict(dict)
    ordered = configs.sort_by([("topic", "ascending"), ("config", "ascending")])
    columns = (_list(ordered, name) for name in ("topic", "config", "value"))
    for topic, key, value in zip(*columns, strict=True):
        overrides[topic][key] = value
    parts = dict(_read_partitions(partitions))
    ids = sorted(zip(_list(topics, "topic"), _list(topics, "topic_id"), strict=True))
    nodes = sorted(brokers, key=lambda row: row["id"])
    states = {
        name: TopicState(
            name,
            topic_id,
            config=MappingProxyType(overrides.get(name, {})),
            internal=name in internal,
            **parts.get(name, _NO_PARTITIONS),
        )
        for name, topic_id in ids
    }
    return ClusterState(
        cluster_id=reading["cluster_id"],
        brokers=tuple(
            Broker(row["id"], row["rack"], row["alive"], row["cordoned"]) for row in nodes
        ),
        topics=MappingProxyType(states),
        config_defaults=MappingProxyType(dict(reading["defaults"] or {})),
        notes=read_notes(reading["notes"]),
        kafka_version=reading["kafka_version"],
        directories=MappingProxyType(_read_directories(nodes)),
        reassignments=tuple(_read_reassignments(partitions)),
        can_cordon=bool(reading["can_cordon"]),
        voters=frozenset(reading["voters"] or ()),
        throttle_rates=tuple(map(_read_rate, reading["throttle_rates"] or ())),
    )


def _read_directories(
    brokers: Iterable[Mapping[str, Any]],
) -> dict[int, tuple[LogDirectory, ...]]:
    found = {}
    for row in brokers:
        if row["log_directories"] is None:
            continue
        held = [LogDirectory(**each) for each in row["log_directories"]]
        failed = row["failed_directories"]
        held += [LogDirectory(path, None, None, online=False) for path in failed]
        found[row["id"]] = tuple(sorted(held, key=lambda each: each.path))
    return found


def _read_rate(row: Mapping[str, Any]) -> ThrottleRate:
    side, source = ThrottleSide(row["side"]), RateSource(row["source"])
    return ThrottleRate(row["broker"], side, row["bytes_per_s"], source)


def _read_reassignments(partitions: pa.Table) -> Iterator[Reassignment]:
    """Yield what is in flight, by topic and partition."""
    if "reassignment" not in partitions.column_names:
        return
    flying = partitions.filter(pc.is_valid(partitions["reassignment"]))
    for row in flying.sort_by([("topic", "ascending"), ("partition", "ascending")]).to_pylist():
        told = row["reassignment"]
        lists = {name: tuple(told[name]) for name in ("replicas", "adding", "removing", "in_sync")}
        yield Reassignment(row["topic"], row["partition"], leader=told["leader"], **lists)


def _read_partitions(partitions: pa.Table) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each topic with the fields that its partitions give, by name.

    A missing column gives no field.
    """
    # Rows are sorted, so each topic is one run of rows: no dictionary of partitions is built, and
    # a topic costs a few slices, however many partitions it has.
    ordered = partitions.sort_by([("topic", "ascending"), ("partition", "ascending")])
    names = ordered["topic"].combine_chunks().dictionary_encode()
    runs = names.indices.to_numpy()
    starts = [0, *(np.flatnonzero(np.diff(runs)) + 1).tolist(), len(runs)] if len(runs) else []
    rows = {
        field: _read_known(ordered, column)
        for field, column in _OF_PARTITIONS.items()
        if column in ordered.column_names
    }
    moving = np.flatnonzero(pc.fill_null(ordered["moving"], fill_value=False).to_numpy())
    moved = np.searchsorted(moving, starts).tolist()
    for n, (start, end) in enumerate(pairwise(starts)):
        columns: dict[str, Any] = {field: known(start, end) for field, known in rows.items()}
        numbers = moving[moved[n] : moved[n + 1]] - start
        columns["reassigning"] = frozenset(numbers.tolist())
        yield names.dictionary[n].as_py(), columns


_AMOUNTS = {"size_bytes": "size_bytes", "write_bytes_per_s": "rate_bytes_per_s"}
"""The fields of TopicState of which some partitions may be unknown, -1 there, and their columns.

Unknown is null in a row.
"""


_OF_PARTITIONS = {
    "assignment": "replicas",
    "in_sync": "in_sync",
    "leaders": "leader",
    **_AMOUNTS,
}
"""The fields of TopicState that have a value per partition, and their columns."""


def _read_known(table: pa.Table, name: str) -> Callable[[int, int], tuple[Any, ...]]:
    """Return a function that reads a range of a column. A range without any value is empty.

    An unknown amount is -1; an unknown value of another column empties its range.
    """
    column = table[name].combine_chunks()
    if name in _AMOUNTS.values():
        amounts = tuple(pc.fill_null(column, -1).to_pylist())
        nothing = np.concatenate([[0], np.cumsum(column.is_valid().to_numpy(zero_copy_only=False))])
        return lambda start, end: amounts[start:end] if nothing[end] > nothing[start] else ()
    values = _list_rows(column) if pa.types.is_list(column.type) else tuple(column.to_pylist())
    if not column.null_count or name == "replicas":
        return lambda start, end: values[start:end]
    unknown = np.concatenate([[0], np.cumsum(column.is_null().to_numpy(zero_copy_only=False))])
    return lambda start, end: () if unknown[end] > unknown[start] else values[start:end]


def _list(table: pa.Table, name: str) -> list[Any]:
    return table[name].to_pylist()  # type: ignore[no-any-return]


def _list_rows(column: pa.ListArray) -> tuple[Any, ...]:
    """Return lists of numbers as tuples, null as None; equal lists are the same tuple."""
    # A cluster has a few thousand different lists of replicas, and a hundred times as many
    # partitions. So only the different lists become Python objects.
    lengths = pc.fill_null(pc.list_value_length(column), -1).to_numpy()
    flat = column.flatten().to_numpy()
    rows = np.empty(len(column), dtype=object)
    ends = np.cumsum(lengths.clip(0))
    for length in np.unique(lengths).tolist():
        at = np.flatnonzero(lengths == length)
        if length <= 0:
            found = [() if length == 0 else None]
            rows[at] = _as_objects(found)[np.zeros(len(at), dtype=np.int64)]
            continue
        cells = flat[(ends[at] - length)[:, None] + np.arange(length)]
        first, inverse = _find_equal(cells)
        rows[at] = _as_objects([tuple(row) for row in cells[first].tolist()])[inverse]
    return tuple(rows.tolist())


def _find_equal(cells: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Find equal rows. Returns: the index of one row of each kind, and the kind of every row."""
    code = np.zeros(len(cells), dtype=np.int64)
    for column in cells.T.astype(np.int64):
        # The codes are numbered anew per column, so that they stay small: one per different prefix.
        number = column - column.min()
        both = pa.array(code * (number.max() + 1) + number)
        code = both.dictionary_encode().indices.to_numpy().astype(np.int64)
    first = np.empty(code.max() + 1, dtype=np.int64)
    first[code] = np.arange(len(code))
    return first, code


def _as_objects(values: list[Any]) -> NDArray[Any]:
    """Return an array of these objects; numpy would make a matrix of tuples."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def write_specs(cluster: str, specs: Sequence[TopicSpec]) -> pa.Table:
    """Turn the specs of a cluster into rows of the table `specs`."""
    write = _spec().dump_json
    return make_table(
        tables.SPECS,
        {
            "cluster": [cluster] * len(specs),
            "topic": [spec.name for spec in specs],
            "owner": [spec.owner for spec in specs],
            "labels": [sorted(spec.labels.items()) for spec in specs],
            "file": [spec.location.file for spec in specs],
            "line": [spec.location.line for spec in specs],
            "partitions": [spec.partitions for spec in specs],
            "replication_factor": [spec.replication_factor for spec in specs],
            "config": [sorted(spec.config.items()) for spec in specs],
            "spec": [write(spec, fallback=dict, warnings=False).decode() for spec in specs],
        },
    )


def read_specs(rows: pa.Table) -> tuple[TopicSpec, ...]:
    """Return the specs of one cluster, by name. Cost: 6 µs per spec."""
    read = _spec().validate_json
    return tuple(sorted(map(read, _list(rows, "spec")), key=lambda spec: spec.name))


@cache
def _spec() -> TypeAdapter[TopicSpec]:
    from collections.abc import Mapping

    from reconciler.model import cluster, moves

    # The module of TopicSpec imports the names of its fields for type checkers only.
    adapter = TypeAdapter(TopicSpec)
    names = {**vars(moves), **vars(cluster), "Location": Location, "Mapping": Mapping}
    adapter.rebuild(force=True, _types_namespace=names)
    return adapter


@cache
def _findings() -> TypeAdapter[tuple[Finding, ...]]:
    return TypeAdapter(tuple[Finding, ...])
