"""The rights of the two accounts of a cluster: which are needed, and which an account lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reconciler.api.applying import name_holder
from reconciler.api.connections import open_connection
from reconciler.model.rights import CheckedRights, Right, Task

if TYPE_CHECKING:
    from reconciler.spec.entry import ClusterEntry
    from reconciler.spec.estate import Estate


def choose_tasks(entry: ClusterEntry) -> tuple[Task, ...]:
    """Return what clusters.yaml lets plans and applies of a cluster do.

    Elections are asked for by a command alone, so they are not among these.
    """
    wanted = {
        Task.PLAN: True,
        Task.APPLY: True,
        Task.AUDIT: entry.audit_topic is not None,
        Task.DELETE: bool(entry.guards.max_deletes),
        Task.MOVES: entry.moves is not None,
    }
    return tuple(task for task, is_wanted in wanted.items() if is_wanted)


def check_grants(
    estate: Estate,
    cluster: str,
    rights: Mapping[Task, Sequence[Right]],
    *,
    bootstrap_servers: str | None = None,
) -> Mapping[Task, CheckedRights]:
    """Ask a cluster which of the rights the account of this run holds, and change nothing.

    Rights on all topics are asked for on those of the estate. A lock is taken, and left at once.
    Errors: UsageError for a cluster that the estate does not name; ClusterError.
    """
    from reconciler.kafka.grants import check_rights

    names = {spec.name for spec in estate.topics_for(cluster)}
    holder = name_holder()
    with open_connection(estate, cluster, bootstrap_servers) as connection:
        return {
            task: check_rights(connection, needed, names, holder) for task, needed in rights.items()
        }
