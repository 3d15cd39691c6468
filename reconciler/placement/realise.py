"""Counts become rows, one partition at a time, by a greedy that never fails; choices serve level 5.

Counts can be realised if leaders sum up to the partitions D, leaders <= replicas <= D on every
broker, and each rack's replicas are within D times the bounds of one row. So a row only has to
leave counts that obey the same conditions for D - 1:

- any broker that still needs leaders can lead;
- a broker that needs a replica of each of the partitions left is taken;
- each rack takes what keeps it within its bounds.

All other choices go to the next leaders.

Proof by induction, which is this algorithm: docs/explanation/placement-proofs.md, "Counts first,
partitions last".
"""

from __future__ import annotations

from reconciler.placement.counts import Counts, Demand
from reconciler.placement.next_leaders import NextLeaders, arrange


def realise(demand: Demand, counts: Counts, table: NextLeaders) -> list[list[int]]:
    """Return rows of broker indices that have exactly these counts, and count them in the table.

    Cost: O(brokers) per partition.
    """
    ranks, rack_of, followers = demand.ranks, demand.rule.rack_of, demand.wish.replication - 1
    leaders, replicas = counts.leaders.copy(), counts.replicas.copy()
    held = [sum(replicas[b] for b in rack) for rack in demand.rule.racks]
    busy = [b for b, n in enumerate(replicas) if n]
    leader: int | None = None
    rows = []
    for left in range(demand.count, 0, -1):
        # Every broker that still needs leaders could lead; this choice makes neighbours differ.
        last = leader
        leader = max(
            (b for b in busy if leaders[b]),
            key=lambda b: (leaders[b], b != last, ranks[b], -b),
        )
        chosen = [b for b in busy if replicas[b] == left and b != leader]
        # What each rack must and may take, so that the rows after this one can obey its bounds.
        needs, spare = [], []
        for n, low, high in zip(held, demand.rule.fewest, demand.rule.most, strict=True):
            needs.append(max(low, n - high * (left - 1)))
            spare.append(min(high, n - low * (left - 1)))
        for b in (leader, *chosen):
            needs[rack_of[b]] -= 1
            spare[rack_of[b]] -= 1
        # Places of the row that no rack needs: any rack with spare room may take them.
        free = followers - len(chosen) - sum(n for n in needs if n > 0)
        after = table.after[leader]
        # A broker that still needs as many leaders as replicas must keep all of them.
        able = [b for b in busy if leaders[b] < replicas[b] < left and b != leader]
        for b in sorted(able, key=lambda b: (after[b], -replicas[b], ranks[b], b)):
            if len(chosen) == followers:
                break
            j = rack_of[b]
            if spare[j] > 0 and (needs[j] > 0 or free > 0):
                chosen.append(b)
                free -= needs[j] <= 0
                needs[j] -= 1
                spare[j] -= 1
        leaders[leader] -= 1
        for b in (leader, *chosen):
            replicas[b] -= 1
            held[rack_of[b]] -= 1
        busy = [b for b in busy if replicas[b]]
        _, new = table.choose(leader, chosen, ranks)
        table.add(new)
        rows.append(arrange(new, chosen, ranks))
    return rows
