"""Which replicas move, and then who leads.

In this order: the fewest replicas moved, the fewest in-sync replicas dropped, the fewest leaders
dropped from rows that shrink, the squares of the replicas of each topic and of the cluster. To
balance, the squares come first and the fewest replicas moved last. Then by reordering alone: the
squares of the leaders of each topic and of the cluster, and the fewest leaders changed. Each choice
is optimal for all wishes together: docs/explanation/placement-moves.md, "Replicas that move".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from reconciler.model.cluster import Assignment, Replicas
from reconciler.placement.counts import RackRule, tie_ranks
from reconciler.placement.moving.graph import list_bits
from reconciler.placement.moving.leaders import LeaderRow, choose_leaders
from reconciler.placement.moving.levelling import Load
from reconciler.placement.moving.problem import MoveGoal, MoveProblem, MoveWish
from reconciler.placement.moving.selection import choose_brokers, fill, is_base
from reconciler.placement.moving.topic import Row
from reconciler.placement.problem import scale_brokers

Racks = tuple[tuple[int, int, int], ...]


def move_replicas(problem: MoveProblem) -> Mapping[str, Assignment]:
    """Return all rows of every wish, by topic: same wishes in any order, same rows.

    Unless the goal is balance, a row that has the wanted number of replicas, none of them on a
    drained broker, keeps them; it may get another preferred leader.
    """
    wishes = sorted(problem.wishes, key=lambda wish: wish.topic)
    brokers = _Brokers(problem, wishes)
    sets = _choose_sets(brokers, wishes)
    leaders = iter(_choose_leaders(brokers, wishes, sets))
    chosen = iter(sets)
    return {
        wish.topic: tuple(brokers.order(row, next(chosen), next(leaders), t) for row in wish.rows)
        for t, wish in enumerate(wishes)
    }


class _Brokers:
    """The brokers as bits of masks: their racks, scales and ties, and who lives."""

    def __init__(self, problem: MoveProblem, wishes: Sequence[MoveWish]) -> None:
        self.problem = problem
        racks = {broker.id: broker.rack or "" for broker in problem.brokers}
        held = {b for wish in wishes for row in (*wish.rows, *wish.fixed) for b in row}
        self.ids = sorted(racks.keys() | held)
        self.bits = {b: 1 << i for i, b in enumerate(self.ids)}
        self.scales = scale_brokers(self.ids, problem.capacity)
        self.ties = [tie_ranks(wish.topic, self.ids) for wish in wishes]
        self.alive = self.mask(broker.id for broker in problem.brokers if broker.alive)
        self.eligible = self.mask(problem.eligible)
        self.leading = self.eligible | self.mask(problem.givers)
        self._everywhere = (1 << len(self.ids)) - 1
        self._racks = [
            self.mask(b for b in self.ids if racks.get(b, "") == name)
            for name in sorted({racks.get(b, "") for b in self.ids})
        ]
        self._rules: dict[tuple[int, int, bool], Racks] = {}

    def mask(self, ids: Iterable[int]) -> int:
        """Return different brokers as a mask."""
        return sum(self.bits[b] for b in ids)

    def mask_given_up(self, wish: MoveWish, partition: int) -> int:
        """Return the brokers that are to hold no replica of a partition as a mask."""
        return self.mask(self.problem.give_up(wish, partition) & self.bits.keys())

    def count(self, loads: Mapping[int, int]) -> list[int]:
        """Return loads in the order of the brokers."""
        return [loads.get(b, 0) for b in self.ids]

    def rule(self, candidates: int, wanted: int, *, rack_aware: bool) -> Racks:
        """Return the fewest and the most replicas of a row in each rack of its candidates."""
        key = candidates, wanted, rack_aware
        if not rack_aware:
            return ()
        if key not in self._rules:
            masks = [mask & candidates for mask in self._racks if mask & candidates]
            places = iter(range(candidates.bit_count()))
            racks = tuple(tuple(next(places) for _ in range(m.bit_count())) for m in masks)
            rule = RackRule.deal(racks, wanted)
            self._rules[key] = tuple(zip(masks, rule.fewest, rule.most, strict=True))
        return self._rules[key]

    def order(self, old: Replicas, chosen: int, leader: int, topic: int) -> Replicas:
        """Put the leader first, then what stays in its order, then what is new."""
        first = self.ids[leader]
        kept = [b for b in old if self.bits[b] & chosen and b != first]
        new = list_bits(chosen & ~(1 << leader) & ~self.mask(old))
        new.sort(key=self.ties[topic].__getitem__)
        return (first, *kept, *(self.ids[i] for i in new))


def _choose_sets(brokers: _Brokers, wishes: Sequence[MoveWish]) -> list[int]:
    """Choose the replicas of all rows that may change."""
    problem = brokers.problem
    most = {b: max(n, problem.replicas.get(b, 0)) for b, n in problem.most.items()}
    left = _leave_rows(brokers, wishes, most) if most else set()
    topics = [Counter(chain.from_iterable(chain(wish.rows, wish.fixed))) for wish in wishes]
    cluster = Counter(problem.replicas)
    sets: list[int] = []
    touched, rows = [], []
    for t, wish in enumerate(wishes):
        for p, row in enumerate(wish.rows):
            if problem.may_change(wish, p) and (t, p) not in left:
                topics[t].subtract(row)
                cluster.subtract(row)
                touched.append(len(sets))
                rows.append(_restate(brokers, t, wish, p))
            sets.append(brokers.mask(row))
    units = [brokers.count(topic) for topic in topics]
    bounds = {i: most[b] for i, b in enumerate(brokers.ids) if b in most}
    load = Load(brokers.count(cluster), brokers.scales, bounds)
    balances = problem.goal is MoveGoal.BALANCE
    chosen = choose_brokers(rows, units, load, brokers.ties, prices_first=not balances)
    for index, mask in zip(touched, chosen, strict=True):
        sets[index] = mask
    return sets


def _leave_rows(
    brokers: _Brokers, wishes: Sequence[MoveWish], most: Mapping[int, int]
) -> set[tuple[int, int]]:
    """Choose the rows, as topic and partition, that stay because the racks would ask too much.

    A row that breaks the rack rule is to take new replicas. They may be more than bounded brokers
    have room for. All others then have a choice that keeps the bounds: this one, or their own rows.
    """
    left = set()
    room = [most.get(b, 0) - brokers.problem.replicas.get(b, 0) for b in brokers.ids]
    for t, wish in enumerate(wishes):
        for p, row in enumerate(wish.rows):
            wanted = _restate(brokers, t, wish, p)
            own = brokers.mask(row)
            if is_base(wanted, own):
                continue
            used = [-each for each in room]
            taken = fill(wanted, [0] * len(room), used, brokers.ties[t]) & ~own
            if all(room[i] > 0 for i in list_bits(taken)):
                for i in list_bits(taken):
                    room[i] -= 1
            else:
                left.add((t, p))
    return left


def _restate(brokers: _Brokers, topic: int, wish: MoveWish, partition: int) -> Row:
    row = wish.rows[partition]
    wanted = wish.count_wanted(row)
    given_up = brokers.mask_given_up(wish, partition)
    rest = brokers.mask(row) & ~given_up
    candidates = brokers.eligible & ~given_up | rest
    if brokers.problem.goal is MoveGoal.BALANCE:
        rule = brokers.rule(candidates, wanted, rack_aware=wish.rack_aware)
        return Row(topic, wanted, (rest, candidates & ~rest), rule)
    in_sync = brokers.mask(wish.in_sync[partition]) & rest if wish.in_sync else rest
    if len(row) > wanted and rest.bit_count() >= wanted:
        living = rest & brokers.alive  # replicas on dead brokers go first
        safe = living.bit_count() >= wanted and living & in_sync
        candidates = living if safe else rest
    synced = candidates & in_sync
    classes: tuple[int, ...] = (synced, candidates & rest & ~in_sync, candidates & ~rest)
    if leader := _find_leader(brokers, wish, partition):
        classes = (leader, synced & ~leader, *classes[1:])
    return Row(topic, wanted, classes, brokers.rule(candidates, wanted, rack_aware=wish.rack_aware))


def _find_leader(brokers: _Brokers, wish: MoveWish, partition: int) -> int:
    """Return the replica that keeps the lead of a row, as a mask; 0 for none.

    Rows that shrink have one, and all rows if only offline replicas are to move.
    """
    row, goal = wish.rows[partition], brokers.problem.goal
    shrinks = goal is MoveGoal.FEWEST_MOVES and len(row) > wish.count_wanted(row)
    if not shrinks and goal is not MoveGoal.OFFLINE_REPLICAS:
        return 0
    in_sync = brokers.mask(wish.in_sync[partition] if wish.in_sync else row)
    able = in_sync & brokers.alive & ~brokers.mask_given_up(wish, partition)
    return next((brokers.bits[b] for b in row if brokers.bits[b] & able), 0)


def _choose_leaders(
    brokers: _Brokers, wishes: Sequence[MoveWish], sets: Sequence[int]
) -> list[int]:
    """Choose the preferred leader of every row from its replicas."""
    cluster = Counter(brokers.problem.leaders)
    cluster.subtract(row[0] for wish in wishes for row in wish.rows)
    rows = []
    chosen = iter(sets)
    for t, wish in enumerate(wishes):
        for p, old in enumerate(wish.rows):
            mine, leader = next(chosen), brokers.bits[old[0]]
            # A broker that takes nothing new takes no more leaders either.
            able = mine & (brokers.leading | leader) or mine
            able = able & brokers.alive or able
            if wish.offline:
                able = able & ~brokers.mask(wish.offline[p]) or able
            if leader == _find_leader(brokers, wish, p):
                able = able & leader or able  # what only leaves elsewhere needs no election
            rows.append(LeaderRow(t, tuple(list_bits(able)), leader.bit_length() - 1))
    units = [brokers.count(Counter(row[0] for row in wish.fixed)) for wish in wishes]
    return choose_leaders(rows, units, brokers.count(cluster), brokers.scales, brokers.ties)
