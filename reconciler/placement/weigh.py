"""The weights of replicas on their brokers: by count, or by size or rate.

Weights only change the balance of the cluster: every topic stays even by count. Internal topics
have no weight: Kafka creates them at any time, and a plan must not depend on that.

What plans show of it: docs/placement.md, "Weights and capacities".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import Literal

from reconciler.model.cluster import Assignment, ClusterState
from reconciler.model.plan import Balance, Spread
from reconciler.placement.problem import count_load
from reconciler.units import count

Load = Mapping[int, int]
Rows = Iterable[tuple[str, Assignment]]

Weigh = Literal["count", "size", "rate"]

_UNITS = {"count": 1, "size": 2**20, "rate": 2**10}
"""MiB, and KiB per second, so that weights are small integers."""

_FIELDS = {"size": "size_bytes", "rate": "write_bytes_per_s"}


def name_estimates(by: str, unknown: int) -> str:
    """Say which amounts are estimated. `unknown` counts topics of unknown size or rate."""
    topics = f" and {count(unknown, 'topic')} of unknown {by}" if unknown else ""
    return f"estimated for new partitions{topics}"


class ReplicaWeights:
    """Weighs the replicas of one cluster. Units: replicas, MiB, or KiB per second; at least 1.

    Amounts are not rounded: bytes, or bytes per second. `unknown` counts the topics without any.
    """

    def __init__(self, state: ClusterState, by: Weigh = "count") -> None:
        self.by = by
        topics = state.user_topics
        self._amounts: dict[str, Sequence[int]] = {}
        if by != "count":
            amounts = {name: getattr(topic, _FIELDS[by]) for name, topic in topics.items()}
            self._amounts = {n: known for n, known in amounts.items() if any(a >= 0 for a in known)}
        self.unknown = len(topics) - len(self._amounts)
        # The median: one hot or large partition must not make every new replica look like it.
        self._typical = {
            name: max(1, round(median(self._weigh(amount) for amount in known if amount >= 0)))
            for name, known in self._amounts.items()
        }
        self._usual = round(median(self._typical.values())) if self._typical else 1
        self._medians = {
            name: round(median(amount for amount in known if amount >= 0))
            for name, known in self._amounts.items()
        }
        self._median = round(median(self._medians.values())) if self._medians else 0

    @property
    def is_blank(self) -> bool:
        """Return whether no weights are known."""
        return self.by != "count" and not self._typical

    @property
    def asks(self) -> str:
        """Say that no weights are known, and what to do."""
        return (
            f"no {self.by} is known of any partition; use --against with a snapshot that has "
            f"{_FIELDS[self.by]}"
        )

    def weigh_topic(self, name: str) -> int:
        """Estimate the weight of one more replica of a topic: the median of its replicas."""
        return 1 if self.by == "count" else self._typical.get(name, self._usual)

    def weigh_load(self, rows: Rows) -> tuple[Load, Load]:
        """Return the weights of leaders and of replicas by broker id, from rows by topic."""
        if self.by == "count":
            return count_load(assignment for _, assignment in rows)
        return self._add_up(rows, self._weigh, self.weigh_topic)

    def add_amounts(self, rows: Rows) -> tuple[Load, Load]:
        """Return the amounts of leaders and of replicas by broker id, from rows by topic.

        A partition of unknown size counts as the median of its topic, or of all topics.
        """
        return self._add_up(rows, int, lambda name: self._medians.get(name, self._median))

    def measure(self, rows: Rows, brokers: Collection[int]) -> Balance:
        """Measure the amounts on `brokers`, those that hold nothing included."""
        leaders, replicas = (
            [load.get(broker, 0) for broker in brokers] for load in self.add_amounts(rows)
        )
        return Balance(
            Spread(min(leaders, default=0), max(leaders, default=0)),
            Spread(min(replicas, default=0), max(replicas, default=0)),
        )

    def _weigh(self, amount: int) -> int:
        return max(1, round(amount / _UNITS[self.by]))

    def _add_up(
        self, rows: Rows, weigh: Callable[[int], int], estimate: Callable[[str], int]
    ) -> tuple[Load, Load]:
        leaders: Counter[int] = Counter()
        replicas: Counter[int] = Counter()
        for name, assignment in rows:
            known = self._amounts.get(name, ())
            for number, row in enumerate(assignment):
                amount = known[number] if number < len(known) else -1
                weight = weigh(amount) if amount >= 0 else estimate(name)
                leaders.update(dict.fromkeys(row[:1], weight))
                replicas.update(dict.fromkeys(row, weight))
        return leaders, replicas
