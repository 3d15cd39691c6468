"""Clusters and topics: their specs, and their state as read, with what is in flight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from reconciler.errors import Finding, Location
from reconciler.model.requests import KafkaRequest

Replicas = tuple[int, ...]
"""The broker ids of one partition, preferred leader first."""

Assignment = tuple[Replicas, ...]
"""Row p holds the replicas of partition p."""

CommittedOffsets = Mapping[str, Mapping[str, tuple[int, ...]]]
"""Committed offsets by group and topic, one for each partition; -1 for none."""

BY_BROKERS = -1
"""In a planned row, in the place of a broker id: the brokers choose who gets the replica."""


def leave_to_brokers(partitions: int, replication: int) -> Assignment:
    """Return the rows of partitions that the brokers place: only the counts are planned."""
    return ((BY_BROKERS,) * replication,) * partitions


def list_known(rows: Assignment) -> Assignment:
    """List the rows whose brokers are known: live ones, and those that reconciler placed."""
    return tuple([row for row in rows if BY_BROKERS not in row])


def is_left_to_brokers(rows: Assignment) -> bool:
    """Return whether the brokers place the new partitions of a topic; these are its last ones."""
    return bool(rows) and BY_BROKERS in rows[-1]


def meets_row(row: Replicas, planned: Replicas) -> bool:
    """Return whether a live row is as planned; if the brokers place it, its length decides."""
    return row == planned or (BY_BROKERS in planned and len(row) == len(planned))


Place = tuple[str, int]
"""A partition: its topic and its number."""

ReplicaPlace = tuple[str, int, int]
"""A replica: its topic, its partition and its broker."""

AnyPlace = Place | ReplicaPlace
"""What a plan moves: a partition, or a replica between the log directories of its broker."""

SHORT = 10
"""Digits of a commit in text output; GitHub shows the same number."""

EMPTY: Mapping[str, str] = MappingProxyType({})

INTERNAL_TOPICS: Mapping[str, str] = MappingProxyType(
    {
        "__consumer_offsets": "holds the offsets of consumer groups",
        "__transaction_state": "holds the state of transactions",
        "__share_group_state": "holds the state of share groups",
        "__cluster_metadata": "is the log of the controllers",
        "__remote_log_metadata": "holds the index of tiered storage",
    }
)
"""Kafka's internal topics, with the purpose of each. Metadata flags only some of them."""


class Risk(StrEnum):
    """A possible cost of a change. A spec acknowledges it by this name."""

    NONE = "none"
    ORDERING = "ordering"
    TRAFFIC = "traffic"
    DURABILITY = "durability"
    DATA_LOSS = "data-loss"


RISKY_FIELDS: Mapping[Risk, tuple[str, ...]] = MappingProxyType(
    {
        Risk.ORDERING: ("partitions",),
        Risk.TRAFFIC: ("min.insync.replicas", "max.message.bytes"),
        Risk.DURABILITY: ("min.insync.replicas", "replication_factor"),
        Risk.DATA_LOSS: (
            "retention.ms",
            "retention.bytes",
            "cleanup.policy",
            "unclean.leader.election.enable",
            "remote.storage.enable",
        ),
    }
)
"""The fields whose changes can have a risk. Copies of replicas have the risk traffic, too."""


AcknowledgedEntry = tuple[str | None, ...]
"""What an entry of acknowledge accepts: a risk, and the field and values of one change if named."""


class AcceptedChange(NamedTuple):
    """The one change of a field for which a spec accepts a risk.

    `field` is a path as in `TopicSpec.fields`. Values are spelled as the broker spells them; None
    is not set.
    """

    risk: str
    field: str
    before: str | None
    after: str | None
    where: Location

    @property
    def entry(self) -> AcknowledgedEntry:
        """The entry without its location, to compare it with those of another commit."""
        return self[:4]

    def covers(self, before: object, after: object) -> bool:
        """Return whether it accepts a change between two values; lists have no order."""
        return [_fold(self.before), _fold(self.after)] == [_fold(before), _fold(after)]


def _fold(value: object) -> frozenset[str] | None:
    return None if value is None else frozenset(str(value).split(","))


