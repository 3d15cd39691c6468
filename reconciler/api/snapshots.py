"""The state of a cluster, to keep in a file and to plan on."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.api.connections import find_cluster, open_connection
from reconciler.files import write_file

if TYPE_CHECKING:
    from reconciler.errors import SnapshotError
    from reconciler.model.cluster import ClusterState
    from reconciler.model.moves import LoadKind
    from reconciler.spec.estate import Estate


def take_snapshot(
    estate: Estate,
    cluster: str,
    *,
    bootstrap_servers: str | None = None,
    measure_s: float = 0,
    since: Path | None = None,
) -> ClusterState:
    """Read an entire cluster: the configs, id and size of every topic, with or without a spec.

    Rates are the difference to an earlier reading, which is the snapshot file `since`, or is made
    `measure_s` before this one; without either, there are none. What groups commit is read only if
    it was read earlier.
    Errors: as `read_cluster` and `read_snapshot`; SnapshotError if `since` cannot be compared with
    the cluster. Cost: 0.3 ms of CPU for each topic, twice with `measure_s`, and that time.
    """
    from reconciler.model.moves import LoadKind

    earlier = None
    loads = {LoadKind.WRITE}  # the next snapshot may be compared with this one
    if since is not None:
        earlier = read_snapshot(since)
        _check_numbers(earlier, since)
        loads |= {LoadKind.READ} if earlier.committed_offsets is not None else set()
    elif measure_s:
        loads |= {LoadKind.READ}
        earlier = _read_state(estate, cluster, bootstrap_servers, loads)
        time.sleep(measure_s)
    state = _read_state(estate, cluster, bootstrap_servers, loads)
    if earlier is not None:
        if since is not None:
            _check_same(earlier, state, since)
        from reconciler.model.growth import measure_rates

        state = measure_rates(earlier, state)
    return replace(state, kafka_version=find_cluster(estate, cluster).kafka_version)


def _read_state(
    estate: Estate, cluster: str, bootstrap_servers: str | None, loads: Collection[LoadKind]
) -> ClusterState:
    from reconciler.kafka.reader import KafkaReader

    with open_connection(estate, cluster, bootstrap_servers) as connection:
        reader = KafkaReader(connection)
        reader.check_rights([], for_apply=False)
        state = reader.read_traffic(reader.read_cluster(), loads)
        state = replace(state, unoffered=reader.read_unoffered())
        return identify_topics(state, reader.read_topic_ids(state.topics.keys()))


def _check_numbers(earlier: ClusterState, path: Path) -> None:
    """Refuse a snapshot that has nothing to compare."""
    if not earlier.read_at_ms or not any(topic.logs for topic in earlier.topics.values()):
        what = "has no read_at, or no logs of topics, so there is nothing to compare with"
        raise _refuse(path, f"{what}; take one with `reconciler snapshot`, and wait")


def _check_same(earlier: ClusterState, state: ClusterState, path: Path) -> None:
    """Refuse a snapshot of another cluster, or one that is not earlier."""
    if (
        None not in (earlier.cluster_id, state.cluster_id)
        and earlier.cluster_id != state.cluster_id
    ):
        what = f"is of cluster {earlier.cluster_id}, and this is {state.cluster_id}"
        raise _refuse(path, what)
    if earlier.read_at_ms >= state.read_at_ms:
        what = "was read later than now, by the clock of this machine"
        raise _refuse(path, f"{what}; use one from before")


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
