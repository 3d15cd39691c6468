"""The likely skew of Kafka's own placement: a sample of its random placements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.placement.kafka_placement import place_like_kafka
from reconciler.placement.measure import measure_balance
from reconciler.placement.problem import Problem, Wish
from reconciler.show.explain.reasons import Growth

THROWS = 200
REPLICAS_IN_ALL = 200_000
"""The limit of sampled replicas: a wide topic gets fewer samples, but at least 20."""

_FAR_APART = 0x9E3779B97F4A7C15
"""The factor between seeds: 2**64 divided by the golden ratio, since close seeds draw alike."""


@dataclass(frozen=True, slots=True)
class Risked:
    """A max − min over the brokers: its mean over all samples, and the largest."""

    expected: float
    worst: int


@dataclass(frozen=True, slots=True)
class Odds:
    """The unevenness of Kafka's own placement of the same new partitions, over all samples."""

    throws: int
    leaders: Risked
    replicas: Risked


def weigh_odds(growth: Growth) -> Odds | None:
    """Sample Kafka's random placement of a topic's new partitions; None if there are none."""
    new = growth.new
    if not new:
        return None
    wish = Wish("", growth.existing, len(new), len(new[0]))
    problem = Problem(growth.brokers, {}, {}, (wish,))
    ids = [broker.id for broker in growth.brokers]
    size = (len(growth.existing) + len(new)) * wish.replication
    throws = min(THROWS, max(20, REPLICAS_IN_ALL // size))
    if wish.replication > len(ids):  # manual rows on other brokers: Kafka could not place them
        return None
    balances = [
        measure_balance([growth.existing, place_like_kafka(problem, throw * _FAR_APART)[""]], ids)
        for throw in range(throws)
    ]
    leaders = _summarise([balance.leaders.skew for balance in balances])
    return Odds(throws, leaders, _summarise([balance.replicas.skew for balance in balances]))


def _summarise(skews: Sequence[int]) -> Risked:
    return Risked(sum(skews) / len(skews), max(skews))
