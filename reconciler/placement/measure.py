"""Measures of an assignment's balance. It shares no code with the strategies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import sqrt

from reconciler.model.cluster import Assignment, Broker, Replicas
from reconciler.model.plan import Balance, Spread


@dataclass(frozen=True, slots=True)
class Quality:
    """How good an assignment is, of one topic or of all topics of a cluster together.

    Balance, deviations and `misplaced` are over the brokers that may take something new; what
    others hold is in none of them. A deviation is the standard deviation of the counts.
    `rack_violations` counts partitions that are not spread over the racks as evenly as these
    allow, `replica_sets` the different sets of brokers that hold a partition.
    """

    partitions: int
    balance: Balance
    leader_deviation: float
    replica_deviation: float
    misplaced: int
    rack_violations: int
    replica_sets: int

    @property
    def misplaced_share(self) -> float:
        """Misplaced partitions in proportion to all."""
        return self.misplaced / self.partitions if self.partitions else 0.0


def measure_balance(assignments: Iterable[Assignment], brokers: Collection[int]) -> Balance:
    """Measure preferred leaders and replicas over `brokers`, those that hold nothing included."""
    leaders, replicas = _count(list(chain.from_iterable(assignments)))
    return Balance(_spread(leaders, brokers), _spread(replicas, brokers))


def measure_quality(assignments: Iterable[Assignment], brokers: Collection[Broker]) -> Quality:
    """Measure everything there is to say of topics on the brokers of their cluster.

    Cost: about 2 s for a million partitions.
    """
    rows = list(chain.from_iterable(assignments))
    able = [broker.id for broker in brokers if broker.alive and not broker.cordoned]
    leaders, replicas = _count(rows)
    return Quality(
        partitions=len(rows),
        balance=Balance(_spread(leaders, able), _spread(replicas, able)),
        leader_deviation=_deviate(leaders, able),
        replica_deviation=_deviate(replicas, able),
        misplaced=count_misplaced([leaders[broker] for broker in able]),
        rack_violations=_count_violations(rows, brokers),
        replica_sets=len(set(map(frozenset, rows))),
    )


def count_misplaced(leaders: Sequence[int]) -> int:
    """Return the fewest partitions that would have to lead elsewhere for leaders to be even.

    `leaders` holds the leaders on each broker; even is a max − min of at most one. So of D leaders
    on N brokers, D mod N brokers keep one more than D div N, those that have the most, and what
    any has beyond that is misplaced.
    If leaders went round the brokers in one order, and later ones went on round them in another,
    every broker has q, q + 1 or q + 2. As many partitions are misplaced as there are pairs of a
    broker too many and a broker too few: never more than N div 2, however the orders differ.
    """
    if not leaders:
        return 0
    even, extra = divmod(sum(leaders), len(leaders))
    most_first = sorted(leaders, reverse=True)
    return sum(max(0, held - even - (n < extra)) for n, held in enumerate(most_first))


def _count(rows: Sequence[Replicas]) -> tuple[Counter[int], Counter[int]]:
    leaders = Counter([row[0] for row in rows if row])
    return leaders, Counter(chain.from_iterable(rows))


def _spread(counts: Mapping[int, int], brokers: Collection[int]) -> Spread:
    held = [counts.get(broker, 0) for broker in brokers]
    return Spread(min(held, default=0), max(held, default=0))


def _deviate(counts: Mapping[int, int], brokers: Collection[int]) -> float:
    held = [counts.get(broker, 0) for broker in brokers]
    n, total, squares = len(held), sum(held), sum(count * count for count in held)
    return sqrt(n * squares - total * total) / n if held else 0.0


def _count_violations(rows: Iterable[Replicas], brokers: Iterable[Broker]) -> int:
    """Count rows with a rack that holds two more replicas than one if a broker is free.

    A broker with an unknown rack, because it was removed, counts in favour of the row.
    """
    known = [b for b in brokers if b.rack is not None or b.alive]
    rack_of = {b.id: (b.rack or "", b.alive and not b.cordoned) for b in known}
    room = Counter(rack for rack, able in rack_of.values() if able)
    if len({rack for rack, _ in rack_of.values()}) <= 1:
        return 0
    nowhere = (None, False)
    patterns = Counter(
        [tuple(sorted([rack_of.get(broker, nowhere) for broker in row], key=str)) for row in rows]
    )
    return sum(count for pattern, count in patterns.items() if not _is_even(pattern, room))


def _is_even(pattern: Iterable[tuple[str | None, bool]], room: Mapping[str, int]) -> bool:
    """Judge one row, given as racks and whether the broker there may take something new."""
    held: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    unknown = 0
    for rack, able in pattern:
        if rack is None:
            unknown += 1
        else:
            held[rack] += 1
            taken[rack] += able
    free = [held[rack] for rack in room if taken[rack] < room[rack]]
    for _ in range(unknown):
        if free:
            free[free.index(min(free))] += 1
    return max(held.values(), default=0) - min(free, default=max(held.values(), default=0)) <= 1
