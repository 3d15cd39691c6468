"""Strategy `striped`: Kafka's two published algorithms over the sorted broker list; no level is
optimised.

Leaders go round the list; followers follow at a shift that grows with every round. An existing
topic continues its stripe from the leader of its partition 0; a new topic starts where the cluster
has the fewest leaders.

Source: AdminUtils.assignReplicasToBrokers (rack-unaware, and rack-aware as of KIP-36). Differences:
the list is always sorted, the shift of partition p does not depend on when p was added, and more
replicas than racks are dealt to the racks as evenly as their sizes allow
(docs/explanation/placement.md, "The problem").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b

from reconciler.model.cluster import Assignment, Replicas
from reconciler.placement.problem import Problem, Wish


def place_striped(problem: Problem) -> Mapping[str, Assignment]:
    """Place every wish, expansions before new topics, each on top of what was placed before it.

    Returns the new rows by topic. Cost: O(brokers) for the start, O(replicas) amortised for rows.
    """
    leaders = Counter(problem.leaders)
    placed = {}
    for wish in sorted(problem.wishes, key=lambda wish: (not wish.existing, wish.topic)):
        stripe = _Stripe(problem.racks(wish), wish.replication)
        rows = stripe.rows(wish, stripe.start_of(wish, leaders))
        leaders.update(row[0] for row in rows)
        placed[wish.topic] = rows
    return placed


class _Stripe:
    """The broker list of one wish, racks alternating, and how many replicas a rack may hold."""

    def __init__(self, racks: Mapping[str, tuple[int, ...]], replication: int) -> None:
        # One broker of each rack in turn; a rack that has run out is passed over.
        longest = max(map(len, racks.values()), default=0)
        self.brokers = tuple(
            ids[i] for i in range(longest) for ids in racks.values() if i < len(ids)
        )
        self.rack_of = {broker: rack for rack, ids in racks.items() for broker in ids}
        self.racks = len(racks)
        self.floor = _deal({rack: len(ids) for rack, ids in racks.items()}, replication)
        self.extras = replication - sum(self.floor.values())
        self.size = {rack: len(ids) for rack, ids in racks.items()}
        self.replication = replication

    def start_of(self, wish: Wish, leaders: Mapping[int, int]) -> int:
        """Return the index at which partition 0 has, or shall have, its leader."""
        if wish.existing:
            first = wish.existing[0][0]
            if first in self.brokers:
                return self.brokers.index(first)
        # Full rounds meet every broker alike, so only the rest of a round is compared, in a window
        # that slides over the list. Ties go by a hash of the name.
        n = len(self.brokers)
        window = wish.count % n
        loads = [leaders.get(broker, 0) for broker in self.brokers]
        met = sum(loads[:window])
        tie = int.from_bytes(blake2b(wish.topic.encode(), digest_size=8).digest(), "big")
        best = (met, tie % n, 0)
        for start in range(1, n):
            met += loads[(start + window - 1) % n] - loads[start - 1]
            best = min(best, (met, (start + tie) % n, start))
        return (best[2] - len(wish.existing)) % n

    def rows(self, wish: Wish, start: int) -> Assignment:
        first = len(wish.existing)
        return tuple(self._row(start, p) for p in range(first, first + wish.count))

    def _row(self, start: int, partition: int) -> Replicas:
        n = len(self.brokers)
        leader_index = (start + partition) % n
        shift = (start + partition // n) * self.racks
        row = [self.brokers[leader_index]]
        held = Counter([self.rack_of[row[0]]])
        step = 0
        while len(row) < self.replication:
            broker = self.brokers[(leader_index + 1 + (shift + step) % (n - 1)) % n]
            rack = self.rack_of[broker]
            if broker not in row and self._has_room(rack, held):
                row.append(broker)
                held[rack] += 1
            step += 1
        return tuple(row)

    def _has_room(self, rack: str, held: Mapping[str, int]) -> bool:
        """Return whether one more replica in `rack` still leaves an even spread reachable."""
        taken = held.get(rack, 0)
        if taken < self.floor[rack]:
            return True
        extras_taken = sum(max(held.get(r, 0) - floor, 0) for r, floor in self.floor.items())
        return taken == self.floor[rack] and taken < self.size[rack] and extras_taken < self.extras


def _deal(sizes: Mapping[str, int], replication: int) -> dict[str, int]:
    """Deal one replica to every rack with room for as long as all of those can get one."""
    floor = dict.fromkeys(sizes, 0)
    left = replication
    while roomy := [rack for rack in sizes if floor[rack] < sizes[rack]]:
        if len(roomy) > left:
            break
        for rack in roomy:
            floor[rack] += 1
        left -= len(roomy)
    return floor
