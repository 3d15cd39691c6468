"""The weights of replicas on their brokers: by count, or by size or rate from a snapshot.

Weights only change the balance of the cluster: every topic stays even by count. Internal topics
have no weight: Kafka creates them at any time, and a plan must not depend on that.
"""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Literal

from reconciler.placement import count_load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconciler.model import Assignment, ClusterState, TopicState

    Load = Mapping[int, int]

Weigh = Literal["count", "size", "rate"]

_UNITS = {"size": 2**20, "rate": 2**10}
"""MiB, and KiB per second, so that weights are small integers."""


class ReplicaWeights:
    """Weighs the replicas of one cluster. Units: replicas, MiB, or KiB per second; at least 1."""

    def __init__(self, state: ClusterState, by: Weigh = "count") -> None:
        self._topics = state.user_topics
        self._by = by
        # The median: one hot or large partition must not make every new replica look like it.
        self._typical = {
            name: max(1, round(median(weights)))
            for name, topic in self._topics.items()
            if (weights := self._partitions(topic))
        }
        self._usual = round(median(self._typical.values())) if self._typical else 1

    @property
    def is_blank(self) -> bool:
        """Return whether no weights are known."""
        return self._by != "count" and not self._typical

    def weigh_topic(self, name: str) -> int:
        """Estimate the weight of one more replica of a topic: the median of its replicas."""
        return 1 if self._by == "count" else self._typical.get(name, self._usual)

    def weigh_load(self, manual: Iterable[tuple[str, Assignment]]) -> tuple[Load, Load]:
        """Return the weights of leaders and of replicas by broker id, with `manual` rows."""
        rows = [(name, topic.assignment) for name, topic in self._topics.items()]
        if self._by == "count":
            return count_load(assignment for _, assignment in (*rows, *manual))
        leaders: Counter[int] = Counter()
        replicas: Counter[int] = Counter()
        for name, assignment in (*rows, *manual):
            known = self._partitions(self._topics[name]) if name in self._topics else ()
            for number, row in enumerate(assignment):
                weight = known[number] if number < len(known) else self.weigh_topic(name)
                leaders.update(dict.fromkeys(row[:1], weight))
                replicas.update(dict.fromkeys(row, weight))
        return leaders, replicas

    def _partitions(self, topic: TopicState) -> tuple[int, ...]:
        """Return the weight of each partition, empty if it is unknown."""
        if self._by == "count":
            return ()
        known = topic.size_bytes if self._by == "size" else topic.rate_bytes_per_s
        return tuple(max(1, round(amount / _UNITS[self._by])) for amount in known)
