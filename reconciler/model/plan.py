"""Plans: each topic before and after, its risks, its refusals, and the balance."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Literal

from reconciler.errors import Finding, Location
from reconciler.model.cluster import EMPTY, Assignment, Broker, Replicas, Risk, TopicSpec
from reconciler.model.health import HealthCounts
from reconciler.model.moves import LoadKind, PlannedMoves


@dataclass(frozen=True, slots=True)
class RiskNote:
    """A risk of one change, its consequence as text, and whether the spec accepts it.

    `field` is the field whose change has the risk, a path as in `TopicSpec.fields`. It is empty for
    a deletion, and for replicas that are copied. `acknowledged_before`: the base of the request has
    the same acknowledgement, so nobody wrote it for this change.
    """

    risk: Risk
    consequence: str
    acknowledged: bool = False
    field: str = ""
    acknowledged_before: bool = False

    @property
    def consent(self) -> str:
        """Return whether it is accepted, as text."""
        if not self.acknowledged:
            return "not acknowledged"
        return "acknowledged" + (" before this request" if self.acknowledged_before else "")

    def with_consent(
        self, spec: TopicSpec, before: object = None, after: object = None
    ) -> RiskNote:
        """Return the risk with what a spec says about it. In: both values of the field."""
        entry = spec.find_entry(self.risk, self.field, before, after)
        if entry is None:
            return self
        return replace(self, acknowledged=True, acknowledged_before=entry in spec.standing)


@dataclass(frozen=True, slots=True, order=True)
class ReplicaDirectory:
    """The log directory of a replica on its broker."""

    partition: int
    broker: int
    path: str


@dataclass(frozen=True, slots=True)
class TopicImage:
    """One topic before or after a plan: its identity, replicas and managed overrides.

    `leaders` holds the leader of each partition, -1 for none. It is empty in a plan that elects
    none: who leads changes by itself. `directories` holds the replicas that a plan moves between
    the log directories of their brokers, in order.
    """

    topic_id: str | None
    assignment: Assignment
    config: Mapping[str, str]
    leaders: tuple[int, ...] = ()
    directories: tuple[ReplicaDirectory, ...] = ()


@dataclass(frozen=True, slots=True)
class Deletion:
    """The usage on which a deletion depends: the topic was unused, and must still be unused.

    `ends`, `records` and `newest_ms` are those of TopicUsage; a write increases an end offset.
    """

    unused_for_ms: int
    ends: tuple[int, ...]
    records: int = 0
    newest_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """The minimum and maximum count of something per eligible broker."""

    least: int
    most: int

    @property
    def skew(self) -> int:
        """The maximum minus the minimum."""
        return self.most - self.least


@dataclass(frozen=True, slots=True)
class Balance:
    """Leaders and replicas over the eligible brokers, of one topic or of an entire cluster."""

    leaders: Spread
    replicas: Spread


@dataclass(frozen=True, slots=True)
class Weighed:
    """Leaders and replicas over the eligible brokers by bytes or traffic, before and after a plan.

    Units: bytes, or bytes per second; leaders by disk, and replicas by read, are counted. New
    partitions, and those of `unknown` topics whose size or rate is not known, are estimated: each
    counts as the median of its topic, or of all topics.
    """

    by: LoadKind
    before: Balance
    after: Balance
    unknown: int = 0


class Level(StrEnum):
    """The levels of the objective, most important first. Each is a sum of squares."""

    TOPIC_LEADERS = "leaders of the topics"
    TOPIC_REPLICAS = "replicas of the topics"
    CLUSTER_LEADERS = "leaders of the cluster"
    CLUSTER_REPLICAS = "replicas of the cluster"
    NEXT_LEADERS = "next leaders if a broker is lost"
    RACK_NEXT_LEADERS = "next leaders if a rack is lost"


@dataclass(frozen=True, slots=True)
class LevelResult:
    """The result of one level: its sum of squares, and the lower bound given the levels above.

    `bound` equals `reached` if `reached` is proven optimal; otherwise the optimum is between them.
    `skew` is max − min; for the levels of topics, that of the most uneven topic. For next leaders
    it is the most partitions that one broker takes over, and `skew_bound` the least possible.
    """

    level: Level
    reached: int
    bound: int
    skew: int
    skew_bound: int | None = None

    @property
    def proven(self) -> bool:
        """Return whether the result is proven optimal."""
        return self.reached == self.bound


FieldValue = int | str | Replicas


@dataclass(frozen=True, slots=True)
class RefusedField:
    """One field of a refused change, for display only: no step is derived from it.

    `path` is dotted as in `TopicSpec.fields`, or `state` for a deletion. `before` and `after` are
    None if the field is not set; `where` is the line that requests the change.
    """

    path: str
    before: FieldValue | None
    after: FieldValue | None
    where: Location


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """One topic of a plan: its images `before` and `after`, its risks, and its refusals.

    `before` is None for a topic that does not exist. `after` is None for a topic to be deleted;
    `deletion` then holds its usage. If `refusals` is not empty, nothing is done and `after` equals
    `before`: a topic is refused entirely. `refused_change` lists every field of a change that is
    refused, alone or with the entire plan. `description` is that of a topic that does not exist.
    `explicit` holds the configs of `after` that are in force already, by the brokers' defaults.
    `labels` are those of its spec, for display and for the readers of a plan file.
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
    owner: str | None = None
    description: str | None = None
    explicit: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True, slots=True)
