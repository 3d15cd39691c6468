"""Stage 2: the differences between each spec and its cluster, and the refusals.

Belongs here: comparing fields, and refusing what cannot or must not be done. Every difference is
reported. Forbidden here: deciding where replicas go, and all I/O.
"""

from reconciler.diff.brokers import eligible_brokers
from reconciler.diff.deletions import describe_time, object_to_use
from reconciler.diff.drains import Drain, keep_drained_topics, raise_internal_topics
from reconciler.diff.fields import (
    NOT_MANAGED_KEYS,
    ConfigEquality,
    Doubts,
    FieldChange,
    desired_partitions,
    desired_replication,
    drop_overrides,
    list_doubts,
    managed_overrides,
)
from reconciler.diff.gradual import GRADUAL_KEYS, list_limits
from reconciler.diff.moves import MoveDiff, diff_moves
from reconciler.diff.moving import (
    PLAN_MOVES,
    allow_moves,
    object_to_min_insync,
    read_min_insync,
)
from reconciler.diff.refusals import note_left_alone
from reconciler.diff.topics import TopicDiff, diff_topics, list_left_alone

__all__ = [
    "GRADUAL_KEYS",
    "NOT_MANAGED_KEYS",
    "PLAN_MOVES",
    "ConfigEquality",
    "Doubts",
    "Drain",
    "FieldChange",
    "MoveDiff",
    "TopicDiff",
    "allow_moves",
    "describe_time",
    "desired_partitions",
    "desired_replication",
    "diff_moves",
    "diff_topics",
    "drop_overrides",
    "eligible_brokers",
    "keep_drained_topics",
    "list_doubts",
    "list_left_alone",
    "list_limits",
    "managed_overrides",
    "note_left_alone",
    "object_to_min_insync",
    "object_to_use",
    "raise_internal_topics",
    "read_min_insync",
]
