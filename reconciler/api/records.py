"""The record of an apply: author, plan, cluster and result.

The last line contains everything in the first line, so one line is enough. It has no config value
and no property of the client, which could be secret.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from reconciler.api.authors import Author, find_author

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.apply import Ending
    from reconciler.model import Plan

MOST_TOPICS = 1_000
"""The limit of topics in a record: it stays well below the default max.message.bytes of 1 MiB."""


@dataclass(frozen=True, slots=True)
class ApplyRecord:
    """One run of apply. `steps` counts what is planned, `refused` the topics that are refused."""

    started: datetime
    author: Author
    version: str
    cluster: str
    cluster_id: str | None
    fingerprint: str
    commit: str | None
    steps: Mapping[str, int] = field(default_factory=dict)
    refused: int = 0

    @property
    def planned(self) -> int:
        """Return the number of planned steps."""
        return sum(self.steps.values())

    def begin(self) -> dict[str, Any]:
        """Return the start of the run as a JSON object."""
        return {"at": self.started.isoformat(), "type": "apply", **self._tell()}

    def end(self, ending: Ending) -> dict[str, Any]:
        """Return the end of the run as a JSON object."""
        now = datetime.now(UTC)
        outcomes = ending.outcomes
        # Outcomes that differ from the plan come first, so that the limit does not omit them.
        shown = sorted(outcomes, key=lambda outcome: (outcome.kind.is_done, outcome.topic))
        return {
            "at": now.isoformat(),
            "type": "applied",
            "started": self.started.isoformat(),
            "duration_s": round((now - self.started).total_seconds(), 3),
            **self._tell(),
            "ended": str(ending.ended),
            "error": ending.error,
            "outcomes": dict(sorted(Counter(str(outcome.kind) for outcome in outcomes).items())),
            "topics": {outcome.topic: str(outcome.kind) for outcome in shown[:MOST_TOPICS]},
            "topics_left_out": max(0, len(shown) - MOST_TOPICS),
            **({"moves": asdict(ending.moves)} if ending.moves else {}),
        }

    def _tell(self) -> dict[str, Any]:
        return {
            **asdict(self.author),
            "reconciler": self.version,
            "cluster": self.cluster,
            "cluster_id": self.cluster_id,
            "fingerprint": self.fingerprint,
            "commit": self.commit,
            "steps": dict(self.steps),
            "refused": self.refused,
        }


def begin_record(plan: Plan) -> ApplyRecord:
    """Begin the record of an apply, now."""
    from reconciler.plan import fingerprint_plan, steps_of

    steps = Counter(str(step.verb) for topic in plan.topics for step in steps_of(topic))
    return ApplyRecord(
        started=datetime.now(UTC),
        author=find_author(),
        version=version("kafka-reconciler"),
        cluster=plan.cluster,
        cluster_id=plan.cluster_id,
        fingerprint=fingerprint_plan(plan),
        commit=plan.commit.sha if plan.commit else None,
        steps=dict(sorted(steps.items())),
        refused=sum(bool(topic.refusals) for topic in plan.topics),
    )
