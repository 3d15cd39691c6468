"""A cluster in figures: the same for every strategy, so that they can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.model.cluster import Assignment
from reconciler.model.moves import LoadKind
from reconciler.model.plan import Balance
from reconciler.placement.loss import Loss, count_unwritable, lose_each_broker, lose_each_rack
from reconciler.placement.measure import Quality, measure_quality
from reconciler.simulate.cluster import SimulatedCluster


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a strategy.

    `topic_…` is max − min of the most uneven topic; `cluster_…` is max − min over all topics
    together. `weight_…` is the same by an amount, in bytes or bytes per second; 0 by default.
    `…_if_broker` and `…_if_rack` are for the loss of the worst single broker or rack. `lost_heir`
    is the most leaders that one broker takes over in the losses that were simulated.
    """

    topic_leaders: float
    cluster_leaders: float
    topic_replicas: float
    cluster_replicas: float
    weight_leaders: float
    weight_replicas: float
    leader_deviation: float
    replica_deviation: float
    misplaced_share: float
    rack_violations: float
    replica_sets: float
    heir_if_broker: float
    under_if_broker: float
    offline_if_broker: float
    heir_if_rack: float
    under_if_rack: float
    offline_if_rack: float
    lost_heir: float
    under_now: float
    offline_now: float


@dataclass(frozen=True, slots=True)
class Measured:
    """The measures of a simulated cluster: its figures, and what they are computed from."""

    figures: Figures
    cluster: Quality
    topics: Mapping[str, Quality]
    brokers: Mapping[int, Loss]
    racks: Mapping[str, Loss]


def measure_simulated(
    simulated: SimulatedCluster, seen: dict[Assignment, Quality] | None = None
) -> Measured:
    """Measure a simulated cluster.

    The leader of a partition is its first living replica. Racks are measured on the rows as placed,
    because a loss does not move replicas. `seen` caches the measures of assignments on the same
    brokers: strategies place most topics alike.
    """
    cluster = _measure(simulated, [topic.assignment for topic in simulated.topics.values()])
    topics = {}
    seen = {} if seen is None else seen
    for name, topic in simulated.topics.items():
        if topic.assignment not in seen:
            seen[topic.assignment] = _measure(simulated, [topic.assignment])
        topics[name] = seen[topic.assignment]
    exposed = tuple(simulated.topics.values())
    brokers = lose_each_broker(exposed, simulated.brokers)
    racks = lose_each_rack(exposed, simulated.brokers)
    under, offline = count_unwritable(exposed, simulated.brokers)
    weight = _weigh(simulated)
    misplaced = sum(topic.misplaced for topic in topics.values())
    figures = Figures(
        topic_leaders=max((q.balance.leaders.skew for q in topics.values()), default=0),
        cluster_leaders=cluster.balance.leaders.skew,
        topic_replicas=max((q.balance.replicas.skew for q in topics.values()), default=0),
        cluster_replicas=cluster.balance.replicas.skew,
        weight_leaders=weight.leaders.skew if weight else 0,
        weight_replicas=weight.replicas.skew if weight else 0,
        leader_deviation=cluster.leader_deviation,
        replica_deviation=cluster.replica_deviation,
        misplaced_share=misplaced / cluster.partitions if cluster.partitions else 0,
        rack_violations=cluster.rack_violations,
        replica_sets=cluster.replica_sets,
        heir_if_broker=_most(loss.worst_heir for loss in brokers.values()),
        under_if_broker=_most(loss.under_min_in_sync for loss in brokers.values()),
        offline_if_broker=_most(loss.offline for loss in brokers.values()),
        heir_if_rack=_most(loss.worst_heir for loss in racks.values()),
        under_if_rack=_most(loss.under_min_in_sync for loss in racks.values()),
        offline_if_rack=_most(loss.offline for loss in racks.values()),
        lost_heir=_most(loss.worst_heir for loss in simulated.losses),
        under_now=under,
        offline_now=offline,
    )
    return Measured(figures, cluster, topics, brokers, racks)


def _weigh(simulated: SimulatedCluster) -> Balance | None:
    """Measure amounts on the eligible brokers; a dead broker leads nothing."""
    if simulated.weights.by is LoadKind.COUNT:
        return None
    living = {broker.id for broker in simulated.living}
    rows = (
        (name, tuple(tuple(b for b in row if b in living) for row in topic.assignment))
        for name, topic in simulated.topics.items()
    )
    able = [broker.id for broker in simulated.living if not broker.cordoned]
    return simulated.weights.measure(rows, able)


def _most(counts: Iterable[int]) -> int:
    return max(counts, default=0)


def _measure(simulated: SimulatedCluster, assignments: list[Assignment]) -> Quality:
    placed = measure_quality(assignments, simulated.brokers)
    if len(simulated.living) == len(simulated.brokers):
        return placed
    living = {broker.id for broker in simulated.living}
    led = [tuple(tuple(b for b in row if b in living) for row in rows) for rows in assignments]
    serving = measure_quality(led, simulated.brokers)
    return Quality(
        placed.partitions,
        serving.balance,
        serving.leader_deviation,
        serving.replica_deviation,
        serving.misplaced,
        placed.rack_violations,
        placed.replica_sets,
    )
