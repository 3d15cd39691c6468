"""The result of a placement on levels 1 to 4, each with its bound.

What is optimal by theorem, and what is only compared with its bound:
docs/explanation/placement-proofs.md, "Several topics".
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.plan import Level, LevelResult
from reconciler.placement.counts import ClusterLoad, Sample, topic_price


def measure_levels(
    topics: Sequence[Sample], bounds: tuple[int, int], after: ClusterLoad
) -> tuple[LevelResult, ...]:
    """Measure the four levels of topics that are optimal by themselves and levelled together.

    Then the cluster's leaders are as even as they can be if weights are equal, and so are its
    replicas for a single topic; all else is compared with its bound.
    """
    own_leaders = own_replicas = led = held = 0
    for demand, counts, times in topics:
        leaders, replicas = topic_price(demand, counts)
        own_leaders, own_replicas = own_leaders + times * leaders, own_replicas + times * replicas
        led = max(led, _topic_skew(demand.leaders, counts.leaders))
        held = max(held, _topic_skew(demand.replicas, counts.replicas))
    leaders, replicas = after.price()
    least_leaders, least_replicas = bounds
    if len({demand.weights for demand, _, _ in topics}) <= 1:
        least_leaders = leaders
    if sum(times for _, _, times in topics) <= 1:
        least_replicas = replicas
    return (
        LevelResult(Level.TOPIC_LEADERS, own_leaders, own_leaders, led),
        LevelResult(Level.TOPIC_REPLICAS, own_replicas, own_replicas, held),
        LevelResult(Level.CLUSTER_LEADERS, leaders, least_leaders, _skew(after.leaders)),
        LevelResult(Level.CLUSTER_REPLICAS, replicas, least_replicas, _skew(after.replicas)),
    )


def _skew(loads: Sequence[int]) -> int:
    return max(loads, default=0) - min(loads, default=0)


def _topic_skew(existing: Sequence[int], new: Sequence[int]) -> int:
    return _skew([a + b for a, b in zip(existing, new, strict=True)])