@dataclass(frozen=True, slots=True, order=True)
class Broker:
    """A broker of a cluster. `cordoned`: all its log directories are cordoned (KIP-1066)."""

    id: int
    rack: str | None = None
    alive: bool = True
    cordoned: bool = False


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """The desired topic on one cluster, after defaults, profile and overrides are applied.

    A field that is None is not managed. Config values are spelled as the broker spells them (units
    resolved, lists joined by commas). `fields` holds the file and line of each value, by a dotted
    path ("partitions", "config.retention.ms", "assignment.3", "acknowledge.ordering"); inherited
    values point into clusters.yaml. `unset` holds the configs outside Kafka's catalogue that the
    topic is not to have: those that neither it nor `config` names are left alone. `acknowledge`
    holds the risks that are accepted for any change, `accepts` those for a single change;
    `standing` holds the entries that the base of a request has as well. `gradual` is the largest
    factor by which one plan may divide a retention, 0 for no limit. `owner`, `description`,
    `profile` and `labels` are for people and rules: no plan acts on them, nor on `expires`, a date,
    and `idle_after_ms`, which only remind people.
    """

    name: str
    location: Location
    partitions: int | None = None
    replication_factor: int | None = None
    config: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    unset: frozenset[str] = frozenset()
    assignment: Assignment | None = None
    rack_aware: bool = True
    gradual: int = 0
    absent: bool = False
    acknowledge: frozenset[str] = frozenset()
    accepts: tuple[AcceptedChange, ...] = ()
    standing: frozenset[AcknowledgedEntry] = frozenset()
    owner: str | None = None
    description: str | None = None
    profile: str | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    expires: str | None = None
    idle_after_ms: int | None = None
    fields: Mapping[str, Location] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def entries(self) -> frozenset[AcknowledgedEntry]:
        """Every entry of acknowledge."""
        plain = frozenset((risk,) for risk in self.acknowledge)
        return plain.union(change.entry for change in self.accepts)

    def find_entry(
        self, risk: Risk, field: str = "", before: object = None, after: object = None
    ) -> AcknowledgedEntry | None:
        """Return the entry that accepts a risk of a change, if there is one.

        In: the path of the field that changes, and its values.
        """
        if str(risk) in self.acknowledge:
            return (str(risk),)
        named = (c for c in self.accepts if (c.risk, c.field) == (risk, field))
        return next((change.entry for change in named if change.covers(before, after)), None)

    def where(self, path: str) -> Location:
        """Return the location of `path`, or of its nearest written ancestor, or of the topic."""
        while path:
            if path in self.fields:
                return self.fields[path]
            path = path.rpartition(".")[0]
        return self.location


class LeaderLog(NamedTuple):
    """The log of a partition on the disk of its leader: first and end offset, and bytes.

    Of a tiered topic, `start` is the first offset that is on the disk. Both offsets are -1 if only
    the bytes were read.
    """

    leader: int
    start: int
    end: int
    size_bytes: int

    @property
    def bytes_per_record(self) -> float:
        """The average bytes per offset, 0 if there are none: an offset without a record counts."""
        return self.size_bytes / (self.end - self.start) if self.end > self.start else 0.0


@dataclass(frozen=True, slots=True)
class TopicState:
    """The actual topic on one cluster.

    `config` holds overrides only (source DYNAMIC_TOPIC_CONFIG); a value of None is an override of a
    key that the brokers do not know: they do not return its value. `assignment` holds the target
    replicas of each partition: during a reassignment it excludes the replicas to be removed, which
    metadata still lists. `in_sync` holds the in-sync replicas, `leaders` the current leader (-1 for
    none), `size_bytes`, `write_bytes_per_s` (what producers write) and `read_bytes_per_s` (what
    consumers read) a number (-1 if unknown), each per partition; each is empty if unknown.
    `guessed_rates` names the partitions whose write rate is a guess; a rate of reads is always one.
    `logs` holds the log of each partition's leader, None if unknown, to compare with a later one.
    `disputed` holds the overrides on which the brokers disagree, with the value from each broker,
    None for not set; `config` omits these overrides.
    """

    name: str
    topic_id: str | None
    assignment: Assignment
    config: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))
    in_sync: Assignment = ()
    reassigning: frozenset[int] = frozenset()
    internal: bool = False
    size_bytes: tuple[int, ...] = ()
    write_bytes_per_s: tuple[int, ...] = ()
    read_bytes_per_s: tuple[int, ...] = ()
    guessed_rates: frozenset[int] = frozenset()
    logs: tuple[LeaderLog | None, ...] = ()
    leaders: tuple[int, ...] = ()
    disputed: Mapping[str, Mapping[int, str | None]] = field(
        default_factory=lambda: MappingProxyType({})
    )

    @property
    def replication_factors(self) -> frozenset[int]:
        """Every replication factor among the partitions: normally one."""
        return frozenset(map(len, self.assignment))


