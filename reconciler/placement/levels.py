"""What a placement reached on each level, and what could be reached at best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.placement.counts import topic_price
from reconciler.placement.problem import Level, LevelResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reconciler.placement.joint import Estate


def measure_levels(estate: Estate) -> tuple[LevelResult, ...]:
    """Measure the four levels.

    The topics' levels are optimal by construction, and so are the cluster's leaders where weights
    are equal, and everything for a single topic.
    """
    asks, load = estate.asks, estate.load
    topics = [topic_price(ask, counts) for ask, counts in zip(asks, estate.placed, strict=True)]
    leaders, replicas = estate.load.price()
    least_leaders, least_replicas = estate.bounds()
    if len({ask.weight for ask in asks}) <= 1:
        least_leaders = leaders
    if len(asks) <= 1:
        least_replicas = replicas
    led = _topic_skew((ask.leaders, n.leaders) for ask, n in zip(asks, estate.placed, strict=True))
    held = _topic_skew(
        (ask.replicas, n.replicas) for ask, n in zip(asks, estate.placed, strict=True)
    )
    own_leaders, own_replicas = sum(t[0] for t in topics), sum(t[1] for t in topics)
    return (
        LevelResult(Level.TOPIC_LEADERS, own_leaders, own_leaders, led),
        LevelResult(Level.TOPIC_REPLICAS, own_replicas, own_replicas, held),
        LevelResult(Level.CLUSTER_LEADERS, leaders, least_leaders, skew(load.leaders)),
        LevelResult(Level.CLUSTER_REPLICAS, replicas, least_replicas, skew(load.replicas)),
    )


def skew(loads: Sequence[int]) -> int:
    """Return max − min."""
    return max(loads, default=0) - min(loads, default=0)


def _topic_skew(pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> int:
    return max((skew([a + b for a, b in zip(*pair, strict=True)]) for pair in pairs), default=0)
