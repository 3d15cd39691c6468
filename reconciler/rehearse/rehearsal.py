"""The result of a rehearsal: the value behind every report, and its JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from reconciler.errors import Finding
from reconciler.model.outcomes import Outcome
from reconciler.model.plan import Balance, Plan
from reconciler.rehearse.setup import Setup

FORMAT_VERSION = "1.0"


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The result of a plan on a throwaway cluster.

    `differences` holds what differs from the plan, by topic; `pending` names the topics
    that a second plan would change, if it was `planned_again`, or the same plan applied again.
    Balances are measured on what the brokers show. `seconds` are those of each stage, in order.
    """

    plan: Plan
    setup: Setup
    kafka_version: str
    outcomes: tuple[Outcome, ...]
    differences: Mapping[str, tuple[str, ...]]
    pending: tuple[str, ...]
    balance_before: Balance | None
    balance_after: Balance | None
    seconds: Mapping[str, float]
    planned_again: bool = False
    notes: tuple[Finding, ...] = ()
    interrupted: bool = False

    @property
    def succeeded(self) -> bool:
        """Everything was done, is found as planned, and nothing unexpected is left to do."""
        return (
            not self.interrupted
            and all(outcome.kind.is_done for outcome in self.outcomes)
            and not self.differences
            and not self.unexpected
        )

    @property
    def continued(self) -> tuple[str, ...]:
        """The pending topics that the plan announced: it lowers their retention in steps."""
        announced = {
            topic.name
            for topic in self.plan.topics
            if any(note.rule == "gradual-step" for note in topic.notes)
        }
        return tuple(name for name in self.pending if name in announced & self._settled)

    @property
    def unexpected(self) -> tuple[str, ...]:
        """The pending topics that were done, although the plan did not announce further steps."""
        return tuple(
            name for name in self.pending if name in self._settled and name not in self.continued
        )

    @property
    def _settled(self) -> set[str]:
        return {outcome.topic for outcome in self.outcomes if outcome.kind.is_done}

    @property
    def untouched(self) -> int:
        """The number of other topics, which must not change."""
        return len(self.setup.topics.keys() - {topic.name for topic in self.plan.topics})

    def count_outcomes(self) -> str:
        """Count outcomes by kind: 2 done, 1 failed."""
        counts = Counter(str(outcome.kind) for outcome in self.outcomes)
        return ", ".join(f"{number:,} {kind}" for kind, number in sorted(counts.items()))


def encode_rehearsal(rehearsal: Rehearsal) -> str:
    """Encode a rehearsal as one line of JSON, keys sorted."""
    plan, setup = rehearsal.plan, rehearsal.setup
    document: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "succeeded": rehearsal.succeeded,
        "cluster": plan.cluster,
        "cluster_id": plan.cluster_id,
        "kafka_version": rehearsal.kafka_version,
        "setup": {
            "brokers": [{"id": broker.id, "rack": broker.rack} for broker in setup.brokers],
            "dead": setup.dead,
            "cordoned": setup.cordoned,
            "topics": len(setup.topics),
            "replicas": setup.replicas,
            "complete": setup.complete,
            "left_out": dict(setup.left_out),
        },
        "outcomes": [asdict(outcome) for outcome in rehearsal.outcomes],
        "differences": dict(rehearsal.differences),
        "pending": rehearsal.pending,
        "balance_before": rehearsal.balance_before and asdict(rehearsal.balance_before),
        "balance_after": rehearsal.balance_after and asdict(rehearsal.balance_after),
        "seconds": {stage: round(took, 3) for stage, took in rehearsal.seconds.items()},
        "notes": [str(note) for note in rehearsal.notes],
    }
    return json.dumps(document, sort_keys=True, ensure_ascii=False) + "\n"
