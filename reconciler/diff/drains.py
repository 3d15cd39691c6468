"""What the keys of a cluster move: topics on drained brokers, and internal topics that grow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from reconciler.errors import Location
from reconciler.model.cluster import Assignment, ClusterState, TopicSpec


@dataclass(frozen=True, slots=True)
class Drain:
    """Brokers to drain, and the line that asks for it. No brokers, no drain."""

    brokers: frozenset[int]
    where: Location

    def touches(self, rows: Assignment) -> bool:
        """Return whether any row has a replica on a broker to drain."""
        return any(not self.brokers.isdisjoint(row) for row in rows)


def raise_internal_topics(
    factor: int | None, where: Location, cluster: ClusterState
) -> Iterator[TopicSpec]:
    """Yield a spec for each internal topic with a row of fewer than `factor` replicas.

    It asks for as many replicas as the longest row has, if these are more: no row gives one up.
    A row in flight counts without the replicas that are added.
    """
    current = {(each.topic, each.partition): each.current for each in cluster.reassignments}
    for name, topic in sorted(cluster.topics.items()) if factor else ():
        now = [len(current.get((name, n), row)) for n, row in enumerate(topic.assignment)]
        if factor and topic.internal and min(now, default=factor) < factor:
            longest = max(map(len, topic.assignment))
            yield TopicSpec(name, where, replication_factor=max(factor, longest))


def keep_drained_topics(
    drain: Drain, cluster: ClusterState, planned: Collection[str], specs: Iterable[TopicSpec]
) -> Iterator[TopicSpec]:
    """Yield a spec that asks for no other change for every other topic on a broker to drain.

    In: the names of the `planned` topics, and all `specs` of the cluster. A broker is empty only
    without unmanaged topics and Kafka's internal ones. A topic to be deleted stays. Manual rows are
    kept: a drain chooses no others.
    """
    written = {spec.name: spec for spec in specs}
    rows = {each.topic: each.replicas for each in cluster.reassignments}
    for name, topic in sorted(cluster.topics.items()):
        spec = written.get(name)
        if name in planned or (spec is not None and spec.absent):
            continue
        if drain.touches(topic.assignment) or not drain.brokers.isdisjoint(rows.get(name, ())):
            if spec is None:
                yield TopicSpec(name, drain.where)
            else:
                yield replace(spec, partitions=None, replication_factor=None)
