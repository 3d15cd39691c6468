"""Reassignments under way, which librdkafka cannot list: asked for through kafka-python.

Imported and connected only where a topic's rows look like a move: see decision 0002.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconciler.errors import ClusterError, Finding, Severity
from reconciler.kafka.errors import UntranslatableError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconciler.kafka.connection import Connection
    from reconciler.model import Replicas

TIMEOUT_MS = 10_000

Moving = dict[str, dict[int, "Replicas"]]


def read_reassignments(
    connection: Connection, doubtful: Collection[str]
) -> tuple[Moving, list[Finding]]:
    """Return the target replicas of every partition under reassignment, by topic and partition.

    `doubtful`: the topics that may be on the move; without any, nothing is asked.
    Returns: also a warning, where nobody could be asked. Errors: ClusterError for a lack of rights.
    Cost: 0.2 s, most of it the import and the first connection.
    """
    if not doubtful:
        return {}, []
    from kafka.errors import ClusterAuthorizationFailedError, KafkaError

    from reconciler.kafka.second_client import (
        UnansweredError,
        ask_second_client,
        describe_error,
    )

    try:
        listed = ask_second_client(connection, _list_all)
    except ClusterAuthorizationFailedError:
        what = f"replicas of {_name(doubtful)} may be on the move, and the account may not see that"
        way_out = "grant it Describe on the cluster"
        raise ClusterError([Finding("cluster-rights", what, way_out)]) from None
    except (UntranslatableError, UnansweredError) as error:
        return {}, [_warn(str(error), doubtful)]
    except KafkaError as error:
        return {}, [_warn(describe_error(error), doubtful)]
    moving: Moving = {}
    for (topic, partition), lists in listed.items():
        leaving = set(lists["removing_replicas"])
        target = tuple(broker for broker in lists["replicas"] if broker not in leaving)
        moving.setdefault(topic, {})[partition] = target
    return moving, []


def _list_all(client: Any) -> Mapping[tuple[str, int], Mapping[str, list[int]]]:
    listed: Mapping[tuple[str, int], Mapping[str, list[int]]]
    listed = client.list_partition_reassignments(timeout_ms=TIMEOUT_MS)
    return listed


def _name(topics: Collection[str]) -> str:
    return min(topics) + (f" and {len(topics) - 1} more" if len(topics) > 1 else "")


def _warn(reason: str, doubtful: Collection[str]) -> Finding:
    what = f"replicas of {_name(doubtful)} may be on the move, and that cannot be seen: {reason}"
    way_out = "see that none is under way before applying: kafka-reassign-partitions --list"
    return Finding("reassignments-unseen", what, way_out, severity=Severity.WARNING)
