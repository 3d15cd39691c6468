"""How a rehearsal went: the value that every report is made from, and its JSON."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from reconciler.model import OutcomeKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.errors import Finding
    from reconciler.model import Balance, Outcome, Plan, PlannedTopic
    from reconciler.rehearse.scene import Scene

FORMAT_VERSION = "1.0"
_GOOD = (OutcomeKind.DONE, OutcomeKind.ALREADY_DONE)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What became of a plan on a throwaway cluster.

    `differences` say what is found otherwise than planned, by topic; `pending` names the topics
    that a second plan would change, where it was `planned_again`, or the same plan applied again.
    Balances are measured on what the brokers show. `seconds` are those of each stage, in order.
    """

    plan: Plan
    scene: Scene
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
            and all(outcome.kind in _GOOD for outcome in self.outcomes)
            and not self.differences
            and not self.unexpected
        )

    @property
    def continued(self) -> tuple[str, ...]:
        """The pending topics that the plan said to be: it leaves steps of retention."""
        announced = {
            topic.name
            for topic in self.plan.topics
            if any(note.rule == "gradual-step" for note in topic.notes)
        }
        return tuple(name for name in self.pending if name in announced & self._settled)

    @property
    def unexpected(self) -> tuple[str, ...]:
        """The pending topics that were done, and of which nobody said that more is to come."""
        return tuple(
            name for name in self.pending if name in self._settled and name not in self.continued
        )

    @property
    def _settled(self) -> set[str]:
        return {outcome.topic for outcome in self.outcomes if outcome.kind in _GOOD}

    @property
    def beside(self) -> int:
        """How many topics stood by and were to stay as they are."""
        return len(self.scene.topics.keys() - {topic.name for topic in self.plan.topics})

    def count_outcomes(self) -> str:
        """Count outcomes by kind: 2 done, 1 failed."""
        counts = Counter(str(outcome.kind) for outcome in self.outcomes)
        return ", ".join(f"{number:,} {kind}" for kind, number in sorted(counts.items()))


def describe_change(topic: PlannedTopic) -> str:
    """Say in a few words what a plan does to a topic."""
    before, after = topic.before, topic.after
    if topic.refusals:
        return ""
    if after is None:
        return "delete"
    partitions = len(after.assignment)
    if before is None:
        return f"create, {partitions:,} × {len(after.assignment[0])}"
    said = []
    if partitions > len(before.assignment):
        said.append(f"{len(before.assignment):,} → {partitions:,} partitions")
    keys = {*before.config, *after.config}
    said += sorted(key for key in keys if before.config.get(key) != after.config.get(key))
    return ", ".join(said)


def encode_rehearsal(rehearsal: Rehearsal) -> str:
    """Encode a rehearsal as one line of JSON, keys sorted."""
    plan, scene = rehearsal.plan, rehearsal.scene
    document: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "succeeded": rehearsal.succeeded,
        "cluster": plan.cluster,
        "cluster_id": plan.cluster_id,
        "kafka_version": rehearsal.kafka_version,
        "scene": {
            "brokers": [{"id": broker.id, "rack": broker.rack} for broker in scene.brokers],
            "dead": scene.dead,
            "cordoned": scene.cordoned,
            "topics": len(scene.topics),
            "replicas": scene.replicas,
            "whole": scene.whole,
            "left_out": dict(scene.left_out),
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
