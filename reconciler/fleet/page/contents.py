"""The content of the page: small frozen values, bounded for any size of the fleet."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reconciler.errors import Location, escape_unprintable
from reconciler.fleet.health import Health
from reconciler.fleet.page.live import HealthTotals, ProblemLine, TopicLine, TrendPoint
from reconciler.model.plan import RefusedField
from reconciler.show.wording import view_configs, view_refused
from reconciler.units import count, describe_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    """The state of a cluster, worst first."""

    UNREADABLE = "unreadable"
    UNPLANNED = "not planned"
    REFUSED = "refused"
    PENDING = "changes pending"
    SETTLED = "as specified"


@dataclass(frozen=True, slots=True)
class Kept(Generic[T_co]):
    """The first rows of many, and the total number."""

    rows: tuple[T_co, ...] = ()
    total: int = 0

    @property
    def left_out(self) -> int:
        """The number of omitted rows."""
        return max(self.total - len(self.rows), 0)


@dataclass(frozen=True, slots=True)
class PlanTotals:
    """The result of a cluster's plan. Skews are max − min over its brokers, None if unknown."""

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
        """The number of topics that differ from their specs."""
        return self.changed + self.refused


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """The load of a broker: preferred leaders, replicas, and their bytes if they are known."""

    id: int
    rack: str | None
    leaders: int
    replicas: int
    alive: bool = True
    cordoned: bool = False
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterLine:
    """One cluster: its state, its plan, and its drift over time.

    `trouble` is the rule and the reason if it was not read or not planned. `brokers` is empty if
    they are left out. `drifts` has a number per collection of the page, None without a plan.
    """

    name: str
    read: bool
    health: Health = Health.HEALTHY
    trouble: tuple[str, str] | None = None
    synthetic: bool = False
    kafka_version: str | None = None
    topics: int = 0
    partitions: int = 0
    broker_count: int = 0
    rack_count: int = 0
    brokers: tuple[BrokerLoad, ...] = ()
    plan: PlanTotals | None = None
    drifts: tuple[int | None, ...] = ()

    @property
    def standing(self) -> Standing:
        """The standing that matters most."""
        if not self.read:
            return Standing.UNREADABLE
        if self.plan is None:
            return Standing.UNPLANNED
        if self.plan.refused:
            return Standing.REFUSED
        return Standing.PENDING if self.plan.changed else Standing.SETTLED

    @property
    def state(self) -> Health | Standing:
        """What is worst: a cluster that is not healthy is never shown as specified."""
        return self.standing if not self.read or self.health is Health.HEALTHY else self.health


@dataclass(frozen=True, slots=True)
class DriftPoint:
    """The totals of the plans of one collection, over all clusters."""

    collection: str
    planned: int
    unplanned: int
    changed: int
    refused: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class TopicSkew:
    """The skew of a topic: max − min over the brokers that are alive.

    `action` is the action of the plan on the topic, if there is one.
    """

    cluster: str
    topic: str
    partitions: int
    leader_skew: int
    replica_skew: int
    action: str | None = None
    owner: str | None = None


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
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class MovesLine:
    """A cluster's plan of moves. `reasons` says what is refused, or why there is no plan.

    `seconds` and `peak_share` are None if they are unknown.
    """

    cluster: str
    topics: int
    partitions: int
    replicas: int
    copied_bytes: int
    seconds: int | None
    peak_share: float | None
    drained: tuple[int, ...] = ()
    refused: int = 0
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FindingLine:
    """One finding of an audit. `rank` is 1 for what comes first; None without ranks."""

    cluster: str
    topic: str
    rule: str
    severity: str
    evidence: str
    what: str
    way_out: str
    owner: str = ""
    cause: str = ""
    fixed_by: str = ""
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class RuleCount:
    """The number of findings of a rule, and of clusters with one."""

    rule: str
    severity: str
    findings: int
    clusters: int


@dataclass(frozen=True, slots=True)
class CauseCount:
    """The number of findings of a cause, and of clusters with one; the best rank first."""

    cause: str
    rank: int
    findings: int
    clusters: int


