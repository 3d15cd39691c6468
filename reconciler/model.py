"""The nouns every stage shares: brokers, topics as wished and as found, steps, plans, outcomes.

Frozen values only. A stage takes some of them and returns others; nothing here reads the world.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.errors import (
    Location,  # pydantic resolves RefusedField here
    hide_secrets,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.errors import Finding

Replicas = tuple[int, ...]
"""The broker ids of one partition, preferred leader first."""

Assignment = tuple[Replicas, ...]
"""Row p holds the replicas of partition p."""

SHORT = 10
"""Digits of a commit that people are shown; GitHub links as many."""

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
"""Topics that Kafka keeps for itself, and what for. Metadata flags only some of them."""


@dataclass(frozen=True, slots=True, order=True)
class Broker:
    """A broker of a cluster. `cordoned`: all its log directories are (KIP-1066)."""

    id: int
    rack: str | None = None
    alive: bool = True
    cordoned: bool = False


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as one cluster should have it: defaults, profile and overrides already applied.

    A field that is None is not managed. Config values are in the broker's own spelling (units
    resolved, lists joined by commas). `fields` tells where a value was written, by a dotted path
    ("partitions", "config.retention.ms", "assignment.3"); inherited values point into
    clusters.yaml. `gradual` is what one plan may divide a retention by, 0 for no bound.
    """

    name: str
    location: Location
    partitions: int | None = None
    replication_factor: int | None = None
    config: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    assignment: Assignment | None = None
    rack_aware: bool = True
    gradual: int = 0
    absent: bool = False
    acknowledge: frozenset[str] = frozenset()
    owner: str | None = None
    description: str | None = None
    profile: str | None = None
    fields: Mapping[str, Location] = field(default_factory=lambda: MappingProxyType({}))

    def where(self, path: str) -> Location:
        """Return where `path` was written, or its nearest written ancestor, or the topic."""
        while path:
            if path in self.fields:
                return self.fields[path]
            path = path.rpartition(".")[0]
        return self.location


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as a cluster has it.

    `config` holds overrides only (source DYNAMIC_TOPIC_CONFIG); a value of None is an override
    under a key that the brokers do not know, whose value they do not tell. `assignment` holds the
    replicas a partition is heading for: while a reassignment runs, its target and not the
    inflated list that metadata shows. `in_sync` is empty where nobody knows; so are `leaders`,
    who lead each partition at the moment (-1 for nobody), and `size_bytes` and
    `rate_bytes_per_s`, which hold a number for each partition. `disputed` holds what each broker
    shows of the overrides on which they disagree, None for not set; `config` leaves those out.
    """

    name: str
    topic_id: str | None
    assignment: Assignment
    config: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))
    in_sync: Assignment = ()
    reassigning: frozenset[int] = frozenset()
    internal: bool = False
    size_bytes: tuple[int, ...] = ()
    rate_bytes_per_s: tuple[int, ...] = ()
    leaders: tuple[int, ...] = ()
    disputed: Mapping[str, Mapping[int, str | None]] = field(
        default_factory=lambda: MappingProxyType({})
    )

    @property
    def replication_factors(self) -> frozenset[int]:
        """Every replication factor among the partitions: one, unless something went astray."""
        return frozenset(map(len, self.assignment))


@dataclass(frozen=True, slots=True)
class TopicUsage:
    """Who uses a topic, as far as a cluster tells, read where it is to be deleted.

    `groups` names the active consumer groups that hold committed offsets on it or read it.
    `ends` holds the end offset of each partition, `records` how many offsets lie between the
    starts and the ends, `emptied` whether a partition had records and has none left. `newest_ms`
    is the latest timestamp of a record, None where there is none. `unseen` says why nobody can
    tell all that: then the topic counts as used. Units: milliseconds since 1970.
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
class ClusterState:
    """A cluster as it was read: brokers by id, topics by name.

    `usage` tells who uses the topics that are to be deleted; of all others it tells nothing.
    `config_defaults` holds the value in force for each config key on topics without an override
    of their own; a key on which the brokers disagree is left out. `broker_settings` holds the
    flags of brokers that decide what topics may be, "false" where any broker has one off; empty
    where nobody tells. `notes` says what could not be seen of the cluster, and what that means for
    a plan.
    """

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    topics: Mapping[str, TopicState]
    config_defaults: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    broker_settings: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    notes: tuple[Finding, ...] = ()
    kafka_version: str | None = None
    usage: Mapping[str, TopicUsage] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def user_topics(self) -> Mapping[str, TopicState]:
        """The topics that are not internal to Kafka: only these count in balance and placement."""
        return {name: topic for name, topic in self.topics.items() if not topic.internal}


@dataclass(frozen=True, slots=True)
class Guards:
    """What a single plan may do to a cluster at most.

    `max_changed_percent` is a share of the live topics, None for no limit; `unused_for_ms`, how
    long nothing was written to a topic that may be deleted.
    """

    max_changed_percent: int | None = None
    max_deletes: int = 0
    unused_for_ms: int = 7 * 86_400_000


class Risk(StrEnum):
    """What a change can cost, named so that a spec can acknowledge it."""

    NONE = "none"
    ORDERING = "ordering"
    TRAFFIC = "traffic"
    DURABILITY = "durability"
    DATA_LOSS = "data-loss"


@dataclass(frozen=True, slots=True)
class RiskNote:
    """A risk of one change, its consequence in plain words, and whether the spec accepts it."""

    risk: Risk
    consequence: str
    acknowledged: bool = False


