"""What identifies a cluster: the id that its brokers report, or the address, if they report none.

Both are one text, the `cluster_id` of states, plans, snapshots, records and clusters.yaml. So
whatever compares clusters compares these texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

BOOTSTRAP = "bootstrap:"
"""What the identity of a cluster without an id starts with. No id of Kafka has a colon."""

_DEFAULT_PORT = 9092  # of librdkafka
_DIGITS = 16


def identify_cluster(reported: str | None, servers: Iterable[str], *, is_secret: bool) -> str:
    """Return what identifies a cluster that was reached at some bootstrap servers.

    In: `servers`, as `host:port` or `protocol://host:port`; `is_secret`: nobody may see them.
    Returns: the id that it reports; without one, `bootstrap:host:port,…` in order, or a digest.
    """
    if reported:
        return reported
    address = ",".join(sorted(set(map(_spell_server, servers))))
    if is_secret:
        address = f"sha256-{sha256(address.encode()).hexdigest()[:_DIGITS]}"
    return BOOTSTRAP + address


def find_address(cluster_id: str | None) -> str | None:
    """Return the address by which a cluster without an id is known; None if it has an id."""
    if cluster_id is None or not cluster_id.startswith(BOOTSTRAP):
        return None
    return cluster_id.removeprefix(BOOTSTRAP)


def say_identity(cluster_id: str | None) -> str:
    """Say what identifies a cluster, next to its name; "" if that is not known."""
    address = find_address(cluster_id)
    return cluster_id or "" if address is None else f"no cluster id, at {address}"


def name_cluster(cluster_id: str | None) -> str:
    """Name a cluster by what identifies it, in a sentence."""
    address = find_address(cluster_id)
    return f"cluster {cluster_id}" if address is None else f"the cluster without an id at {address}"


def _spell_server(server: str) -> str:
    host = server.rpartition("://")[2].strip().lower()
    has_port = host.rpartition(":")[2].isdigit() and (host.count(":") == 1 or "]:" in host)
    return host if has_port else f"{host}:{_DEFAULT_PORT}"
