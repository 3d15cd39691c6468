"""Every rule that a finding can name: one table, from which docs/rules.md is generated.

A rule's id is part of the interface: it stays when the wording of its messages changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its id and what it protects from, in one sentence."""

    id: str
    says: str


# Files: what can be read at all (spec.load), and the form of its documents (spec.shape).
_FILES: tuple[Rule, ...] = ()

# Names of topics (spec.names).
_NAMES: tuple[Rule, ...] = ()

# Topic configs, one by one and across fields (spec.configs, spec.rules).
_CONFIGS: tuple[Rule, ...] = ()

# Replica assignments and counts that contradict each other (spec.rules).
_ASSIGNMENTS: tuple[Rule, ...] = ()

# Wishes held against a live cluster (diff).
_DIFF: tuple[Rule, ...] = (
    Rule("partitions-never-shrink", "Kafka cannot remove partitions, and no topic is recreated."),
)

# What a run needs of a cluster: reach, identity, rights (kafka).
_CLUSTER: tuple[Rule, ...] = ()

# Plan files, stale plans and outcomes (plan, apply).
_PLAN: tuple[Rule, ...] = ()

STAGES: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "files": _FILES,
        "names": _NAMES,
        "configs": _CONFIGS,
        "assignments": _ASSIGNMENTS,
        "differences": _DIFF,
        "cluster": _CLUSTER,
        "plan and apply": _PLAN,
    }
)

RULES: Mapping[str, Rule] = MappingProxyType(
    {rule.id: rule for rules in STAGES.values() for rule in rules}
)
