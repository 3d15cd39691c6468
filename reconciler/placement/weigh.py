"""The weights of replicas and leaders on their brokers: by count, or by bytes or traffic.

Weights only change the balance of the cluster: every topic stays even by count. Internal topics
have no weight: Kafka creates them at any time, and a plan must not depend on that.

What each kind means, and what plans show of it: docs/explanation/placement.md, "Weights and
capacities".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from statistics import median

from reconciler.model.cluster import Assignment, ClusterState, TopicState
from reconciler.model.moves import LOAD_FIELDS, LoadKind
from reconciler.model.plan import Balance, Level, Spread
from reconciler.placement.problem import count_load
from reconciler.units import count

Load = Mapping[int, int]
Rows = Iterable[tuple[str, Assignment]]

_UNITS = {LoadKind.DISK: 2**20, LoadKind.WRITE: 2**10, LoadKind.READ: 2**10}
"""MiB, and KiB per second, so that weights are small integers."""

_NOUNS = {LoadKind.DISK: "size", LoadKind.WRITE: "write rate", LoadKind.READ: "read rate"}


def name_estimates(by: LoadKind, unknown: int) -> str:
    """Say which amounts are estimated. `unknown` counts topics of unknown size or rate."""
    topics = f" and {count(unknown, 'topic')} of unknown {_NOUNS[by]}" if unknown else ""
    return f"estimated for new partitions{topics}"


class ReplicaWeights:
    """Weighs replicas and leaders of one cluster. Units: MiB, or KiB per second; at least 1.

    What does not bear the load counts 1: leaders by disk, replicas by read, and both by count.
    Amounts are not rounded: bytes, or bytes per second. `unknown` counts the topics without any.
    """

    def __init__(self, state: ClusterState, by: LoadKind = LoadKind.COUNT) -> None:
        self.by = by
        topics = state.user_topics
        self._amounts: dict[str, Sequence[int]] = {}
        if by is not LoadKind.COUNT:
            amounts = {name: tuple(_list_amounts(topic, by)) for name, topic in topics.items()}
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
        return self.by is not LoadKind.COUNT and not self._typical

    @property
    def asks(self) -> str:
        """Say that no weights are known, and what to do."""
        return (
            f"no {_NOUNS[self.by]} is known of any partition; use --against with a snapshot that "
            f"has {LOAD_FIELDS[self.by]}"
        )

    @property
    def measured(self) -> frozenset[Level]:
        """The levels whose loads are amounts, which change all the time."""
        levels = {
            Level.CLUSTER_LEADERS: self.by.is_on_leaders,
            Level.CLUSTER_REPLICAS: self.by.is_on_replicas,
        }
        return frozenset(level for level, amounts in levels.items() if amounts)

    def weigh_topic(self, name: str) -> tuple[int, int]:
        """Estimate the weight of one more leader and replica of a topic: the median of its own."""
        return self._load_of(self._typical.get(name, self._usual))

    def weigh_load(self, rows: Rows) -> tuple[Load, Load]:
        """Return the weights of leaders and of replicas by broker id, from rows by topic."""
        if self.by is LoadKind.COUNT:
            return count_load(assignment for _, assignment in rows)
        return self._add_up(rows, self._weigh, lambda name: self._typical.get(name, self._usual))

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

    def _load_of(self, amount: int) -> tuple[int, int]:
        """Return what a leader and a replica bear of the amount of their partition."""
        by = self.by
        return amount if by.is_on_leaders else 1, amount if by.is_on_replicas else 1

    def _add_up(
        self, rows: Rows, weigh: Callable[[int], int], estimate: Callable[[str], int]
    ) -> tuple[Load, Load]:
        leaders: Counter[int] = Counter()
        replicas: Counter[int] = Counter()
        for name, assignment in rows:
            known = self._amounts.get(name, ())
            for number, row in enumerate(assignment):
                amount = known[number] if number < len(known) else -1
                lead, hold = self._load_of(weigh(amount) if amount >= 0 else estimate(name))
                leaders.update(dict.fromkeys(row[:1], lead))
                replicas.update(dict.fromkeys(row, hold))
        return leaders, replicas


def _list_amounts(topic: TopicState, by: LoadKind) -> Iterator[int]:
    """Yield what each partition bears, -1 if it is unknown.

    What followers fetch, their leader sends, as far as the write rate is known.
    """
    amounts: Sequence[int] = getattr(topic, LOAD_FIELDS[by])
    if by is not LoadKind.READ:
        yield from amounts
        return
    writes = chain(topic.write_bytes_per_s, repeat(0))
    for read, wrote, row in zip(amounts, writes, topic.assignment, strict=False):
        yield read + max(wrote, 0) * (len(row) - 1) if read >= 0 else -1