class DriftedTopic:
    """A topic that differs from its spec and is outside the scope of a plan, which leaves it as is.

    `action` is what a plan of this topic would do. `differs` lists every field, from the live value
    to that of the spec. Both are for display only.
    """

    name: str
    location: Location
    action: Literal["create", "update", "delete"]
    differs: tuple[RefusedField, ...]
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """The git commit of the specs. `dirty`: files of the estate differed from it."""

    sha: str
    dirty: bool = False


def is_chosen(name: str, topics: str) -> bool:
    """Return whether a topic is among those of a request. In: globs, separated by commas."""
    return any(fnmatchcase(name, glob) for glob in topics.split(","))


def list_unmatched(names: Collection[str], topics: str) -> list[str]:
    """List the globs of a request that no topic matches."""
    return [glob for glob in topics.split(",") if not any(fnmatchcase(n, glob) for n in names)]


@dataclass(frozen=True, slots=True)
class Scope:
    """The topics of an estate that a plan covers: by default, all of them.

    `topics` holds globs of names, separated by commas, as `is_chosen` takes them. `changed_since`
    is a branch or a commit: only topics whose specs changed since it are planned.
    """

    topics: str = "*"
    changed_since: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All changes to make on one cluster. Apply makes these and no others.

    `topics` holds changes, refusals and notes by name; `unchanged` counts topics without a change,
    with or without a note. If `refusals` is not empty, the entire plan is refused: no part of it is
    applied, even if some topics are skipped. `alerts` warn of what a request changes besides
    topics: a looser guard, another client. `excluded` lists brokers that get no new replicas, as
    the estate requires. `moves` is set in a plan that only moves replicas: it is approved alone,
    and takes hours where others take seconds. `existing_drift` lists the topics outside the scope
    that differ from their specs, and `agreed` those of a scope by commit that are as specified.
    `stages` is the order in which a merge reaches the clusters, for display only, and so is
    `health`: what is wrong with the cluster, None if nothing is.
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
    alerts: tuple[Finding, ...] = ()
    balance_before: Balance | None = None
    balance_after: Balance | None = None
    levels: tuple[LevelResult, ...] = ()
    weighed: Weighed | None = None
    excluded: tuple[int, ...] = ()
    commit: Commit | None = None
    scope: Scope = field(default_factory=Scope)
    moves: PlannedMoves | None = None
    existing_drift: tuple[DriftedTopic, ...] = ()
    agreed: tuple[str, ...] = ()
    stages: tuple[tuple[str, ...], ...] = ()
    health: HealthCounts | None = None
