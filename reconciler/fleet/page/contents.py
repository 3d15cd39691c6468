"""The content of the page: small frozen values, bounded for any size of the fleet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from reconciler.errors import Location, escape_unprintable
from reconciler.fleet.health import Health
from reconciler.model.plan import RefusedField
from reconciler.show.wording import view_configs, view_refused
from reconciler.units import count, describe_value

Row = Mapping[str, Any]
"""A row of a table, by the names of its query's columns."""

T_co = TypeVar("T_co", covariant=True)

MOST_CLUSTERS = 300
MOST_BROKERS = 3_000
"""Of all clusters together; a cluster has all of its brokers drawn, or none."""

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
class LoadShare:
    """A load of a broker, its share, and the band around it; no share if it takes no replicas.

    `aimed`: the balance of its cluster aims at the load. Units: bytes, or bytes per second.
    """

    amount: int
    share: int | None = None
    least: int | None = None
    most: int | None = None
    outside: bool = False
    aimed: bool = False

    @property
    def missed(self) -> bool:
        """Whether the broker is outside a band that its cluster aims at."""
        return self.outside and self.aimed

    @property
    def off(self) -> str:
        """How far from its share the broker is, as in +50 %."""
        if self.share is None:
            return ""
        percent = 100 * (self.amount - self.share) / self.share if self.share else 100
        return f"{round(percent):+d} %" if self.amount != self.share else "±0 %"


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """The load of a broker: preferred leaders, replicas, and their bytes if they are known.

    `bands` has its loads by name, as the audit compared them with its shares.
    """

    id: int
    rack: str | None
    leaders: int
    replicas: int
    alive: bool = True
    cordoned: bool = False
    size_bytes: int | None = None
    bands: Mapping[str, LoadShare] = field(default_factory=lambda: MappingProxyType({}))


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
class HealthTotals:
    """The current problems of the fleet, and the number of clusters that have each.

    Units: partitions; brokers; log directories; clusters. Only clusters that were read are counted.
    """

    offline: int = 0
    unwritable: int = 0
    under_replicated: int = 0
    brokers_down: int = 0
    directories_offline: int = 0
    clusters: Mapping[str, int] = field(default_factory=dict)


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
    """The entire content of a page. `made_at` is in UTC.

    `tables` has the rows of each table with a query, by its name.
    """

    collection: str
    made_at: str
    commit: str | None
    totals: FleetTotals
    clusters: Kept[ClusterLine]
    health: HealthTotals = field(default_factory=HealthTotals)
    drift: tuple[DriftPoint, ...] = ()
    audited: bool = False
    tables: Mapping[str, Kept[Row]] = field(default_factory=dict)

    def rows(self, table: str) -> tuple[Row, ...]:
        """Return the rows of a table with a query."""
        return self.tables[table].rows if table in self.tables else ()


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


def describe_change_row(row: Row) -> str:
    """Describe the change, or the refused change, of a row of `changes` in the words of a plan."""
    said = map(_say_refused, row["refused_change"] or ())
    return ", ".join(said) or ", ".join(_list_differences(row)) or ", ".join(row["steps"] or ())


def _say_refused(row: Row) -> str:
    where = Location(row["file"], row["line"])
    field = view_refused(RefusedField(row["path"], row["before"], row["after"], where))
    return f"{field.name} {field.words} ({field.place})"


def _list_differences(row: Row) -> Iterator[str]:
    before, after = row["partitions_before"], row["partitions_after"]
    if before is None and after is not None:
        yield count(after, "partition")
    elif after is not None and before != after:
        yield f"{before:,} → {count(after, 'partition')}"
    if row["action"] == "delete":
        return
    for view in view_configs(row["config_before"] or {}, row["config_after"] or {}):
        yield f"{view.name} {view.show(view.after) if before is None else view.words}"
