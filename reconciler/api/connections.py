"""The choice of a cluster of an estate, the connection to it, and the check of its id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from reconciler.errors import Finding
    from reconciler.kafka.connection import Connection
    from reconciler.model.cluster import ClusterState, TopicSpec
    from reconciler.spec.entry import ClusterEntry
    from reconciler.spec.estate import Estate


class SpecSource(Protocol):
    """The part of an estate that planning needs: an Estate has it, and the rows of a fleet."""

    @property
    def clusters(self) -> Mapping[str, ClusterEntry]:
        """The clusters by name."""
        ...

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about the estate."""
        ...

    def topics_for(self, cluster: str) -> tuple[TopicSpec, ...]:
        """Return the topics of a cluster, resolved and sorted by name."""
        ...


def find_cluster(estate: SpecSource, cluster: str) -> ClusterEntry:
    """Return a cluster's entry. Errors: UsageError that lists the known clusters."""
    from reconciler.errors import UsageError

    entry = estate.clusters.get(cluster)
    if entry is None:
        known = ", ".join(sorted(estate.clusters))
        raise UsageError(f"no cluster is called {cluster!r}; the estate knows: {known}")
    return entry


def open_connection(
    estate: Estate,
    cluster: str,
    bootstrap_servers: str | None = None,
    client: Mapping[str, str] | None = None,
) -> Connection:
    """Connect to a cluster of the estate; `sandbox` is the one that runs on this machine.

    `client` replaces the client properties of the estate.
    """
    from reconciler.kafka.connection import connect
    from reconciler.spec.entry import SANDBOX

    entry = find_cluster(estate, cluster)
    if client is not None:
        entry = replace(entry, client=client)
    if cluster == SANDBOX and bootstrap_servers is None:
        from reconciler.sandbox.control import require_sandbox

        bootstrap_servers = require_sandbox().bootstrap_servers
    return connect(entry, bootstrap_servers=bootstrap_servers)


def open_address(bootstrap_servers: str) -> Connection:
    """Connect to a cluster of no estate, without TLS and without an account."""
    from reconciler.errors import Location
    from reconciler.kafka.connection import connect
    from reconciler.spec.entry import ClusterEntry

    name = bootstrap_servers.partition(",")[0]
    entry = ClusterEntry(name, Location("--bootstrap-servers", 1))
    return connect(entry, bootstrap_servers=bootstrap_servers)


def refuse_other_cluster(entry: ClusterEntry, state: ClusterState) -> None:
    """Refuse a state of another cluster. A connection checks this itself, a snapshot cannot."""
    from reconciler.errors import ClusterError, Finding
    from reconciler.model.identity import name_cluster

    if entry.cluster_id and state.cluster_id and entry.cluster_id != state.cluster_id:
        found = name_cluster(state.cluster_id)
        what = f"this is {found}, and {entry.name} is expected to be {entry.cluster_id}"
        way_out = f"take a snapshot of {entry.name}, or correct cluster_id in clusters.yaml"
        raise ClusterError([Finding("cluster-id", what, way_out, entry.location)])