@dataclass(frozen=True, slots=True)
class MatrixLine:
    """The number of findings of one cluster, by rule."""

    cluster: str
    findings: int
    by_rule: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NextLeadersLine:
    """The most leaders that one broker takes over if a broker, or a rack, is lost; with bounds."""

    cluster: str
    most: int
    bound: int
    rack_most: int
    rack_bound: int


@dataclass(frozen=True, slots=True)
class AuditSummary:
    """The summary of an audit: counts by rule, the most severe findings, and next leaders.

    `next_leaders` and `causes` are empty for an audit of an earlier release.
    """

    rules: tuple[RuleCount, ...] = ()
    findings: Kept[FindingLine] = Kept()
    matrix: Kept[MatrixLine] = Kept()
    causes: tuple[CauseCount, ...] = ()
    next_leaders: Kept[NextLeadersLine] = Kept()


@dataclass(frozen=True, slots=True)
class FleetTotals:
    """The fleet in numbers. `plan` is None if no cluster is planned."""

    clusters: int
    read: int
    synthetic: int
    brokers: int
    topics: int
    partitions: int
    plan: PlanTotals | None = None
    planned: int = 0


@dataclass(frozen=True, slots=True)
class FleetPage:
    """The entire content of a page. `made_at` is in UTC; `audit` is None if there was none."""

    collection: str
    made_at: str
    commit: str | None
    totals: FleetTotals
    clusters: Kept[ClusterLine]
    health: HealthTotals = field(default_factory=HealthTotals)
    problems: Kept[ProblemLine] = Kept()
    inventory: Kept[TopicLine] = Kept()
    trend: tuple[TrendPoint, ...] = ()
    drift: tuple[DriftPoint, ...] = ()
    topics: Kept[TopicSkew] = Kept()
    changes: Kept[ChangeLine] = Kept()
    moves: Kept[MovesLine] = Kept()
    audit: AuditSummary | None = None


_COLLECTION = "%Y%m%dT%H%M%SZ"


def cut(text: str) -> str:
    """Limit the length of a text from the lake, and escape control characters."""
    said = escape_unprintable(text)
    return said if len(said) <= MOST_LETTERS else f"{said[: MOST_LETTERS - 1]}…"


def say_value(key: str, value: str) -> str:
    """Format the value of a config in its largest exact unit: 35d, not 3024000000."""
    return describe_value(key, value).partition(" (")[0] if value.isdigit() else value


def say_when(collection: str) -> str:
    """Format the time of a collection, as 2026-11-21 03:00 UTC."""
    return datetime.strptime(collection, _COLLECTION).strftime("%Y-%m-%d %H:%M UTC")  # noqa: DTZ007


def say_share(part: int, whole: int) -> str:
    """Format a share as a percentage; it is 0 or 100 only if that is exact."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    if 0 < part < whole:
        percent = min(max(percent, 0.1), 99.9)
    return f"{percent:.1f}".removesuffix(".0") + " %"


def describe_change_row(row: Mapping[str, Any]) -> str:
    """Describe the change, or the refused change, of a row of `changes` in the words of a plan."""
    said = map(_say_refused, row["refused_change"] or ())
    return ", ".join(said) or ", ".join(_list_differences(row)) or ", ".join(row["steps"] or ())


def _say_refused(row: Mapping[str, Any]) -> str:
    where = Location(row["file"], row["line"])
    field = view_refused(RefusedField(row["path"], row["before"], row["after"], where))
    return f"{field.name} {field.words} ({field.place})"


def _list_differences(row: Mapping[str, Any]) -> Iterator[str]:
    before, after = row["partitions_before"], row["partitions_after"]
    if before is None and after is not None:
        yield count(after, "partition")
    elif after is not None and before != after:
        yield f"{before:,} → {count(after, 'partition')}"
    if row["action"] == "delete":
        return
    for view in view_configs(row["config_before"] or {}, row["config_after"] or {}):
        yield f"{view.name} {view.show(view.after) if before is None else view.words}"
