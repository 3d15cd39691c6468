"""Moves of replicas: what a cluster allows, what a plan costs, and what is in flight, as read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from reconciler.errors import Finding
from reconciler.model.cluster import (
    Broker,
    LogDirectory,
    Place,
    RateSource,
    Reassignment,
    Replicas,
    Stored,
    ThrottleList,
    ThrottleRate,
    ThrottleSide,
)

MIN_INSYNC = "min.insync.replicas"
"""The topic config that a run of moves may lower while replicas are copied."""

KEEP_FREE_PERCENT = 15
"""A log directory with less free space fills, unless a cluster sets another limit."""


MovedRows = Mapping[Place, tuple[Replicas, Replicas]]
"""The replicas of the partitions that a plan moves, before and after it."""


class MoveKind(StrEnum):
    """A reason for moves that a cluster may allow."""

    REPLICATION = "replication"
    ASSIGNMENT = "assignment"
    DRAIN = "drain"
    REBALANCE = "rebalance"


@dataclass(frozen=True, slots=True)
class MovePolicy:
    """The moves that a cluster allows, and how fast: `moves` in clusters.yaml.

    `rate_bytes_per_s` limits what each broker sends, and what it receives; None is no limit.
    `at_once_cluster` and `at_once_broker` count the replicas that are copied at one time.
    `keep_free_percent` of every log directory stays free; a plan copies at most `max_bytes`.
    `balancer_off` states that nobody else moves replicas. `unthrottled`: brokers take neither rates
    nor lists of throttled replicas, so a run sets none.
    """

    allow: frozenset[MoveKind]
    rate_bytes_per_s: int | None
    at_once_cluster: int = 50
    at_once_broker: int = 5
    keep_free_percent: int = KEEP_FREE_PERCENT
    max_bytes: int | None = None
    balancer_off: bool = False
    unthrottled: bool = False


@dataclass(frozen=True, slots=True)
class BrokerTraffic:
    """The bytes that a plan copies to and from one broker. Only leaders send."""

    broker: int
    in_bytes: int
    out_bytes: int


@dataclass(frozen=True, slots=True)
class DirectoryPeak:
    """The usage of a log directory now, and the highest while a plan moves replicas. In bytes."""

    broker: int
    path: str
    total_bytes: int
    used_bytes: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a plan of moves costs, measured when the plan was made.

    `sizes` holds the bytes of each partition of the planned topics, -1 if unknown; `copied_bytes`
    leaves out the `unknown` partitions. `seconds` is the time at the rate of the plan, None if
    that is unlimited, too low to end, or if sizes are unknown. `default_rate` is a rate of the
    cluster that somebody else has set: the moves run under it. `least_rate` is the lowest rate, in
    bytes per second and broker, at which the moves end; None if write rates are unknown.
    """

    copied_bytes: int
    sizes: Mapping[str, tuple[int, ...]]
    unknown: int = 0
    seconds: int | None = None
    default_rate: int | None = None
    least_rate: int | None = None
    traffic: tuple[BrokerTraffic, ...] = ()
    peaks: tuple[DirectoryPeak, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedDrain:
    """A broker that is to hold no replica.

    `cordon`: the run cordons it first, so that Kafka places nothing on it (KIP-1066). `topics` and
    `replicas` count what leaves it, and `unnamed` the topics among these that no file names.
    `stays` holds the topics that keep replicas on it after the plan, with the reason.
    """

    broker: int
    cordon: bool = False
    topics: int = 0
    replicas: int = 0
    unnamed: tuple[str, ...] = ()
    stays: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class LoadKind(StrEnum):
    """What brokers are balanced by."""

    COUNT = "count"
    DISK = "disk"
    WRITE = "write"
    READ = "read"

    @property
    def is_on_replicas(self) -> bool:
        """Whether every replica bears an amount of it."""
        return self in (LoadKind.DISK, LoadKind.WRITE)

    @property
    def is_on_leaders(self) -> bool:
        """Whether a preferred leader bears an amount of it."""
        return self in (LoadKind.WRITE, LoadKind.READ)


LOAD_FIELDS: Mapping[LoadKind, str] = MappingProxyType(
    {
        LoadKind.DISK: "size_bytes",
        LoadKind.WRITE: "write_bytes_per_s",
        LoadKind.READ: "read_bytes_per_s",
    }
)
"""Where a topic has the amounts of a kind."""


@dataclass(frozen=True, slots=True)
class LoadAim:
    """What a balance by load aims at.

    A broker more than `within_percent` of its share away from it is to come within half of that.
    With `leaders_only`, nothing is copied. `brokers` are the only ones that take replicas, each up
    to its share; if it is empty, all that are able take some. At most `max_bytes` are copied. With
    `over_percent`, only brokers whose disks are fuller give replicas, and there are no shares.
    """

    by: tuple[LoadKind, ...] = (LoadKind.COUNT,)
    within_percent: float = 10.0
    leaders_only: bool = False
    brokers: frozenset[int] = frozenset()
    max_bytes: int | None = None
    over_percent: float | None = None


@dataclass(frozen=True, slots=True)
class AskedRebalance:
    """A rebalance that clusters.yaml asks for: what it aims at, and the date that ends it.

    From `until` on, a date such as 2026-12-13 in UTC, it asks for nothing.
    """

    aim: LoadAim
    until: str


@dataclass(frozen=True, slots=True)
class BrokerBand:
    """The load of one broker, before and after a plan, and the share that it should have.

    `low` and `high` bound the band that the plan aims at. Units: those of the load's kind.
    """

    broker: int
    share: int
    low: int
    high: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class LoadBand:
    """The loads of all brokers that can take replicas, of one kind.

    `of_leaders`: only preferred leaders bear the load, so another order of replicas moves it.
    `outside` names the brokers that were outside the threshold, which is why the plan acts.
    Units: replicas or leaders, bytes, or bytes per second.
    """

    by: LoadKind
    of_leaders: bool
    outside: tuple[int, ...]
    brokers: tuple[BrokerBand, ...]


@dataclass(frozen=True, slots=True)
class PlannedBalance:
    """A plan that brings the loads of brokers into a band around their shares.

    `within_percent` of its share is as far away as a broker may be. `least_bytes` bounds what any
    plan with these bands copies, and `least_leaders` the leaders that it changes; both are None if
    nothing is proven. `unreached` says that some broker stays outside. With `over_percent`, only
    brokers whose disks were fuller are to give replicas, until they are below it.
    """

    within_percent: float
    bands: tuple[LoadBand, ...]
    least_bytes: int | None = None
    least_leaders: int | None = None
    unreached: bool = False
    over_percent: float | None = None


@dataclass(frozen=True, slots=True)
class DirectoryAim:
    """What a plan between the log directories of brokers aims at.

    `evens`: a directory more than `within_percent` of its share away from it is to come within half
    of that. `emptied` are directories, by broker, that are to hold no replica. `brokers` are the
    only ones that are evened; if it is empty, all are. At most `max_bytes` are copied.
    """

    evens: bool
    within_percent: float = 10.0
    emptied: frozenset[tuple[int, str]] = frozenset()
    brokers: frozenset[int] = frozenset()
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DirectoryCopy:
    """A replica that a plan moves between log directories, and its bytes when it was planned."""

    topic: str
    partition: int
    broker: int
    source: str
    target: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DirectoryBand:
    """The bytes of the replicas in a log directory, before and after a plan, and its share.

    `low` and `high` bound the band that the plan aims at. `outside`: it was further from its share
    than is allowed, or is to be emptied, which is why the plan acts. Units: bytes.
    """

    broker: int
    path: str
    share: int
    low: int
    high: int
    before: int
    after: int
    outside: bool


@dataclass(frozen=True, slots=True)
class PlannedDirectories:
    """A plan that moves replicas between the log directories of their brokers.

    `bands` has the directories of each broker of which one was outside, and `examined` counts the
    brokers with several directories. `least_bytes` bounds what any plan with these bands copies.
    `unreached` says that a directory stays outside. `emptied` has those that are to hold nothing,
    by broker.
    """

    within_percent: float
    examined: int
    bands: tuple[DirectoryBand, ...]
    copies: tuple[DirectoryCopy, ...]
    least_bytes: int
    unreached: bool = False
    emptied: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedMoves:
    """The limits and the cost of a plan that moves replicas.

    `replicas` counts those to be copied, and `least_replicas` is the proven minimum.
    `leader_changes` counts partitions whose preferred leader changes. `min_insync` holds, by
    topic, the value that min.insync.replicas has while replicas are copied: without it brokers
    refuse acks=all meanwhile (KAFKA-21110). `drains` lists the brokers to
    empty. `balance` is there if the plan was made by load, and `directories` if it moves replicas
    between the log directories of their brokers, which `replicas` does not count. `made_by` is the
    command that makes the same plan, without its cluster and topics. `policy`, `min_insync` and the
    drained brokers are part of the fingerprint, the rest is not.
    """

    policy: MovePolicy
    replicas: int
    least_replicas: int
    leader_changes: int
    min_insync: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    forecast: Forecast | None = None
    drains: tuple[PlannedDrain, ...] = ()
    made_by: str = "plan --moves"
    balance: PlannedBalance | None = None
    directories: PlannedDirectories | None = None

    @property
    def copies_data(self) -> bool:
        """Whether it copies replicas, to other brokers or to other directories."""
        return bool(self.replicas or (self.directories and self.directories.copies))

    @property
    def cordons(self) -> frozenset[int]:
        """The brokers that a run cordons."""
        return frozenset(drain.broker for drain in self.drains if drain.cordon)


UNLIMITED = 2**63 - 2
"""A rate that limits nothing, for the leaders of a DefaultRate; followers get Kafka's own default.

A default that is missing may have been lost, and a run sets it again. This one was asked for.
"""


@dataclass(frozen=True, slots=True)
class DefaultRate:
    """The cluster default of the throttle rates, in bytes per second; None for a side without one.

    Kafka does not say who set it, and two people may choose the same number. So reconciler marks
    what it sets: followers get one byte more than leaders. A default without this mark is somebody
    else's, and stays. A rate of 0 is a pause, whoever set it.
    """

    leader: int | None
    follower: int | None

    @classmethod
    def of_moves(cls, bytes_per_s: int) -> DefaultRate:
        """Return a rate with the mark."""
        return cls(bytes_per_s, bytes_per_s + (bytes_per_s > 0))

    @property
    def bytes_per_s(self) -> int:
        """The rate that limits a copy: the lower one."""
        return min(rate for rate in (self.leader, self.follower) if rate is not None)

    @property
    def highest(self) -> int:
        """The higher rate: one broker may send, or receive, as much. The mark does not count."""
        if self.is_of_moves:
            return self.bytes_per_s
        return max(rate for rate in (self.leader, self.follower) if rate is not None)

    @property
    def is_of_moves(self) -> bool:
        """Whether a run of moves, or `moves rate`, has set it, and may remove it."""
        return self == DefaultRate.of_moves(self.bytes_per_s)

    def of_side(self, side: ThrottleSide) -> int | None:
        """Return the rate of one side."""
        return self.leader if side is ThrottleSide.LEADER else self.follower


def read_default(rates: Iterable[ThrottleRate]) -> DefaultRate | None:
    """Return the cluster default among some rates, None if there is none."""
    found = {
        rate.side: rate.bytes_per_s for rate in rates if rate.source is RateSource.CLUSTER_DEFAULT
    }
    if not found:
        return None
    return DefaultRate(found.get(ThrottleSide.LEADER), found.get(ThrottleSide.FOLLOWER))


DIRECTORY_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
"""The broker config that limits what is copied between its log directories."""


@dataclass(frozen=True, slots=True)
class DirectoryRate:
    """A limit on what a broker copies between its log directories, in bytes per second.

    `broker` is None for the cluster default itself. As with DefaultRate, Kafka does not say who set
    it, so reconciler marks what it sets: one byte more than a number of KiB. Any other rate is
    somebody else's, and stays.
    """

    broker: int | None
    bytes_per_s: int
    source: RateSource

    @property
    def is_of_moves(self) -> bool:
        """Whether a run of moves has set it, and may remove it."""
        of_all = self.source is RateSource.CLUSTER_DEFAULT
        return of_all and self.bytes_per_s == mark_directory_rate(self.bytes_per_s)


def mark_directory_rate(bytes_per_s: int) -> int:
    """Return a rate between log directories with the mark of moves: 1 KiB per second or more."""
    return max(bytes_per_s // 1024, 1) * 1024 + 1


def find_unused_lists(
    lists: Iterable[ThrottleList], reassignments: Iterable[Reassignment]
) -> tuple[ThrottleList, ...]:
    """Return the lists that name no partition which is reassigned.

    As soon as there is a rate, such a list slows its replicas when they catch up.
    """
    moving: dict[str, set[str]] = {}
    for one in reassignments:
        moving.setdefault(one.topic, {"*"}).add(str(one.partition))
    return tuple(
        each
        for each in lists
        if {entry.partition(":")[0] for entry in each.entries}.isdisjoint(
            moving.get(each.topic, ())
        )
    )


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition as metadata shows it. `leader` is -1 if there is none."""

    replicas: Replicas
    leader: int
    in_sync: Replicas


@dataclass(frozen=True, slots=True)
class MovesReading:
    """What is in flight on a cluster at one time, whoever started it.

    `partitions` holds all partitions that the account may describe, by topic, and `directories` the
    log directories by broker. `sizes` holds bytes by broker, then topic and partition; a broker
    that did not answer is omitted. `stored` has all replicas of brokers with several log
    directories, and `directory_rates` what limits copies between these. `rates` holds the rates in
    force on each broker that answered, and the cluster default. `notes` says what could not be
    read; a warning among them means that moves or throttles may be missing. Units: `seen_at_ms` is
    milliseconds since 1970, `clock_s` seconds of a clock that never goes back.
    """

    cluster: str
    cluster_id: str | None
    seen_at_ms: int
    clock_s: float
    brokers: tuple[Broker, ...]
    reassignments: tuple[Reassignment, ...]
    sizes: Mapping[int, Mapping[tuple[str, int], int]]
    rates: tuple[ThrottleRate, ...]
    lists: tuple[ThrottleList, ...]
    notes: tuple[Finding, ...] = ()
    partitions: Mapping[str, tuple[PartitionState, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    directories: Mapping[int, tuple[LogDirectory, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    stored: Stored = field(default_factory=lambda: MappingProxyType({}))
    directory_rates: tuple[DirectoryRate, ...] = ()

    @property
    def default_rate(self) -> DefaultRate | None:
        """The cluster default of the throttle rates, None if there is none."""
        return read_default(rate for rate in self.rates if rate.broker is None)

    @property
    def is_relocating(self) -> bool:
        """Whether a replica moves between log directories, whoever moves it."""
        return any(each.target for held in self.stored.values() for each in held.values())

    @property
    def own_directory_rate(self) -> DirectoryRate | None:
        """The cluster default of the rate between log directories, if it is of moves."""
        return next((rate for rate in self.directory_rates if rate.is_of_moves), None)
