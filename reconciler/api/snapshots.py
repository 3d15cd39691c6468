"""The state of a cluster, to keep in a file and to plan on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.api.connections import find_cluster, open_connection
from reconciler.files import write_file
from reconciler.model.growth import measure_rates

if TYPE_CHECKING:
    from reconciler.errors import SnapshotError
    from reconciler.model.cluster import ClusterState
    from reconciler.spec.estate import Estate


def take_snapshot(
    estate: Estate,
    cluster: str,
    *,
    bootstrap_servers: str | None = None,
    measure_s: float = 0,
) -> ClusterState:
    """Read an entire cluster: the configs, id and size of every topic, with or without a spec.

    Rates are the difference to an earlier reading, made `measure_s` before this one; without it,
    there are none. What groups commit is read only then.
    Errors: as `read_cluster`. Cost: 0.3 ms of CPU for each topic, twice with `measure_s`, and that
    time.
    """
    if measure_s:
        earlier = _read_state(estate, cluster, bootstrap_servers, reads=True)
        time.sleep(measure_s)
        later = _read_state(estate, cluster, bootstrap_servers, reads=True)
        state = measure_rates(earlier, later)
    else:
        state = _read_state(estate, cluster, bootstrap_servers, reads=False)
    return replace(state, kafka_version=find_cluster(estate, cluster).kafka_version)


def _read_state(
    estate: Estate, cluster: str, bootstrap_servers: str | None, *, reads: bool
) -> ClusterState:
    from reconciler.kafka.reader import KafkaReader

    with open_connection(estate, cluster, bootstrap_servers) as connection:
        reader = KafkaReader(connection)
        reader.check_rights([], for_apply=False)
        state = reader.read_traffic(reader.read_cluster(), reads=reads)
        state = replace(state, unoffered=reader.read_unoffered())
        return identify_topics(state, reader.read_topic_ids(state.topics.keys()))


def read_snapshot(path: str | Path) -> ClusterState:
    """Read a snapshot file: a state that needs no cluster. What it omits counts as healthy.

    Errors: SnapshotError with everything that is wrong with the file.
    """
    from reconciler.planfile.snapshot import decode_snapshot

    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise _refuse(path, f"cannot be read: {error.strerror}") from error
    return decode_snapshot(content, str(path))


def write_snapshot(state: ClusterState, path: str | Path) -> None:
    """Write a state as a snapshot file: completely, or not at all. Errors: SnapshotError."""
    from reconciler.planfile.snapshot import encode_snapshot

    try:
        write_file(Path(path), encode_snapshot(state))
    except OSError as error:
        raise _refuse(path, f"cannot be written: {error.strerror}") from error


def _refuse(path: str | Path, what: str) -> SnapshotError:
    from reconciler.planfile.snapshot import refuse_file

    return refuse_file(str(path), what)


def identify_topics(state: ClusterState, ids: Mapping[str, str]) -> ClusterState:
    """Add topic ids to a state. They are read separately, and only for topics that need them."""
    named = {name: replace(state.topics[name], topic_id=ids[name]) for name in ids}
    return replace(state, topics=MappingProxyType({**state.topics, **named}))
