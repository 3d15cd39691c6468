"""What Kafka itself would have risked: its dice thrown often enough to tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.placement import Problem, Wish, measure_balance
from reconciler.placement.dice import throw_dice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.plan.explain.reasons import Growth

THROWS = 200
REPLICAS_IN_ALL = 200_000
"""More replicas than this are not thrown: a wide topic gets fewer throws, but never under 20."""

_FAR_APART = 0x9E3779B97F4A7C15  # the first draws of neighbouring seeds are alike


@dataclass(frozen=True, slots=True)
class Risked:
    """A max − min over the brokers: its mean over all throws, and the largest."""

    expected: float
    worst: int


@dataclass(frozen=True, slots=True)
class Odds:
    """How uneven Kafka's own placement of the same new partitions would have been."""

    throws: int
    leaders: Risked
    replicas: Risked


def weigh_odds(growth: Growth) -> Odds | None:
    """Throw Kafka's dice for the new partitions of a topic; None where there are none."""
    new = growth.new
    if not new:
        return None
    wish = Wish("", growth.existing, len(new), len(new[0]))
    problem = Problem(growth.brokers, {}, {}, (wish,))
    ids = [broker.id for broker in growth.brokers]
    size = (len(growth.existing) + len(new)) * wish.replication
    throws = min(THROWS, max(20, REPLICAS_IN_ALL // size))
    if wish.replication > len(ids):
        return None
    balances = [
        measure_balance([growth.existing, throw_dice(problem, throw * _FAR_APART)[""]], ids)
        for throw in range(throws)
    ]
    leaders = _summarise([balance.leaders.skew for balance in balances])
    return Odds(throws, leaders, _summarise([balance.replicas.skew for balance in balances]))


def _summarise(skews: Sequence[int]) -> Risked:
    return Risked(sum(skews) / len(skews), max(skews))
