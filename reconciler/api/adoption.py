"""Estates written for clusters and files that are there already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.api.connections import refuse_other_cluster
from reconciler.api.snapshots import read_snapshot, take_snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.adopt import Adoption
    from reconciler.model import ClusterState
    from reconciler.spec import Estate


def adopt_cluster(
    path: str | Path,
    cluster: str,
    *,
    bootstrap_servers: str | None = None,
    against: str | Path | None = None,
    assignments: bool = False,
    topics: str = "*",
    ignore: Sequence[str] = (),
) -> Adoption:
    """Make the texts of an estate whose plan on a cluster is empty; nothing is written yet.

    `path` may hold an estate, whose topics are kept and amended; `against` reads a snapshot;
    `ignore` leaves topics out, here and from now on.
    Errors: as `load_estate` and `take_snapshot`; UsageError where the cluster's address is unknown.
    """
    from reconciler import adopt as stage

    request = stage.Request(cluster, topics, assignments, bootstrap_servers, ignore=tuple(ignore))
    with stage.open_staging(Path(path)) as staging:
        estate = staging.change({})
        if against is not None:
            state = read_snapshot(against)
        else:
            state = _read_for_adoption(estate, Path(path), cluster, bootstrap_servers)
        if cluster in estate.clusters:
            refuse_other_cluster(estate.clusters[cluster], state)
        return stage.adopt_cluster(staging, state, request)


def convert_files(tool: str, source: str | Path, path: str | Path) -> Adoption:
    """Make the texts of an estate out of another tool's files; nothing is written yet."""
    from reconciler import adopt as stage

    with stage.open_staging(Path(path)) as staging:
        return stage.convert_files(staging, tool, Path(source))


def write_adoption(adoption: Adoption, path: str | Path) -> None:
    """Write the files of an adoption into its estate, each whole or not at all."""
    from reconciler.adopt import write_texts

    write_texts(Path(path), adoption.texts)


def _read_for_adoption(
    estate: Estate, path: Path, cluster: str, bootstrap_servers: str | None
) -> ClusterState:
    """Read a cluster whole, be it one that clusters.yaml does not have yet."""
    from reconciler.errors import Location, UsageError
    from reconciler.kafka import KafkaReader, connect
    from reconciler.spec import ClusterEntry

    if cluster in estate.clusters:
        return take_snapshot(estate, cluster, bootstrap_servers=bootstrap_servers)
    if bootstrap_servers is None:
        way_out = "name it there, or say --bootstrap-servers or --against"
        raise UsageError(f"clusters.yaml has no cluster {cluster!r}; {way_out}")
    entry = ClusterEntry(cluster, Location(str(path / "clusters.yaml"), 1))
    with connect(entry, bootstrap_servers=bootstrap_servers) as connection:
        reader = KafkaReader(connection)
        reader.check_rights([], for_apply=False)
        return reader.read_cluster()
