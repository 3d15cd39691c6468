"""The partitions of one synthetic cluster: replicas, who is in sync, who leads, how large.

Shapes: a row of a matrix is a partition, a column a replica, preferred leader first; -1 where a
partition has fewer replicas than others. Cost: 1 µs a partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reconciler.fleet import tables
from reconciler.fleet.rows import arrow_schema
from reconciler.fleet.synthetic.topics import USUAL_REPLICATION, Drift

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.fleet.synthetic.shapes import ClusterShape
    from reconciler.fleet.synthetic.topics import Topics

    Matrix = NDArray[np.int32]
    Mask = NDArray[np.bool_]

LAGGING, STRAY, LED_ELSEWHERE, AFTER_RESTART, LOPSIDED = 0.2, 0.0002, 0.003, 0.6, 0.04
"""Shares: of a lagging broker's replicas, of all followers, of all leaders, of the leaders of a
broker that came back, and of topics whose leaders are on half of the brokers."""


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
    """Place replicas as Kafka would, round the brokers from a start of the topic's own.

    Brokers stand in turns of racks, and a follower's step is a whole number of turns and its own
    column: so replicas are on different brokers always, and on different racks where there are
    enough.
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
    """Draw who is in sync: the last one stays, even where its broker is gone."""
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
    """Draw who leads: the first that is in sync, now and then the second. Returns: indices."""
    chance = rng.random(len(replicas))
    aside = chance < LED_ELSEWHERE
    if shape.restarted is not None:
        aside |= (replicas[:, 0] == shape.restarted) & (chance < AFTER_RESTART)
    able = in_sync.copy()
    able[aside & (in_sync.sum(axis=1) > 1), 0] = False
    leader = replicas[np.arange(len(replicas)), able.argmax(axis=1)]
    return np.where(leader == shape.dead, -1, leader) if shape.dead is not None else leader


def _list(ids: NDArray[np.int32], indices: Matrix, chosen: Mask) -> pa.Array:
    """Return the ids of the chosen cells of each row as a column of lists."""
    offsets = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int32)
    kind = arrow_schema(tables.PARTITIONS.name).field("replicas").type
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids[indices[chosen]]), type=kind)