@dataclass(frozen=True, slots=True)
class TopicUsage:
    """The usage of a topic, as far as a cluster shows it.

    `groups` names the active consumer groups that hold committed offsets on it or read it. `ends`
    holds the end offset of each partition. `records` is the number of offsets between the start and
    end offsets. `emptied` is true if a partition had records and has none left. `newest_ms` is the
    latest timestamp of a record, None if there are no records. `unseen` is the reason why the usage
    is not known: then the topic counts as used. Units: milliseconds since 1970.
    """

    seen_at_ms: int
    groups: tuple[str, ...] = ()
    ends: tuple[int, ...] = ()
    records: int = 0
    emptied: bool = False
    newest_ms: int | None = None
    unseen: str = ""
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A log directory of a broker. Units: bytes; None if the broker does not say (before 3.3).

    `replicas` counts those in it, None if unknown: Kafka puts a new replica into the directory of a
    broker that has the fewest. One that is not `online` has failed, and nothing else is known.
    """

    path: str
    total_bytes: int | None
    usable_bytes: int | None
    replicas: int | None = None
    online: bool = True


class StoredReplica(NamedTuple):
    """A replica in one of several log directories of its broker. Units: bytes.

    `target` is the directory that it is being moved to within the broker, "" for none, and
    `copied_bytes` is what is there already.
    """

    path: str
    size_bytes: int
    target: str = ""
    copied_bytes: int = 0


Stored = Mapping[int, Mapping[Place, StoredReplica]]
"""The replicas of brokers with several log directories, by broker and partition."""


class ThrottleSide(StrEnum):
    """The side of a copy that a throttle limits: leaders that send, or followers that fetch."""

    LEADER = "leader"
    FOLLOWER = "follower"

    @property
    def rate_key(self) -> str:
        """The broker config that holds the rate."""
        return f"{self}.replication.throttled.rate"

    @property
    def list_key(self) -> str:
        """The topic config that lists the throttled replicas."""
        return f"{self}.replication.throttled.replicas"


class RateSource(StrEnum):
    """Where a throttle rate is set: on the broker, for all brokers, or in server.properties."""

    BROKER = "broker"
    CLUSTER_DEFAULT = "cluster-default"
    STATIC = "static"


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A partition whose reassignment has not ended (KIP-455).

    `replicas` is the row that metadata shows: the target, then the replicas that are removed.
    `leader` is -1 if there is none; it is None, and `in_sync` empty, if the account may not
    describe the topic.
    """

    topic: str
    partition: int
    replicas: Replicas
    adding: Replicas
    removing: Replicas
    leader: int | None = None
    in_sync: Replicas = ()

    @property
    def current(self) -> Replicas:
        """The replicas without the added ones. Kafka does not keep their original order."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)

    @property
    def target(self) -> Replicas:
        """The row that the reassignment asks for."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


@dataclass(frozen=True, slots=True)
class ThrottleRate:
    """A rate that is set. `broker` is None for the cluster default itself."""

    broker: int | None
    side: ThrottleSide
    bytes_per_s: int
    source: RateSource


