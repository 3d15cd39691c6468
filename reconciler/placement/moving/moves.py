"""Which replicas move, and who leads: two choices of brokers, one after the other.

In this order: the fewest replicas moved, the fewest in-sync replicas dropped, the squares of the
replicas of each topic and of the cluster. Then by reordering alone: the squares of the leaders of
each topic and of the cluster, and the fewest leaders changed. Each choice is optimal for all wishes
together: docs/placement.md, "Replicas that move".
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from reconciler.placement.counts import RackRule, tie_ranks
from reconciler.placement.moving.selection import Held, Row, choose_brokers
from reconciler.placement.problem import scale_brokers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reconciler.model import Assignment, Replicas
    from reconciler.placement.moving.problem import MoveProblem, MoveWish


def move_replicas(problem: MoveProblem) -> Mapping[str, Assignment]:
    """Return all rows of every wish, by topic: same wishes in any order, same rows.

    A row that has the wanted number of replicas, none of them on a drained broker, keeps them; it
    may get another preferred leader.
    """
    wishes = sorted(problem.wishes, key=lambda wish: wish.topic)
    brokers = _Brokers(problem, wishes)
    sets = _choose_sets(brokers, wishes)
    leaders = _choose_leaders(brokers, wishes, sets)
    return {
        wish.topic: tuple(
            _order(row, chosen, leader, brokers.ties[wish.topic])
            for row, chosen, leader in zip(wish.rows, rows, leads, strict=True)
        )
        for wish, rows, leads in zip(wishes, sets, leaders, strict=True)
    }


class _Brokers:
    """What both choices need of the brokers: racks, scales, ties, and who lives."""

    def __init__(self, problem: MoveProblem, wishes: Sequence[MoveWish]) -> None:
        self.problem = problem
        self.racks = {broker.id: broker.rack or "" for broker in problem.brokers}
        self.alive = {broker.id for broker in problem.brokers if broker.alive}
        held = {b for wish in wishes for row in (*wish.rows, *wish.fixed) for b in row}
        self.all = sorted(self.racks.keys() | held)
        self.scales = dict(zip(self.all, scale_brokers(self.all, problem.capacity), strict=True))
        self.ties = {
            wish.topic: dict(zip(self.all, tie_ranks(wish.topic, self.all), strict=True))
            for wish in wishes
        }


def _choose_sets(brokers: _Brokers, wishes: Sequence[MoveWish]) -> list[list[frozenset[int]]]:
    """Choose the replicas of all rows that have too many, too few, or one on a drained broker."""
    cluster = Counter(brokers.problem.replicas)
    topics = [Counter(b for row in (*wish.rows, *wish.fixed) for b in row) for wish in wishes]
    touched = [
        (t, p)
        for t, wish in enumerate(wishes)
        for p, row in enumerate(wish.rows)
        if brokers.problem.must_change(wish, row)
    ]
    for t, p in touched:
        topics[t].subtract(wishes[t].rows[p])
        cluster.subtract(wishes[t].rows[p])
    total = sum(wishes[t].count_wanted(wishes[t].rows[p]) for t, p in touched)
    cluster_bits = _bits(max(brokers.scales.values()), max(cluster.values(), default=0), total)
    topic_unit = 1 << cluster_bits
    most = max((count for topic in topics for count in topic.values()), default=0)
    lagging = topic_unit << _bits(1, most, total)
    moved = lagging << (total.bit_length() + 2)
    rows = [_restate(brokers, wishes[t], t, p, moved, lagging) for t, p in touched]
    held = Held(topics, cluster, brokers.scales, topic_unit, 1)
    sets = [[frozenset(row) for row in wish.rows] for wish in wishes]
    for (t, p), chosen in zip(touched, choose_brokers(rows, held), strict=True):
        sets[t][p] = chosen
    return sets


def _restate(
    brokers: _Brokers, wish: MoveWish, topic: int, partition: int, moved: int, lagging: int
) -> Row:
    row = wish.rows[partition]
    wanted = wish.count_wanted(row)
    in_sync = wish.in_sync[partition] if wish.in_sync else row
    rest = set(row) - brokers.problem.drained
    living = rest & brokers.alive
    if len(row) <= wanted or len(rest) < wanted:
        candidates = sorted(brokers.problem.eligible | rest)
    elif len(living) >= wanted and living & set(in_sync):
        candidates = sorted(living)  # replicas on dead brokers go first
    else:
        candidates = sorted(rest)
    prices = {b: (moved if b not in row else 0 if b in in_sync else lagging) for b in candidates}
    names = sorted({brokers.racks.get(b, "") for b in candidates}) if wish.rack_aware else [""]
    rack_of = {
        b: names.index(brokers.racks.get(b, "")) if wish.rack_aware else 0 for b in candidates
    }
    racks: list[list[int]] = [[] for _ in names]
    for index, b in enumerate(candidates):
        racks[rack_of[b]].append(index)
    rule = RackRule.deal(tuple(map(tuple, racks)), wanted)
    bounds = dict(enumerate(zip(rule.fewest, rule.most, strict=True)))
    return Row(topic, wanted, prices, rack_of, bounds, brokers.ties[wish.topic])


def _choose_leaders(
    brokers: _Brokers, wishes: Sequence[MoveWish], sets: Sequence[Sequence[frozenset[int]]]
) -> list[list[int]]:
    """Choose the preferred leader of every row from its replicas."""
    cluster = Counter(brokers.problem.leaders)
    cluster.subtract(row[0] for wish in wishes for row in wish.rows if row)
    total = sum(len(wish.rows) + len(wish.fixed) for wish in wishes)
    change = 1
    cluster_unit = 1 << (total.bit_length() + 2)
    scale = max(brokers.scales.values())
    topic_unit = cluster_unit << _bits(scale, max(cluster.values(), default=0), total)
    rows = []
    for t, wish in enumerate(wishes):
        for old, chosen in zip(wish.rows, sets[t], strict=True):
            # A broker that takes nothing new takes no more leaders either.
            able = (chosen & brokers.problem.eligible) | (chosen & set(old[:1])) or chosen
            able = (able & brokers.alive) or able
            prices = {b: 0 if b == old[0] else change for b in sorted(able)}
            racks = dict.fromkeys(prices, 0)
            rows.append(Row(t, 1, prices, racks, {0: (1, 1)}, brokers.ties[wish.topic]))
    topics = [Counter(row[0] for row in wish.fixed if row) for wish in wishes]
    held = Held(topics, cluster, brokers.scales, topic_unit, cluster_unit)
    chosen_leaders = iter(choose_brokers(rows, held))
    return [[min(next(chosen_leaders)) for _ in wish.rows] for wish in wishes]


def _order(old: Replicas, chosen: frozenset[int], leader: int, ties: Mapping[int, int]) -> Replicas:
    """Put the leader first, then what stays in its order, then what is new."""
    kept = [b for b in old if b in chosen and b != leader]
    new = sorted((b for b in chosen if b not in old and b != leader), key=ties.__getitem__)
    return (leader, *kept, *new)


def _bits(scale: int, most: int, total: int) -> int:
    """Return the bits that the prices of a level stay below, for `total` units on any brokers.

    Two more than its sum needs, because a cycle gives up units as well as taking some.
    """
    return (2 * scale * total * (most + total + 1)).bit_length() + 2
