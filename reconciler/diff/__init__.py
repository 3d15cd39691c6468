"""Stage 2: what each spec asks for that its cluster does not have yet, or must not be given.

Belongs here: comparing fields, and refusing what cannot or must not be done. Nothing that differs
is silent. Forbidden here: deciding where replicas go, and anything that reads the world.
"""

from reconciler.diff.brokers import eligible_brokers
from reconciler.diff.deletions import describe_time, object_to_use
from reconciler.diff.fields import (
    NOT_MANAGED_KEYS,
    FieldChange,
    managed_overrides,
    wished_partitions,
    wished_replication,
)
from reconciler.diff.offered import leave_unoffered, note_unoffered
from reconciler.diff.topics import ConfigEquality, TopicDiff, diff_topics

__all__ = [
    "NOT_MANAGED_KEYS",
    "ConfigEquality",
    "FieldChange",
    "TopicDiff",
    "describe_time",
    "diff_topics",
    "eligible_brokers",
    "leave_unoffered",
    "managed_overrides",
    "note_unoffered",
    "object_to_use",
    "wished_partitions",
    "wished_replication",
]
