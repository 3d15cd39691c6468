"""The rows of the state tables for one synthetic cluster.

Shapes: a row of a matrix is a partition, a column a replica, preferred leader first; -1 if a
partition has fewer replicas than others. Cost: 1 µs a partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.fleet import tables
from reconciler.fleet.generator.shapes import ClusterShape
from reconciler.fleet.generator.specs import KAFKA_VERSION, choose_config
from reconciler.fleet.generator.topics import PROFILES, USUAL_REPLICATION, Drift, Topics
from reconciler.fleet.generator.troubles import UNREAD, Trouble
from reconciler.fleet.lake.attempts import READ
from reconciler.fleet.rows import arrow_schema, describe_reading, make_table, write_state

Matrix = NDArray[np.int32]
Mask = NDArray[np.bool_]

READ_AT = "2026-01-01T00:00:00+00:00"
"""The time at which a generated state was read: a constant."""

_LOWERED, _RAISED = 0.5, 2.0


def write_reading(shape: ClusterShape) -> pa.Table:
    """Return the row of `readings`, which says that the cluster is synthetic."""
    row = {
        "cluster": shape.name,
        "status": READ,
        "cluster_id": shape.cluster_id,
        "kafka_version": KAFKA_VERSION,
        "defaults": [*_list_defaults().items()],
        "notes": "[]",
        "read_at": READ_AT,
        "read_ms": shape.partitions // 10,
        "synthetic": True,
    }
    return make_table(tables.READINGS, {name: [value] for name, value in row.items()})


def write_trouble(trouble: Trouble, *, before: bool = False) -> Mapping[str, pa.Table]:
    """Return the rows of every state table, by name; those of a day `before`, if asked."""
    state = trouble.look_back() if before else trouble.state
    row: dict[str, Any] = {
        "cluster": trouble.name,
        "read_at": READ_AT,
        "read_ms": 1,
        "synthetic": True,
    }
    if state is None:
        row |= dict(zip(("status", "error"), UNREAD, strict=True))
        rows = {table.name: make_table(table, {}) for table in tables.STATE}
    else:
        state = replace(
            state,
            cluster_id=trouble.cluster_id,
            kafka_version=KAFKA_VERSION,
            config_defaults=_list_defaults(),
        )
        row |= {"status": READ, **describe_reading(state)}
        rows = {**write_state(trouble.name, state)}
    rows[tables.READINGS.name] = make_table(
        tables.READINGS, {name: [value] for name, value in row.items()}
    )
    return rows


def write_brokers(shape: ClusterShape) -> pa.Table:
    """Return the rows of `brokers`."""
    brokers = shape.list_brokers()
    return make_table(
        tables.BROKERS,
        {
            "cluster": [shape.name] * len(brokers),
            "id": [broker.id for broker in brokers],
            "rack": [broker.rack for broker in brokers],
            "alive": [broker.alive for broker in brokers],
            "cordoned": [broker.cordoned for broker in brokers],
        },
    )


def write_topics(shape: ClusterShape, topics: Topics) -> pa.Table:
    """Return the rows of `topics`."""
    live = topics.live
    return make_table(
        tables.TOPICS,
        {
            "cluster": [shape.name] * live,
            "topic": topics.names[:live],
            "topic_id": topics.ids,
            "internal": [row == topics.internal for row in range(live)],
            "partitions": topics.partitions[:live].tolist(),
        },
    )


def write_configs(shape: ClusterShape, topics: Topics) -> pa.Table:
    """Return the rows of `configs`: those of the specs, except for drift."""
    found = [
        (topics.names[row], key, value)
        for row in range(topics.live)
        for key, value in _list_overrides(topics, row)
    ]
    return make_table(
        tables.CONFIGS,
        {
            "cluster": [shape.name] * len(found),
            "topic": [topic for topic, _, _ in found],
            "config": [key for _, key, _ in found],
            "value": [value for _, _, value in found],
        },
    )


def _list_overrides(topics: Topics, row: int) -> Iterator[tuple[str, str]]:
    drift = topics.drift[row]
    if drift == Drift.UNMANAGED:
        return
    profile = tuple(PROFILES)[topics.profile[row]]
    config = choose_config(profile, int(topics.wished_replication[row]))
    if drift == Drift.CONFIG:
        key = "retention.ms" if "retention.ms" in config else "min.cleanable.dirty.ratio"
        # Most values are halved, every fourth is doubled: lowering a retention loses records.
        changed = float(config[key]) * (_LOWERED if row % 4 else _RAISED)
        config[key] = str(int(changed)) if config[key].isdigit() else f"{changed:g}"
    if drift == Drift.OVERRIDE:
        config["max.message.bytes"] = "2097152"
    yield from sorted(config.items())


@cache
def _list_defaults() -> Mapping[str, str]:
    from reconciler.spec.configs import choose_catalogue

    keys = choose_catalogue(KAFKA_VERSION).keys
    return {name: key.default for name, key in sorted(keys.items()) if key.default is not None}


LAGGING, STRAY, LED_ELSEWHERE, AFTER_RESTART, LOPSIDED = 0.2, 0.0002, 0.003, 0.6, 0.04
"""Shares: of the replicas of a lagging broker, of all followers, of all leaders, of the leaders of
a restarted broker, and of topics whose leaders are on half of the brokers."""


def write_partitions(seed: int, shape: ClusterShape, topics: Topics) -> pa.Table:
    """Draw the rows of the table `partitions`."""
    rng = np.random.default_rng([seed, shape.number, 1])
    counts = topics.partitions[: topics.live]
    topic = np.repeat(np.arange(topics.live), counts)
    partition = np.arange(len(topic)) - np.repeat(np.cumsum(counts) - counts, counts)
    indices = _place(rng, shape, topics, topic, partition)
    in_sync = _draw_in_sync(rng, shape, indices)
    leader = _draw_leaders(rng, shape, indices, in_sync)
    typical = rng.lognormal(18.0, 2.5, topics.live)
    size = (typical[topic] * rng.normal(1.0, 0.05, len(topic)).clip(0.5, 1.5)).astype(np.int64)
    moving = (topics.drift[topic] == Drift.MOVING) & (partition == 0)
    ids = shape.ids
    columns = {
        "cluster": pa.array([shape.name]).take(pa.array(np.zeros(len(topic), dtype=np.int8))),
        "topic": pa.array(topics.names[: topics.live]).take(pa.array(topic)),
        "partition": pa.array(partition.astype(np.int32)),
        "leader": pa.array(np.where(leader < 0, -1, ids[leader]).astype(np.int32)),
        "replicas": _list(ids, indices, indices >= 0),
        "in_sync": _list(ids, indices, in_sync),
        "moving": pa.array(moving),
        "size_bytes": pa.array(size),
        "rate_bytes_per_s": pa.array(size // 86_400),
        "reassignment": _write_reassignments(ids, indices, leader, moving),
    }
    schema = arrow_schema(tables.PARTITIONS.name)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _place(
    rng: np.random.Generator,
    shape: ClusterShape,
    topics: Topics,
    topic: NDArray[np.int64],
    partition: NDArray[np.int64],
) -> Matrix:
    """Place replicas like Kafka: round-robin over the brokers, from a random start per topic.

    Brokers alternate over the racks. A follower's step is an integer number of rounds plus its
    column, so replicas are always on different brokers, and on different racks if there are enough.
    """
    brokers = shape.brokers
    steps = (brokers - USUAL_REPLICATION) // shape.racks + 1
    start = rng.integers(0, brokers, topics.live)
    around = np.where(rng.random(topics.live) < LOPSIDED, brokers // 2, brokers)
    turn = rng.integers(0, steps, topics.live)
    lead = (start[topic] + partition % around[topic]) % brokers
    step = shape.racks * ((turn[topic] + partition // brokers) % steps)
    matrix = np.stack([lead, lead + 1 + step, lead + 2 + step], axis=1).astype(np.int32) % brokers
    held = topics.replication[topic]
    held = held - ((topics.drift[topic] == Drift.MIXED) & (partition == 0))
    matrix[np.arange(USUAL_REPLICATION) >= held[:, None]] = -1
    return matrix


def _draw_in_sync(rng: np.random.Generator, shape: ClusterShape, replicas: Matrix) -> Mask:
    """Draw the in-sync replicas. One always stays, even on a dead broker."""
    followers = replicas >= 0
    followers[:, 0] = False
    in_sync = (replicas >= 0) & ~(followers & (rng.random(replicas.shape) < STRAY))
    if shape.lagging is not None:
        behind = followers & (replicas == shape.lagging)
        in_sync &= ~(behind & (rng.random(replicas.shape) < LAGGING))
    if shape.dead is not None:
        in_sync &= replicas != shape.dead
    in_sync[~in_sync.any(axis=1), 0] = True
    return in_sync


def _draw_leaders(
    rng: np.random.Generator, shape: ClusterShape, replicas: Matrix, in_sync: Mask
) -> NDArray[np.int32]:
    """Draw the leaders: the first in-sync replica, sometimes the second. Returns: indices."""
    chance = rng.random(len(replicas))
    aside = chance < LED_ELSEWHERE
    if shape.restarted is not None:
        aside |= (replicas[:, 0] == shape.restarted) & (chance < AFTER_RESTART)
    able = in_sync.copy()
    able[aside & (in_sync.sum(axis=1) > 1), 0] = False
    leader = replicas[np.arange(len(replicas)), able.argmax(axis=1)]
    return np.where(leader == shape.dead, -1, leader) if shape.dead is not None else leader


def _write_reassignments(
    ids: NDArray[np.int32], replicas: Matrix, leader: NDArray[np.int32], moving: Mask
) -> pa.Array:
    """Return what is in flight: the last replica of a moving partition is being copied."""
    held = (replicas >= 0) & moving[:, None]
    last = held & (np.cumsum(held, axis=1) == held.sum(axis=1)[:, None])
    parts = {
        "replicas": _list(ids, replicas, held),
        "adding": _list(ids, replicas, last),
        "removing": _list(ids, replicas, np.zeros_like(held)),
        "leader": pa.array(np.where(leader < 0, -1, ids[leader]).astype(np.int32)),
        "in_sync": _list(ids, replicas, held & ~last),
    }
    kind = arrow_schema(tables.PARTITIONS.name).field("reassignment").type
    arrays = [parts[kind.field(number).name] for number in range(kind.num_fields)]
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=pa.array(~moving))


def _list(ids: NDArray[np.int32], indices: Matrix, chosen: Mask) -> pa.Array:
    """Return the ids of the chosen cells of each row as a column of lists."""
    offsets = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int32)
    kind = arrow_schema(tables.PARTITIONS.name).field("replicas").type
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids[indices[chosen]]), type=kind)
