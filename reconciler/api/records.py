"""The records of runs that change a cluster: author, cluster, what was asked, and the result.

The last line contains everything in the first line, so one line is enough. It has no config value
and no property of the client, which could be secret.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from reconciler.api.authors import Author, find_author

if TYPE_CHECKING:
    from reconciler.model.moves import MovesReading
    from reconciler.model.plan import Plan
    from reconciler.run.ending import Ending

MOST_TOPICS = 1_000
"""The limit of topics in a record: it stays well below the default max.message.bytes of 1 MiB."""

ControlVerb = Literal["pause", "rate", "cancel", "settle", "unthrottle"]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run that changes a cluster. `TYPES` are the types of its first and its last line."""

    TYPES: ClassVar[tuple[str, str]]

    started: datetime
    author: Author
    version: str
    cluster: str
    cluster_id: str | None

    def begin(self) -> dict[str, Any]:
        """Return the start of the run as a JSON object."""
        return {"at": self.started.isoformat(), "type": self.TYPES[0], **self._tell()}

    def end(self, ending: Ending) -> dict[str, Any]:
        """Return the end of the run as a JSON object."""
        now = datetime.now(UTC)
        outcomes = ending.outcomes
        # Outcomes that differ from the plan come first, so that the limit does not omit them.
        shown = sorted(outcomes, key=lambda outcome: (outcome.kind.is_done, outcome.topic))
        return {
            "at": now.isoformat(),
            "type": self.TYPES[1],
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
            **self._tell_what(),
        }

    def _tell_what(self) -> dict[str, Any]:
        """Return what the run was asked to do."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ApplyRecord(RunRecord):
    """One run of apply. `steps` counts what is planned, `refused` the topics that are refused."""

    TYPES: ClassVar[tuple[str, str]] = ("apply", "applied")

    fingerprint: str
    commit: str | None
    steps: Mapping[str, int] = field(default_factory=dict)
    refused: int = 0

    @property
    def planned(self) -> int:
        """Return the number of planned steps."""
        return sum(self.steps.values())

    def _tell_what(self) -> dict[str, Any]:
        return {
            "fingerprint": self.fingerprint,
            "commit": self.commit,
            "steps": dict(self.steps),
            "refused": self.refused,
        }


@dataclass(frozen=True, slots=True)
class ControlRecord(RunRecord):
    """One intervention in moves. `fingerprint` and `commit` are those of the plan of a cancel.

    `rate_before` is the cluster default of the throttle rates when it began, and `rate_after` what
    the verb makes of it; None is no limit.
    """

    TYPES: ClassVar[tuple[str, str]] = ("intervene", "intervened")

    verb: ControlVerb
    fingerprint: str | None
    commit: str | None
    rate_before: int | None
    rate_after: int | None

    def _tell_what(self) -> dict[str, Any]:
        return {
            "verb": self.verb,
            "fingerprint": self.fingerprint,
            "commit": self.commit,
            "rate_before": self.rate_before,
            "rate_after": self.rate_after,
        }


def begin_record(plan: Plan) -> ApplyRecord:
    """Begin the record of an apply, now."""
    from reconciler.model.steps import steps_of
    from reconciler.planfile.codec import fingerprint_plan

    steps = Counter(str(step.verb) for topic in plan.topics for step in steps_of(topic))
    if plan.moves and plan.moves.cordons:
        steps["cordon"] = len(plan.moves.cordons)
    return ApplyRecord(
        **_begin(plan.cluster, plan.cluster_id),
        fingerprint=fingerprint_plan(plan),
        commit=plan.commit.sha if plan.commit else None,
        steps=dict(sorted(steps.items())),
        refused=sum(bool(topic.refusals) for topic in plan.topics),
    )


def begin_control(
    verb: ControlVerb, reading: MovesReading, rate_after: int | None, plan: Plan | None = None
) -> ControlRecord:
    """Begin the record of an intervention in the moves of a reading, now."""
    from reconciler.model.moves import UNLIMITED
    from reconciler.moves.decisions import find_effect
    from reconciler.planfile.codec import fingerprint_plan

    def tell(rate: int | None) -> int | None:
        return None if rate is None or rate >= UNLIMITED else rate

    return ControlRecord(
        **_begin(reading.cluster, reading.cluster_id),
        verb=verb,
        fingerprint=fingerprint_plan(plan) if plan else None,
        commit=plan.commit.sha if plan and plan.commit else None,
        rate_before=tell(find_effect(reading).rate),
        rate_after=tell(rate_after),
    )


def _begin(cluster: str, cluster_id: str | None) -> dict[str, Any]:
    return {
        "started": datetime.now(UTC),
        "author": find_author(),
        "version": version("kafka-reconciler"),
        "cluster": cluster,
        "cluster_id": cluster_id,
    }
