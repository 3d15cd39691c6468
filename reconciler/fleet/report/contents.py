"""What a report says: small frozen values, bounded however large the fleet is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)

MOST_CLUSTERS = 300
MOST_BROKERS = 3_000
"""Of all clusters together; a cluster has all of its brokers drawn, or none."""

MOST_ROWS = 500
"""In each table of topics, changes or findings."""

MOST_COLLECTIONS = 60
MOST_LETTERS = 400
"""Of any text that the lake holds."""


class Standing(StrEnum):
    """How a cluster is doing, worst first."""

    UNREADABLE = "unreadable"
    UNPLANNED = "not planned"
    REFUSED = "refused"
    PENDING = "changes pending"
    SETTLED = "as specified"


@dataclass(frozen=True, slots=True)
class Kept(Generic[T_co]):
    """The first rows of many, and how many there are in all."""

    rows: tuple[T_co, ...] = ()
    total: int = 0

    @property
    def left_out(self) -> int:
        """How many rows are not there."""
        return max(self.total - len(self.rows), 0)


@dataclass(frozen=True, slots=True)
class Planned:
    """What a cluster's plan comes to. Skews are max − min over its brokers, None where unknown."""

    changed: int
    refused: int
    unchanged: int
    unmanaged: int
    leaders_before: int | None = None
    leaders_after: int | None = None
    replicas_before: int | None = None
    replicas_after: int | None = None

    @property
    def drift(self) -> int:
        """Topics that are not as specified."""
        return self.changed + self.refused


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """What a broker holds: partitions that it should lead, and replicas."""

    id: int
    rack: str | None
    leaders: int
    replicas: int
    alive: bool = True
    cordoned: bool = False


@dataclass(frozen=True, slots=True)
class ClusterLine:
    """One cluster: what was read, what its plan says, how it drifted.

    `trouble` says why it was not read, or not planned, by rule and in words. `brokers` is empty
    where they are left out. `drifts` is a number for each collection of the report, None where
    the cluster was not planned in it.
    """

    name: str
    read: bool
    trouble: tuple[str, str] | None = None
    synthetic: bool = False
    kafka_version: str | None = None
    topics: int = 0
    partitions: int = 0
    broker_count: int = 0
    rack_count: int = 0
    brokers: tuple[BrokerLoad, ...] = ()
    plan: Planned | None = None
    drifts: tuple[int | None, ...] = ()

    @property
    def standing(self) -> Standing:
        """How it is doing."""
        if not self.read:
            return Standing.UNREADABLE
        if self.plan is None:
            return Standing.UNPLANNED
        if self.plan.refused:
            return Standing.REFUSED
        return Standing.PENDING if self.plan.changed else Standing.SETTLED


@dataclass(frozen=True, slots=True)
class DriftPoint:
    """What the plans of one collection came to, over all clusters."""

    collection: str
    planned: int
    unplanned: int
    changed: int
    refused: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class TopicSkew:
    """How unevenly a topic lies: max − min over the brokers that are alive.

    `action` is what the plan does about the topic, if it does anything.
    """

    cluster: str
    topic: str
    partitions: int
    leader_skew: int
    replica_skew: int
    action: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One topic that a plan changes or refuses."""

    cluster: str
    topic: str
    action: str
    what: str
    risks: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    place: str = ""


@dataclass(frozen=True, slots=True)
class FindingLine:
    """One finding of an audit."""

    cluster: str
    topic: str
    rule: str
    severity: str
    evidence: str
    what: str
    way_out: str


@dataclass(frozen=True, slots=True)
class RuleCount:
    """How often a rule was found broken."""

    rule: str
    severity: str
    findings: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found: every rule counted, and the gravest findings."""

    rules: tuple[RuleCount, ...] = ()
    findings: Kept[FindingLine] = Kept()


@dataclass(frozen=True, slots=True)
class Totals:
    """The fleet in numbers. Plans count as None where there are none."""

    clusters: int
    read: int
    synthetic: int
    brokers: int
    topics: int
    partitions: int
    plan: Planned | None = None
    planned: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """All that a page shows. `made_at` is ISO 8601, UTC; `audit` is None where there was none."""

    collection: str
    made_at: str
    commit: str | None
    totals: Totals
    clusters: Kept[ClusterLine]
    drift: tuple[DriftPoint, ...] = ()
    topics: Kept[TopicSkew] = Kept()
    changes: Kept[ChangeLine] = Kept()
    audit: Audit | None = None