@dataclass(frozen=True, slots=True)
class ThrottleList:
    """The throttled replicas of a topic: `*`, or `partition:broker` separated by commas."""

    topic: str
    side: ThrottleSide
    replicas: str

    @property
    def entries(self) -> tuple[str, ...]:
        """The entries of the list."""
        return tuple(part.strip() for part in self.replicas.split(",") if part.strip())

    @property
    def is_of_all(self) -> bool:
        """Whether it lists every replica of the topic; reconciler sets no such list."""
        return "*" in self.entries


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The state of a cluster at the time of reading: brokers by id, topics by name.

    `usage` covers only topics that are to be deleted, or may be due on `read_on`, the date in UTC;
    without that date, no topic is due. `config_defaults` holds the effective value of each config
    key on topics without an override; a key on which the brokers disagree is omitted.
    `broker_settings` holds the broker flags that limit topics, "false" if any broker has the flag
    off; empty if unknown. `can_cordon`: brokers know cordoned.log.dirs (KIP-1066).
    `lists_fenced`: brokers tell which other ones are registered (KIP-1073), and `brokers` holds
    those that clusters.yaml names. `throttle_rates` holds the rates in force on brokers, and
    `throttle_lists` the throttled replicas of topics, also where their configs were not read.
    `directories` holds the log directories by broker, and `stored` what each of them holds where a
    broker has several; `reassignments` holds what is in flight, and `voters` the controllers that
    vote. They and the lists are read for plans of moves only.
    `unoffered` holds the requests that the brokers do not offer, as far as a plan needed to know.
    `read_at_ms` is when sizes were read, in milliseconds since 1970 by the clock of the reader, 0
    if unknown. `committed_offsets` holds those of groups, by group and topic, one for each
    partition (-1 for none); None if they were not read. `measured_s` is the time over which rates
    were measured, 0 if they were not.
    `notes` lists what could not be read from the cluster, and the consequence for a plan; an error
    among them refuses a plan with steps.
    """

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    topics: Mapping[str, TopicState]
    config_defaults: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    broker_settings: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    notes: tuple[Finding, ...] = ()
    kafka_version: str | None = None
    usage: Mapping[str, TopicUsage] = field(default_factory=lambda: MappingProxyType({}))
    directories: Mapping[int, tuple[LogDirectory, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    stored: Stored = field(default_factory=lambda: MappingProxyType({}))
    reassignments: tuple[Reassignment, ...] = ()
    can_cordon: bool = False
    lists_fenced: bool = False
    voters: frozenset[int] = frozenset()
    throttle_rates: tuple[ThrottleRate, ...] = ()
    throttle_lists: tuple[ThrottleList, ...] = ()
    unoffered: frozenset[KafkaRequest] = frozenset()
    read_on: str = ""
    read_at_ms: int = 0
    committed_offsets: CommittedOffsets | None = None
    measured_s: int = 0

    @property
    def user_topics(self) -> Mapping[str, TopicState]:
        """The topics that are not internal to Kafka. Only these count in balance and placement."""
        return {name: topic for name, topic in self.topics.items() if not topic.internal}

    @property
    def failed_directories(self) -> Mapping[int, tuple[str, ...]]:
        """The paths of log directories that are offline, by living broker with any."""
        paths = {
            broker.id: tuple(d.path for d in self.directories.get(broker.id, ()) if not d.online)
            for broker in self.brokers
            if broker.alive
        }
        return {broker: failed for broker, failed in paths.items() if failed}

    def find_offline(self, topic: TopicState) -> Assignment:
        """Return the replicas on failed log directories, per partition; nothing if there are none.

        No broker says what a failed directory held. On its broker, each replica that is not in sync
        counts, also the few in other directories that lag for a moment.
        """
        failed = self.failed_directories.keys()
        if not failed or not topic.in_sync:
            return ()
        return tuple(
            tuple(broker for broker in row if broker in failed and broker not in synced)
            for row, synced in zip(topic.assignment, topic.in_sync, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Guards:
    """The limits on what a single plan may change on a cluster.

    `max_changed_percent` is a share of the live topics, None for no limit; `unused_for_ms` is the
    minimum time without writes before a topic may be deleted. `from_base`: a request that loosens
    a guard is planned with the guard of its base.
    """

    max_changed_percent: int | None = None
    max_deletes: int = 0
    unused_for_ms: int = 7 * 86_400_000
    from_base: bool = False
