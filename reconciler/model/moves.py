"""Moves of replicas: the reassignments in flight on a cluster, and the throttles, as read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.errors import Finding
    from reconciler.model.cluster import Broker, Replicas


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


@dataclass(frozen=True, slots=True)
class MovesReading:
    """What is in flight on a cluster at one time, whoever started it.

    `sizes` holds bytes by broker, then topic and partition; a broker that did not answer is
    omitted. `rates` holds the rates in force on each broker that answered, and the cluster default.
    `notes` says what could not be read; a warning among them means that moves or throttles may be
    missing. Units: `seen_at_ms` is milliseconds since 1970, `clock_s` seconds of a clock that never
    goes back.
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
