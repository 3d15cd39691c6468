"""The state of a cluster, to keep in a file and to plan on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.api.connections import find_cluster, open_connection
from reconciler.files import write_file

if TYPE_CHECKING:
    from reconciler.model.cluster import ClusterState
    from reconciler.spec.estate import Estate


def take_snapshot(
    estate: Estate, cluster: str, *, bootstrap_servers: str | None = None, measure_s: float = 0
) -> ClusterState:
    """Read an entire cluster: the configs, id and size of every topic, with or without a spec.

    `measure_s` is the time over which write rates are measured; without one, there are none.
    Errors: as `read_cluster`. Cost: 0.3 ms of CPU for each topic, and that time.
    """
    from reconciler.kafka.reader import KafkaReader

    with open_connection(estate, cluster, bootstrap_servers) as connection:
        reader = KafkaReader(connection)
        reader.check_rights([], for_apply=False)
        state = reader.read_sizes(reader.read_cluster(), interval_s=measure_s)
        state = replace(state, unoffered=reader.read_unoffered())
        state = identify_topics(state, reader.read_topic_ids(state.topics.keys()))
    return replace(state, kafka_version=find_cluster(estate, cluster).kafka_version)


def read_snapshot(path: str | Path) -> ClusterState:
    """Read a snapshot file: a state that needs no cluster. What it omits counts as healthy.

    Errors: SnapshotError with everything that is wrong with the file.
    """
    from reconciler.planfile.snapshot import decode_snapshot, refuse_file

    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise refuse_file(str(path), f"cannot be read: {error.strerror}") from error
    return decode_snapshot(content, str(path))


def write_snapshot(state: ClusterState, path: str | Path) -> None:
    """Write a state as a snapshot file: completely, or not at all. Errors: SnapshotError."""
    from reconciler.planfile.snapshot import encode_snapshot, refuse_file

    try:
        write_file(Path(path), encode_snapshot(state))
    except OSError as error:
        raise refuse_file(str(path), f"cannot be written: {error.strerror}") from error


def identify_topics(state: ClusterState, ids: Mapping[str, str]) -> ClusterState:
    """Add topic ids to a state. They are read separately, and only for topics that need them."""
    named = {name: replace(state.topics[name], topic_id=ids[name]) for name in ids}
    return replace(state, topics=MappingProxyType({**state.topics, **named}))