@dataclass(frozen=True, slots=True)
class TopicImage:
    """What a plan rests on, or leads to, of one topic: identity, replicas and managed overrides."""

    topic_id: str | None
    assignment: Assignment
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Create a topic with every replica placed."""

    topic: str
    assignment: Assignment
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Append partitions; `added[0]` becomes partition number `first`."""

    topic: str
    first: int
    added: Assignment


@dataclass(frozen=True, slots=True)
class AlterConfig:
    """Set and unset overrides of a topic, in one request."""

    topic: str
    set: Mapping[str, str]
    unset: frozenset[str]


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """Delete the topic of this id; one of the same name that is created later is another."""

    topic: str
    topic_id: str


Step = CreateTopic | AddPartitions | AlterConfig | DeleteTopic


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a deletion rests on beside the topic's image: it was unused, and has to be still.

    `ends`, `records` and `newest_ms` are those of TopicUsage; a write moves an end.
    """

    unused_for_ms: int
    ends: tuple[int, ...]
    records: int = 0
    newest_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """How evenly something lies over the eligible brokers: the fewest and the most on any."""

    least: int
    most: int

    @property
    def skew(self) -> int:
        """Max minus min."""
        return self.most - self.least


@dataclass(frozen=True, slots=True)
class Balance:
    """Leaders and replicas over the eligible brokers, of one topic or of a whole cluster."""

    leaders: Spread
    replicas: Spread


class Level(StrEnum):
    """The objective, most important first: each is a sum of squares over the eligible brokers."""

    TOPIC_LEADERS = "leaders of the topics"
    TOPIC_REPLICAS = "replicas of the topics"
    CLUSTER_LEADERS = "leaders of the cluster"
    CLUSTER_REPLICAS = "replicas of the cluster"


@dataclass(frozen=True, slots=True)
class LevelResult:
    """What one level reached: its sum of squares, the least possible given the levels above.

    `bound` equals `reached` where that is proven to be the least; where it is lower, the truth
    lies between them. `skew` is max − min, for topics that of the most uneven one.
    """

    level: Level
    reached: int
    bound: int
    skew: int

    @property
    def proven(self) -> bool:
        """Tell whether nothing better exists."""
        return self.reached == self.bound


class AnswerKind(StrEnum):
    """What a broker said to one item of a request.

    NOT_DONE: it was certainly not carried out, and may be sent again. LOST: nobody knows whether
    it was, or will be.
    """

    ACCEPTED = "accepted"
    REFUSED = "refused"
    NOT_DONE = "not done"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Answer:
    """A broker's answer for one topic."""

    kind: AnswerKind
    error: str = ""
    text: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", hide_secrets(self.text))


class OutcomeKind(StrEnum):
    """How a topic of a plan fared.

    What HALF_DONE and FAILED miss was not done and will not be. UNKNOWN: a request got no answer,
    and what it asks for is not seen; the brokers may still carry it out.
    """

    DONE = "done"
    ALREADY_DONE = "already done"
    HALF_DONE = "half done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_ATTEMPTED = "not attempted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one topic's steps, and what is missing where something is."""

    topic: str
    kind: OutcomeKind
    text: str = ""
    rule: str = ""


FieldValue = int | str | Replicas


@dataclass(frozen=True, slots=True)
class RefusedField:
    """One field of a refused change, for people to read: no step is ever derived from it.

    `path` is dotted as in `TopicSpec.fields`, or `state` for a deletion. `before` and `after` are
    None where the field is not set; `where` is the line that asks for the change.
    """

    path: str
    before: FieldValue | None
    after: FieldValue | None
    where: Location


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """One topic of a plan: from `before` to `after`, why that is safe or why it is refused.

    `before` is None for a topic that does not exist; `after`, for one that is to be deleted, and
    `deletion` then says what that rests on. Where `refusals` is not empty nothing is done, and
    `after` equals `before`: a topic is refused whole. `refused_change` lists every field of a
    change that is refused, alone or with the whole plan.
    """

    name: str
    location: Location
    before: TopicImage | None
    after: TopicImage | None
    risks: tuple[RiskNote, ...] = ()
    refusals: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    balance_before: Balance | None = None
    balance_after: Balance | None = None
    deletion: Deletion | None = None
    refused_change: tuple[RefusedField, ...] = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """The git commit that specs were read at; `dirty`: files of the estate differed from it."""

    sha: str
    dirty: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """Which topics of an estate were to be planned: all of them, unless told otherwise.

    `topics` is a glob of names; `changed_since`, the branch since which files had to change.
    """

    topics: str = "*"
    changed_since: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What would change on one cluster, and nothing else: the only thing that apply reads.

    `topics` holds changes, refusals and notes by name; what needs no change is counted in
    `unchanged`, whether or not there is a note to it. Where `refusals` is not empty the plan is
    refused as a whole: nothing of it is applied, whatever is skipped. `excluded` names brokers
    that the estate lets take nothing new.
    """

    cluster: str
    cluster_id: str | None
    brokers: tuple[Broker, ...]
    topics: tuple[PlannedTopic, ...]
    unchanged: int = 0
    files: int = 0
    live_topics: int = 0
    unmanaged: tuple[str, ...] = ()
    notes: tuple[Finding, ...] = ()
    refusals: tuple[Finding, ...] = ()
    balance_before: Balance | None = None
    balance_after: Balance | None = None
    levels: tuple[LevelResult, ...] = ()
    excluded: tuple[int, ...] = ()
    commit: Commit | None = None
    scope: Scope = field(default_factory=Scope)
