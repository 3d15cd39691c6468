"""Reassignments under way, which librdkafka cannot list: asked for through kafka-python.

Imported and connected only where a replica is out of sync: without one, none can be under way.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from reconciler.errors import ClusterError, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from confluent_kafka import Node

    from reconciler.kafka.connection import Connection
    from reconciler.model import Replicas

TIMEOUT_MS = 10_000

Moving = dict[str, dict[int, "Replicas"]]


def read_reassignments(
    connection: Connection, nodes: Sequence[Node], behind: Collection[str]
) -> tuple[Moving, list[Finding]]:
    """Return the target replicas of every partition under reassignment, by topic and partition.

    `behind`: the topics with replicas out of sync; without any, nothing is asked.
    Returns: also a warning, where nobody could be asked. Errors: ClusterError for a lack of rights.
    """
    if not behind:
        return {}, []
    from reconciler.kafka.second_client import UntranslatableError, translate_settings

    try:
        properties = translate_settings(connection.settings, nodes)
        listed = _list_all(properties)
    except _DeniedError:
        what = "replicas are out of sync, and the account may not see reassignments"
        way_out = "grant it Describe on the cluster"
        raise ClusterError([Finding("cluster-rights", what, way_out)]) from None
    except (UntranslatableError, _UnansweredError) as error:
        return {}, [_warn(connection.settings.redact(str(error)), behind)]
    moving: Moving = {}
    for (topic, partition), lists in listed.items():
        leaving = set(lists["removing_replicas"])
        target = tuple(broker for broker in lists["replicas"] if broker not in leaving)
        moving.setdefault(topic, {})[partition] = target
    return moving, []


class _DeniedError(Exception):
    """The account may not list reassignments."""


class _UnansweredError(Exception):
    """Reassignments could not be listed; says why."""


def _list_all(properties: Mapping[str, Any]) -> Mapping[tuple[str, int], Mapping[str, list[int]]]:
    """List what is under way. Cost: 0.2 s, most of it the import and the first connection."""
    from kafka.admin import KafkaAdminClient
    from kafka.errors import ClusterAuthorizationFailedError, KafkaError

    logging.getLogger("kafka").addHandler(logging.NullHandler())
    client = None
    try:
        client = KafkaAdminClient(**properties)
        listed: Mapping[tuple[str, int], Mapping[str, list[int]]]
        listed = client.list_partition_reassignments(timeout_ms=TIMEOUT_MS)
    except ClusterAuthorizationFailedError:
        raise _DeniedError from None
    except (KafkaError, OSError, ValueError) as error:
        raise _UnansweredError(f"{type(error).__name__}: {error}") from None
    finally:
        if client is not None:
            client.close()
    return listed


def _warn(reason: str, behind: Collection[str]) -> Finding:
    first = min(behind)
    others = f" and {len(behind) - 1} more" if len(behind) > 1 else ""
    blind = f"reassignments cannot be seen: {reason}"
    what = f"replicas of {first}{others} are out of sync, and {blind}"
    way_out = "see that none is under way before applying: kafka-reassign-partitions --list"
    return Finding("reassignments-unseen", what, way_out, severity=Severity.WARNING)
