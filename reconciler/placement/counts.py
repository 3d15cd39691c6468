"""A problem in count space: how many leaders and replicas of each topic go to each broker.

Brokers are indices here, in the order of their ids. Partitions play no part: counts that obey
`RackRule` can always be turned into partitions, so all levels are optimised on a few numbers per
broker.

The rack rule: docs/explanation/placement.md, "The problem". The theorem:
docs/explanation/placement-proofs.md, "Counts first, partitions last". The tie-breaking:
docs/explanation/placement.md, "Same input, same plan".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from reconciler.placement.problem import Problem, Wish, count_load

_WORD = 2**64 - 1


@dataclass(frozen=True, slots=True)
class RackRule:
    """How many replicas of one partition each rack takes: `fewest` to `most`, by rack.

    The most even division that the sizes of the racks allow: one replica is dealt to every rack
    with a broker left for as long as all of these can get one; what remains goes to different
    racks among those with a broker left.
    """

    racks: tuple[tuple[int, ...], ...]
    rack_of: tuple[int, ...]
    fewest: tuple[int, ...]
    most: tuple[int, ...]

    @classmethod
    def deal(cls, racks: tuple[tuple[int, ...], ...], replication: int) -> RackRule:
        """Deal the replicas of one partition. `replication` is at most the number of brokers."""
        sizes = [len(rack) for rack in racks]
        rounds, left = 0, replication
        while left and left >= (roomy := sum(size > rounds for size in sizes)):
            left -= roomy
            rounds += 1
        fewest = tuple(min(size, rounds) for size in sizes)
        most = tuple(
            low + (left > 0 and size > low) for size, low in zip(sizes, fewest, strict=True)
        )
        rack_of = {b: j for j, rack in enumerate(racks) for b in rack}
        return cls(racks, tuple(rack_of[b] for b in sorted(rack_of)), fewest, most)


@dataclass(frozen=True)
class Demand:
    """One wish in count space.

    `count` is its new partitions, `copies` its new replicas, `weight` what one replica adds to the
    load of the cluster, and `leader_weight` what one leader adds to that of leaders. `leaders` and
    `replicas` are what the topic has on each broker.
    """

    wish: Wish
    count: int
    copies: int
    weight: int
    leader_weight: int
    leaders: tuple[int, ...]
    replicas: tuple[int, ...]
    rule: RackRule
    ids: tuple[int, ...]

    @property
    def kind(self) -> tuple[int, int, bool, tuple[int, int]]:
        """What new topics have to share to be exchangeable."""
        wish = self.wish
        return wish.count, wish.replication, wish.rack_aware, self.weights

    @property
    def weights(self) -> tuple[int, int]:
        """What one leader weighs, and what one replica does."""
        return self.leader_weight, self.weight

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """The tie-breaking order of brokers: by a hash of the topic's name."""
        return tie_ranks(self.wish.topic, self.ids)

    @cached_property
    def rack_bounds(self) -> tuple[tuple[int, int], ...]:
        """Fewest and most new replicas of each rack, over all new partitions."""
        both = zip(self.rule.fewest, self.rule.most, strict=True)
        return tuple((low * self.count, high * self.count) for low, high in both)


@dataclass(slots=True)
class Counts:
    """New leaders and new replicas (leaders among them) of one topic on each broker."""

    leaders: list[int]
    replicas: list[int]

    @classmethod
    def of(cls, rows: Iterable[Sequence[int]], brokers: int) -> Counts:
        """Count rows of broker indices."""
        leaders, replicas = [0] * brokers, [0] * brokers
        for row in rows:
            leaders[row[0]] += 1
            for b in row:
                replicas[b] += 1
        return cls(leaders, replicas)

    def copy(self) -> Counts:
        return Counts(self.leaders.copy(), self.replicas.copy())


Sample = tuple[Demand, Counts, int]
"""A topic whose own levels are optimal, and how many topics are like it."""


