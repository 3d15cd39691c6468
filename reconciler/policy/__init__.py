"""What a team allows its topics to be: limits, and rules of its own in CEL.

Belongs here: policies as values, how one lies over another, and their judgement of a spec or of a
change. Forbidden here: files, clusters, and any knowledge of Kafka's configs beyond their names.
"""

from reconciler.policy.facts import Change, Cluster, Image
from reconciler.policy.limits import check_limits, read_limit
from reconciler.policy.patterns import NamePattern, PatternError, compile_pattern
from reconciler.policy.policy import (
    Bounds,
    Limit,
    Policy,
    Rule,
    Subject,
    lay_policy,
)
from reconciler.policy.rules import Judge

__all__ = [
    "Bounds",
    "Change",
    "Cluster",
    "Image",
    "Judge",
    "Limit",
    "NamePattern",
    "PatternError",
    "Policy",
    "Rule",
    "Subject",
    "check_limits",
    "compile_pattern",
    "lay_policy",
    "read_limit",
]
