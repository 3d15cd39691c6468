"""What two readings of a cluster need, so that their difference says how fast it is used.

Each has the bytes of every leader's log, and on demand its offsets and what groups committed.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace

from confluent_kafka import TopicPartition

from reconciler.kafka.connection import Connection
from reconciler.kafka.errors import UntranslatableError
from reconciler.kafka.groups import read_committed
from reconciler.kafka.log_dirs import read_sizes
from reconciler.kafka.offsets import Offsets, read_offsets
from reconciler.kafka.second_client import NoAnswerError, ask_second_client
from reconciler.model.cluster import ClusterState, Place
from reconciler.model.moves import LoadKind


def read_traffic(
    connection: Connection, state: ClusterState, loads: Collection[LoadKind]
) -> ClusterState:
    """Add sizes, logs and the time to a state, and what the rates of some kinds of load need.

    Writes and reads need the offsets of logs, and reads also what groups committed. Without
    offsets, the rates are less exact. A log whose records are deleted between its offsets and its
    bytes is read as if it had grown less: that takes less than a second of a window. What cannot be
    read is unknown.
    Errors: ClusterError if no broker answers at all. Cost: one request for each broker; for offsets
    two for every 1,000 partitions and leader, and for reads that of `read_committed`.
    """
    reads = LoadKind.READ in loads
    committed, notes = read_committed(connection, state.topics) if reads else (None, ())
    offsets = None
    if any(kind.is_on_leaders for kind in loads):
        offsets = _read_offsets(connection, state)
    read_at_ms = int(time.time() * 1000)
    state = read_sizes(connection, state, offsets, logs=True)
    return replace(
        state, read_at_ms=read_at_ms, committed_offsets=committed, notes=(*state.notes, *notes)
    )


def _read_offsets(connection: Connection, state: ClusterState) -> Offsets:
    """Read the first and the end offsets of all partitions that have a leader."""
    led = [
        (name, number)
        for name, topic in state.topics.items()
        for number, leader in enumerate(topic.leaders)
        if leader >= 0
    ]
    if not led:
        return Offsets(seen_at_ms=0)
    asked = [TopicPartition(*place) for place in led]
    offsets = read_offsets(connection, asked, ["first", "end"])
    tiered = [place for place in led if _is_tiered(state, place)]
    if tiered:
        local = read_local_starts(connection, tiered)
        for place in tiered:
            offsets.first.pop(place, None)
        offsets.first |= local
    return offsets


def _is_tiered(state: ClusterState, place: Place) -> bool:
    return state.topics[place[0]].config.get("remote.storage.enable") == "true"


def read_local_starts(connection: Connection, places: Collection[Place]) -> dict[Place, int]:
    """Return the first offset that a leader has on its disk (KIP-405); nothing if none is told.

    Of a tiered topic, it is far above the first offset. librdkafka cannot ask for it.
    """
    from kafka.errors import KafkaError as ClientError
    from kafka.protocol.consumer.offsets import OffsetSpec
    from kafka.structs import TopicPartition as ClientPartition

    asked = {ClientPartition(*place): OffsetSpec.EARLIEST_LOCAL for place in places}
    try:
        told = ask_second_client(connection, lambda client: client.list_partition_offsets(asked))
    except (UntranslatableError, NoAnswerError, ClientError):
        return {}
    return {(place.topic, place.partition): found.offset for place, found in told.items()}