@dataclass(slots=True)
class ClusterLoad:
    """Leaders and replicas of the entire cluster on each broker, in units of the wishes' weights.

    The price of a load y on broker b is `scales[b]` * y * y: if capacities differ, the scale is
    their inverse, and the sum is least when loads are proportional to capacities.
    """

    leaders: list[int]
    replicas: list[int]
    scales: tuple[int, ...]

    def add(self, demand: Demand, counts: Counts, sign: int = 1) -> None:
        """Add what a topic brings, or take it away again with a sign of -1."""
        lead, hold = sign * demand.leader_weight, sign * demand.weight
        self.leaders = [y + lead * n for y, n in zip(self.leaders, counts.leaders, strict=True)]
        self.replicas = [y + hold * n for y, n in zip(self.replicas, counts.replicas, strict=True)]

    def copy(self) -> ClusterLoad:
        return ClusterLoad(self.leaders.copy(), self.replicas.copy(), self.scales)

    def price(self) -> tuple[int, int]:
        """Return the cluster's two levels: leaders, then replicas."""
        return squares(self.leaders, self.scales), squares(self.replicas, self.scales)


def squares(loads: Iterable[int], scales: Iterable[int]) -> int:
    """Return the (scaled) sum of squares, which is what every level minimises."""
    return sum(scale * y * y for y, scale in zip(loads, scales, strict=True))


def plain_squares(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the sum of squares of the sums of two lists."""
    return sum((a + b) ** 2 for a, b in zip(first, second, strict=True))


def topic_price(demand: Demand, counts: Counts) -> tuple[int, int]:
    """Return a topic's two levels: leaders, then replicas."""
    return (
        plain_squares(demand.leaders, counts.leaders),
        plain_squares(demand.replicas, counts.replicas),
    )


def tie_ranks(topic: str, ids: Iterable[int]) -> tuple[int, ...]:
    """Return a rank for each broker that depends on the topic's name and the broker's id alone.

    One hash per topic, not one per broker. Each step is a bijection of 64-bit words (the factors
    are odd), so different ids never get the same rank.
    """
    digest = blake2b(topic.encode(), digest_size=24).digest()
    factor, shift, mix = (int.from_bytes(digest[i : i + 8], "big") | 1 for i in (0, 8, 16))
    spread = ((factor * (i + 1) + shift) & _WORD for i in ids)
    return tuple(((s ^ (s >> 32)) * mix) & _WORD for s in spread)


def list_demands(problem: Problem) -> tuple[list[Demand], ClusterLoad]:
    """Restate a problem in count space: wishes in their order of placement, and the load.

    Expansions come before new topics, then names decide, so that the order in which wishes and
    brokers were given plays no part.
    """
    ids = tuple(sorted(broker.id for broker in problem.brokers))
    index = {b: i for i, b in enumerate(ids)}
    nothing = (0,) * len(ids)
    rules: dict[tuple[bool, int], RackRule] = {}
    demands = []
    for wish in sorted(problem.wishes, key=lambda wish: (not wish.existing, wish.topic)):
        if not wish.count:
            continue
        key = (wish.rack_aware, wish.replication)
        if key not in rules:
            racks = tuple(tuple(index[b] for b in rack) for rack in problem.racks(wish).values())
            rules[key] = RackRule.deal(racks, wish.replication)
        leaders = replicas = nothing
        if wish.existing:
            led, held = count_load([wish.existing])
            leaders, replicas = tuple(led[b] for b in ids), tuple(held[b] for b in ids)
        copies = wish.count * wish.replication
        weights = wish.weight, wish.leader_weight
        demands.append(
            Demand(wish, wish.count, copies, *weights, leaders, replicas, rules[key], ids)
        )
    leaders_now = [problem.leaders.get(b, 0) for b in ids]
    replicas_now = [problem.replicas.get(b, 0) for b in ids]
    return demands, ClusterLoad(leaders_now, replicas_now, problem.scales())
