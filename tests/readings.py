"""Readings for tests, with short spellings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.model.cluster import (
    Broker,
    RateSource,
    Reassignment,
    ThrottleList,
    ThrottleRate,
    ThrottleSide,
)
from reconciler.model.moves import MovesReading

MIB = 1 << 20
LEADER, FOLLOWER = ThrottleSide.LEADER, ThrottleSide.FOLLOWER
BROKERS = tuple(Broker(number, f"rack{number % 2}") for number in range(1, 6))


def move(topic: str = "t", partition: int = 0, **other: Any) -> Reassignment:
    """Return a move of a partition from broker 1 to 4; brokers 2 and 3 stay."""
    named: dict[str, Any] = {
        "replicas": (4, 2, 3, 1),
        "adding": (4,),
        "removing": (1,),
        "leader": 1,
        "in_sync": (1, 2, 3),
    }
    return Reassignment(topic, partition, **(named | other))


def sizes(**by_broker: Mapping[tuple[str, int], int]) -> dict[int, Mapping[tuple[str, int], int]]:
    """Return sizes by broker: `b4={("t", 0): 5}`. Other brokers answer that they hold nothing."""
    named = {int(broker.removeprefix("b")): held for broker, held in by_broker.items()}
    return {broker.id: named.get(broker.id, {}) for broker in BROKERS}


def copied(done: int, to_do: int = 100) -> dict[int, Mapping[tuple[str, int], int]]:
    """Return the sizes of partition 0 of `t` on the leader and the destination of `move()`."""
    return sizes(b1={("t", 0): to_do}, b4={("t", 0): done})


def rate(broker: int | None, amount: int, side: ThrottleSide = FOLLOWER) -> ThrottleRate:
    source = RateSource.CLUSTER_DEFAULT if broker is None else RateSource.BROKER
    return ThrottleRate(broker, side, amount, source)


def default(amount: int) -> tuple[ThrottleRate, ThrottleRate]:
    """Return the cluster default as a run of moves sets it."""
    return rate(None, amount, LEADER), rate(None, amount + (amount > 0))


def listed(topic: str, replicas: str, side: ThrottleSide = FOLLOWER) -> ThrottleList:
    return ThrottleList(topic, side, replicas)


def reading(*moves: Reassignment, **other: Any) -> MovesReading:
    named: dict[str, Any] = {
        "cluster": "prod-eu",
        "cluster_id": "5L6g3nShT-eMCtK--X86sw",
        "seen_at_ms": 1_763_856_000_000,
        "clock_s": 100.0,
        "brokers": BROKERS,
        "reassignments": moves,
        "sizes": sizes(),
        "rates": (),
        "lists": (),
    }
    return MovesReading(**(named | other))
