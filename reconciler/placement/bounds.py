"""Lower bounds of levels 3 to 6 (the cluster's leaders, replicas, next leaders), by water-filling.

Optimal on its own levels, a topic can only vary by one unit on some brokers (the bases of a
matroid, shifted). If these units are poured freely, whatever topic they come from, the result is
at least as good as every real placement. A placement that meets the bound is optimal.

Argument and a bound that is too low: docs/explanation/placement-proofs.md, "Lower bounds".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from reconciler.model.cluster import Broker, Replicas
from reconciler.placement.counts import (
    ClusterLoad,
    Demand,
    RackRule,
    Sample,
    plain_squares,
    squares,
)
from reconciler.placement.level_fill import Basin, Region, fill
from reconciler.placement.next_leaders import NextLeaderBounds, NextLeaders
from reconciler.placement.problem import scale_brokers


class Slack(NamedTuple):
    """What a topic surely puts on each broker, how much more it may, and by how much in all."""

    sure: Sequence[int]
    room: Sequence[int]
    units: int


def leader_slack(demand: Demand, leaders: Sequence[int]) -> Slack:
    """Return the slack of optimal leaders: any of the brokers that tie may have the last units."""
    heights = [a + b for a, b in zip(demand.leaders, leaders, strict=True)]
    top = max((h for h, n in zip(heights, leaders, strict=True) if n), default=0)
    # Only the last unit of a broker can tie: units at `top` may go to brokers one below.
    lower = [b for b, h in enumerate(heights) if h == top - 1 and leaders[b] < demand.count]
    upper = [b for b, h in enumerate(heights) if h == top and leaders[b]] if lower else []
    return _slack(leaders, lower, upper)


def replica_slack(demand: Demand, reached: int) -> Slack:
    """Return the slack of replicas that reached a sum of squares on the topic's level.

    If leaders have pushed the replicas above their own least, little is sure.
    """
    replicas = evenest_replicas(demand)
    if plain_squares(demand.replicas, replicas) < reached:
        n = len(replicas)
        return Slack([0] * n, [demand.count] * n, demand.copies)
    return free_slack(demand, replicas)


def evenest_replicas(demand: Demand) -> list[int]:
    """Return the most even replicas of a topic, leaders not considered."""
    regions = [
        Region(rack, low, high)
        for rack, (low, high) in zip(demand.rule.racks, demand.rack_bounds, strict=True)
    ]
    n = len(demand.ids)
    basin = Basin(demand.replicas, [demand.count] * n, demand.ranks, [1] * n)
    return fill(basin, regions, demand.copies)


def free_slack(demand: Demand, replicas: Sequence[int]) -> Slack:
    """Return the slack of the most even replicas: whoever may hand one on, or be handed one.

    Handing one on costs nothing if the taker is lower by one. Inside a rack this is always
    allowed, between racks only if one may shrink and the other may grow.
    """
    heights = [a + b for a, b in zip(demand.replicas, replicas, strict=True)]
    full = [demand.count == n for n in replicas]
    highest, lowest = [], []
    shrinks, grows = [], []
    for rack, (low, high) in zip(demand.rule.racks, demand.rack_bounds, strict=True):
        highest.append(max((heights[b] for b in rack if replicas[b]), default=-1))
        lowest.append(min((heights[b] for b in rack if not full[b]), default=1 << 62))
        held = sum(replicas[b] for b in rack)
        shrinks.append(held > low)
        grows.append(held < high)
    highest_abroad = max((h for h, s in zip(highest, shrinks, strict=True) if s), default=-1)
    lowest_abroad = min((h for h, g in zip(lowest, grows, strict=True) if g), default=1 << 62)
    upper, lower = [], []
    for b, height in enumerate(heights):
        j = demand.rule.rack_of[b]
        takers = (lowest[j], lowest_abroad if shrinks[j] else 1 << 62)
        givers = (highest[j], highest_abroad if grows[j] else -1)
        if replicas[b] and height - 1 in takers:
            upper.append(b)
        if not full[b] and height + 1 in givers:
            lower.append(b)
    return _slack(replicas, lower, upper)


def _slack(counts: Sequence[int], lower: Iterable[int], upper: Sequence[int]) -> Slack:
    sure, room = list(counts), [0] * len(counts)
    for b in upper:
        sure[b] -= 1
        room[b] += 1
    for b in lower:
        room[b] += 1
    return Slack(sure, room, len(upper))


class Bound:
    """Gathers the slack of all topics and pours it over the cluster."""

    def __init__(self, loads: Sequence[int], scales: Sequence[int]) -> None:
        self._scales = scales
        self._sure = list(loads)
        self._room = [0] * len(loads)
        self._units = 0
        self._racks: list[tuple[int, int]] | None = None
        self._rack_lists: tuple[tuple[int, ...], ...] | None = None

    def add(self, demand: Demand, slack: Slack, weight: int, *, by_rack: bool = False) -> None:
        """Add a topic whose units weigh this, or several that weigh this together."""
        self._sure = [y + weight * n for y, n in zip(self._sure, slack.sure, strict=True)]
        self._room = [y + weight * n for y, n in zip(self._room, slack.room, strict=True)]
        self._units += weight * slack.units
        if by_rack:
            self._add_racks(demand, slack, weight)

    def _add_racks(self, demand: Demand, slack: Slack, weight: int) -> None:
        """Add what the racks may take; topics that see other racks leave no common bound."""
        if self._rack_lists is None:
            self._rack_lists = demand.rule.racks
            self._racks = [(0, 0)] * len(demand.rule.racks)
        if self._rack_lists != demand.rule.racks or self._racks is None:
            self._racks = None
            return
        for j, (rack, (low, high)) in enumerate(
            zip(demand.rule.racks, demand.rack_bounds, strict=True)
        ):
            sure = sum(slack.sure[b] for b in rack)
            room = sum(slack.room[b] for b in rack)
            least, most = self._racks[j]
            least += weight * max(low - sure, 0)
            self._racks[j] = (least, most + weight * min(high - sure, room))

    def least(self) -> int:
        """Return the least sum of squares of any loads that the slack could give.

        Units of weight are poured one by one: a replica may be divided, which no placement can do.
        """
        everyone = range(len(self._sure))
        regions = [Region(everyone, 0, self._units)]
        if self._racks is not None and self._rack_lists is not None:
            pairs = zip(self._rack_lists, self._racks, strict=True)
            regions = [Region(rack, low, high) for rack, (low, high) in pairs]
        basin = Basin(self._sure, self._room, [0] * len(self._sure), self._scales)
        poured = fill(basin, regions, self._units)
        return squares([a + b for a, b in zip(self._sure, poured, strict=True)], self._scales)


def cluster_bounds(topics: Iterable[Sample], before: ClusterLoad) -> tuple[int, int]:
    """Return the least that the cluster's leaders and replicas could reach.

    `before` is the load without the topics. Leaders and replicas are bounded apart, as if the
    leaders' level did not tie the replicas' hands.
    """
    leaders = Bound(before.leaders, before.scales)
    replicas = Bound(before.replicas, before.scales)
    for demand, counts, times in topics:
        slack = leader_slack(demand, counts.leaders)
        leaders.add(demand, slack, demand.leader_weight * times)
        reached = plain_squares(demand.replicas, counts.replicas)
        slack = replica_slack(demand, reached)
        replicas.add(demand, slack, demand.weight * times, by_rack=True)
    return leaders.least(), replicas.least()


def bound_next_leaders(topics: Sequence[Sample], table: NextLeaders) -> NextLeaderBounds:
    """Return the least that levels 5 and 6 could reach on top of `table`, and their least maxima.

    Every new row of a leader is poured on any broker that may be next after it, whatever other
    replicas the row has. How many rows a broker leads is only known up to ties.
    """
    n = len(table.rack_of)
    sure, room = [0] * n, [0] * n
    least, most = [0] * n, [0] * n  # those of topics whose rows never stay within one rack
    units = outside = 0
    own: list[set[int] | None] = [None] * n  # who cannot follow a leader: brokers of its rack
    for demand, counts, times in topics:
        if demand.wish.replication < 2:
            continue
        rule, slack = demand.rule, leader_slack(demand, counts.leaders)
        units += times * (sum(slack.sure) + slack.units)
        if max(rule.most) < demand.wish.replication:
            outside += times * (sum(slack.sure) + slack.units)
        for b in range(n):
            j = rule.rack_of[b]
            sure[b] += times * slack.sure[b]
            room[b] += times * slack.room[b]
            if max(rule.most) < demand.wish.replication:
                least[b] += times * slack.sure[b]
                most[b] += times * (slack.sure[b] + slack.room[b])
            if rule.most[j] > 1:
                own[b] = {b}
            elif own[b] is None:
                own[b] = set(rule.racks[j])
    regions = []
    for a, line in enumerate(table.after):
        shut = own[a] or {a}
        cells = Counter([y for b, y in enumerate(line) if b not in shut])
        regions.append(_Cells(cells, sure[a], sure[a] + room[a]))
    brokers = _fill_least(table.after, regions, units)
    # Leaders without a rack count in no line, and may be as many as they can be.
    outside -= sum(most[b] for b, j in enumerate(table.rack_of) if j < 0)
    regions = []
    for j, line in enumerate(table.beyond):
        cells = Counter([y for b, y in enumerate(line) if table.rack_of[b] != j])
        members = [b for b in range(n) if table.rack_of[b] == j]
        regions.append(_Cells(cells, sum(least[b] for b in members), sum(most[b] for b in members)))
    outside = max(outside, sum(one.low for one in regions))
    return NextLeaderBounds(*brokers, *_fill_least(table.beyond, regions, outside))


class _Cells(NamedTuple):
    """Cells of one line of a table by their height, and how many units the line takes."""

    heights: Counter[int]
    low: int
    high: int

    def below(self, level: int) -> int:
        """Return how many units fill all cells up to a level."""
        return sum(times * (level - y) for y, times in self.heights.items() if y < level)

    def fill(self, units: int) -> tuple[int, int]:
        """Return the least squares for a number of units, and the height of the highest cell."""
        if not self.heights:
            return 0, 0
        level, high = 0, max(self.heights) + units + 1
        while high - level > 1:
            middle = (level + high) // 2
            level, high = (middle, high) if self.below(middle) <= units else (level, middle)
        rest = units - self.below(level)
        total = sum(times * max(y, level) ** 2 for y, times in self.heights.items())
        return total + rest * (2 * level + 1), max(*self.heights, level + (rest > 0))


def _fill_least(
    table: Sequence[Sequence[int]], regions: Sequence[_Cells], units: int
) -> tuple[int, int]:
    """Pour units on a table, each line within its bounds. Cells in no region stay as they are."""
    level, high = 0, max(chain.from_iterable(table), default=0) + units + 1
    while high - level > 1:
        middle = (level + high) // 2
        poured = sum(min(max(one.below(middle), one.low), one.high) for one in regions)
        level, high = (middle, high) if poured <= units else (level, middle)
    totals = [min(max(one.below(level), one.low), one.high) for one in regions]
    rest = units - sum(totals)
    filled = [one.fill(total) for one, total in zip(regions, totals, strict=True)]
    apart = sum(y * y for y in chain.from_iterable(table)) - sum(
        times * y * y for one in regions for y, times in one.heights.items()
    )
    tops = [max(chain.from_iterable(table), default=0), *(top for _, top in filled)]
    least = apart + sum(total for total, _ in filled) + rest * (2 * level + 1)
    return least, max(*tops, (level + 1) * (rest > 0))


def share_evenly(
    brokers: Collection[Broker],
    rows: Iterable[Replicas],
    capacity: Mapping[int, int],
    *,
    anywhere: Iterable[Replicas] = (),
    giving: Collection[Broker] = (),
) -> dict[int, int]:
    """Return what each broker holds at most in the most even cluster that the racks allow.

    In: the brokers that may take replicas, and all rows; no rack rule holds for those `anywhere`.
    `giving` are brokers that only give: they hold no more than now. What other brokers hold counts
    nowhere. `capacity` says how much a broker can bear next to others (1 if it is not named).
    Brokers of one rack and one capacity have the same share, which is rounded up.
    """
    able = {broker.id for broker in brokers}
    names = {broker.id: broker.rack or "" for broker in (*brokers, *giving)}
    ids = sorted(names)
    racks = [
        tuple(i for i, b in enumerate(ids) if names[b] == name)
        for name in sorted(set(names.values()))
    ]
    kinds: Counter[tuple[bool, int, frozenset[int]]] = Counter()
    present: Counter[int] = Counter()
    for rack_aware, each in ((True, rows), (False, anywhere)):
        for row in each:
            mine = names.keys() & row
            present.update(mine)
            kinds[rack_aware, len(mine), frozenset(mine - able)] += 1
    low, high = [0] * len(racks), [0] * len(racks)
    for (rack_aware, length, gives), times in kinds.items():
        candidates = able | gives
        open_racks = tuple(tuple(i for i in rack if ids[i] in candidates) for rack in racks)
        fewest: Sequence[int] = [0] * len(racks)
        most: Sequence[int] = [min(len(rack), length) for rack in open_racks]
        if rack_aware:
            rule = RackRule.deal(open_racks, length)
            fewest, most = rule.fewest, rule.most
        low = [n + times * each for n, each in zip(low, fewest, strict=True)]
        high = [n + times * each for n, each in zip(high, most, strict=True)]
    scales = scale_brokers(ids, capacity)
    rooms = [kinds.total() if b in able else present[b] for b in ids]
    ranks = [(b not in able, i) for i, b in enumerate(ids)]
    basin = Basin([0] * len(ids), rooms, ranks, scales)
    regions = [Region(*each) for each in zip(racks, low, high, strict=True)]
    held = fill(basin, regions, present.total())
    shares: dict[tuple[str, int], int] = {}
    taking = [(b, (names[b], scale), n) for b, scale, n in zip(ids, scales, held, strict=True)]
    for b, kind, n in taking:
        if b in able:
            shares[kind] = max(shares.get(kind, 0), n)
    return {b: shares[kind] for b, kind, _ in taking if b in able}
