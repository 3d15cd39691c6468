"""A team's policy for its topics: limits, and the team's rules in CEL.

Belongs here: policies as values, their merge, and their evaluation for a spec or a change.
Forbidden here: files, clusters, and any knowledge of Kafka's configs beyond their names.
"""

from reconciler.policy.facts import ChangeFacts, PolicyCluster, TopicFacts
from reconciler.policy.limits import check_limits, read_limit
from reconciler.policy.loosening import (
    compare_policies,
    name_some,
    narrow_patterns,
    widen_patterns,
    widen_words,
)
from reconciler.policy.patterns import NamePattern, PatternError, compile_pattern
from reconciler.policy.policy import (
    Bounds,
    Limit,
    Policy,
    PolicyRule,
    Subject,
    lay_policy,
)
from reconciler.policy.quotas import check_quotas
from reconciler.policy.rules import Judge

__all__ = [
    "Bounds",
    "ChangeFacts",
    "Judge",
    "Limit",
    "NamePattern",
    "PatternError",
    "Policy",
    "PolicyCluster",
    "PolicyRule",
    "Subject",
    "TopicFacts",
    "check_limits",
    "check_quotas",
    "compare_policies",
    "compile_pattern",
    "lay_policy",
    "name_some",
    "narrow_patterns",
    "read_limit",
    "widen_patterns",
    "widen_words",
]
