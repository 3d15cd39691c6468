"""Levels 5 and 6 over rows: brokers change places between rows, levels 1 to 4 stay as they are.

The order of a row's followers is free. Besides, row p may take follower c instead of u

- if that is a tie of the topic's and the cluster's replicas;
- if another row takes u instead of c: of the same topic, or of one for which both are ties as well.

And a follower may lead instead of the leader if that is a tie of the topic's and the cluster's
leaders. No count of leaders or replicas changes by more than a tie. The first exchange that
gains is made. The search ends when no row gains any more, when both levels meet their bounds, or
when its work is done.

The moves, and how near the bounds they lead: docs/explanation/placement-proofs.md, "Next leaders".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import add

from reconciler.model.cluster import Assignment
from reconciler.placement.counts import ClusterLoad, Counts, Demand
from reconciler.placement.next_leaders import (
    LEVEL_5,
    NextLeaderBounds,
    NextLeaders,
    Succession,
    arrange,
)
from reconciler.placement.realise import realise

_WORK, _WORK_PER_ROW, _MOST_WORK = 2_000, 20, 100_000
"""The number of rows to price: a constant, plus a number for each row, up to a maximum."""

_PARTNERS = 32
"""How many other rows are tried for an exchange of two brokers."""


def place_rows(
    placed: Sequence[tuple[Demand, Counts]],
    load: ClusterLoad,
    table: NextLeaders,
    bounds: NextLeaderBounds,
) -> dict[str, Assignment]:
    """Turn counts into rows, by topic. `table` is brought up to date; so is `load`, to which the
    counts belong: ties of its replicas may go another way.
    """
    realised = [(demand, counts, realise(demand, counts, table)) for demand, counts in placed]
    search = RowSearch(realised, load, table)
    search.run(bounds)
    return search.assignments()


class RowSearch:
    """Rows that may still change, and who follows in which of them. `table` counts all rows."""

    def __init__(
        self,
        placed: Sequence[tuple[Demand, Counts, list[list[int]]]],
        load: ClusterLoad,
        table: NextLeaders,
    ) -> None:
        self._demands = [demand for demand, _, _ in placed]
        self._led, self._held = [], []
        for demand, counts, _ in placed:
            self._led.append(list(map(add, demand.leaders, counts.leaders)))
            self._held.append(list(map(add, demand.replicas, counts.replicas)))
        self._load, self._table = load, table
        self._topic = [t for t, (_, _, rows) in enumerate(placed) for _ in rows]
        self._rows = [row for _, _, rows in placed for row in rows]
        self._counted = [table.find(row) for row in self._rows]
        self._followed: list[dict[int, None]] = [{} for _ in table.rack_of]
        for p, row in enumerate(self._rows):
            for b in row[1:]:
                self._followed[b][p] = None
        self._work = min(_WORK + _WORK_PER_ROW * len(self._rows), _MOST_WORK)

    def run(self, bounds: NextLeaderBounds) -> None:
        """Improve rows in turn."""
        above = self._table.price() - (LEVEL_5 * bounds.brokers + bounds.racks)
        gained = True
        while gained:
            gained = False
            for p, row in enumerate(self._rows):
                while len(row) > 1 and min(self._work, above) > 0 and (gain := self._improve(p)):
                    above -= gain
                    gained = True

    def assignments(self) -> dict[str, Assignment]:
        """Return the rows by topic, of broker ids."""
        found: list[list[tuple[int, ...]]] = [[] for _ in self._demands]
        for t, row in zip(self._topic, self._rows, strict=True):
            found[t].append(tuple(map(self._demands[t].ids.__getitem__, row)))
        return {d.wish.topic: tuple(rows) for d, rows in zip(self._demands, found, strict=True)}

    def _improve(self, p: int) -> int:
        """Make the first change of row p that gains, and return by how much."""
        row, old = self._rows[p], self._counted[p]
        demand = self._demands[self._topic[p]]
        refund = self._table.refund(old)
        self._table.add(old, -1)
        price, new = self._table.choose(row[0], row[1:], demand.ranks)
        self._work -= 1
        if price < refund:
            self._settle(p, row[1:], new)
            return refund - price
        if gain := self._change_leader(p, refund):
            return gain
        for out, into in self._changes(p):
            followers = [into if b == out else b for b in row[1:]]
            price, new = self._table.choose(row[0], followers, demand.ranks)
            self._work -= 1
            if price >= refund:
                continue
            held, replicas = self._held[self._topic[p]], self._load.replicas
            if _is_tie(held, out, into) and self._is_cluster_tie(
                replicas, demand.weight, out, into
            ):
                self._settle(p, followers, new)
                _move(held, 1, out, into)
                _move(replicas, demand.weight, out, into)
                return refund - price
            self._table.add(new)
            if gain := self._find_partner(p, out, into, refund - price):
                self._table.add(new, -1)
                self._settle(p, followers, new)
                return gain
            self._table.add(new, -1)
        self._table.add(old)
        return 0

    def _change_leader(self, p: int, refund: int) -> int:
        """Let a follower of row p lead if that is a tie and gains, and return by how much."""
        t, (leader, *followers) = self._topic[p], self._rows[p]
        load, weight = self._load, self._demands[t].leader_weight
        for into in followers:
            if not _is_tie(self._led[t], leader, into):
                continue
            if not self._is_cluster_tie(load.leaders, weight, leader, into):
                continue
            others = [leader if b == into else b for b in followers]
            price, new = self._table.choose(into, others, self._demands[t].ranks)
            self._work -= 1
            if price < refund:
                self._settle(p, others, new)
                _move(self._led[t], 1, leader, into)
                _move(load.leaders, weight, leader, into)
                return refund - price
        return 0

    def _changes(self, p: int) -> Iterator[tuple[int, int]]:
        """Yield a follower to give, and a broker to take: first who is rarely next after the
        leader of row p.
        """
        row, demand = self._rows[p], self._demands[self._topic[p]]
        after, ranks = self._table.after[row[0]], demand.ranks
        # The row itself is not in the table now: more than this would not gain.
        most = after[row[1]] + 1
        takes = (b for b, n in enumerate(after) if n < most and b not in row)
        for into in sorted(takes, key=lambda b: (after[b], ranks[b])):
            for out in reversed(row[1:]):
                if self._work <= 0:
                    return
                if self._fits(p, out, into):
                    yield out, into

    def _find_partner(self, p: int, out: int, into: int, gain: int) -> int:
        """Let another row take `out` instead of `into`, and return what both gain together."""
        t, holders = self._topic[p], list(self._followed[into])
        free = _is_tie(self._held[t], out, into)
        start, tried = p % max(1, len(holders)), 0
        for q in (*holders[start:], *holders[:start]):
            s, row = self._topic[q], self._rows[q]
            if q == p or out in row or (s != t and not (free and self._may_trade(s, t, into, out))):
                continue
            if not self._fits(q, into, out):
                continue
            tried += 1
            if tried > _PARTNERS or self._work <= 0:
                return 0
            old = self._counted[q]
            refund = self._table.refund(old)
            self._table.add(old, -1)
            followers = [out if b == into else b for b in row[1:]]
            price, new = self._table.choose(row[0], followers, self._demands[s].ranks)
            self._work -= 1
            if price - refund < gain:
                self._settle(q, followers, new)
                if s != t:
                    _move(self._held[t], 1, out, into)
                    _move(self._held[s], 1, into, out)
                return gain - (price - refund)
            self._table.add(old)
        return 0

    def _may_trade(self, s: int, t: int, out: int, into: int) -> bool:
        """Return whether topic s may give a replica for one of topic t of the same weight."""
        same_weight = self._demands[s].weight == self._demands[t].weight
        return same_weight and _is_tie(self._held[s], out, into)

    def _fits(self, p: int, out: int, into: int) -> bool:
        """Return whether the racks of row p allow `into` instead of `out`."""
        rule = self._demands[self._topic[p]].rule
        j, k = rule.rack_of[out], rule.rack_of[into]
        if j == k:
            return True
        held = [rule.rack_of[b] for b in self._rows[p]]
        return held.count(j) > rule.fewest[j] and held.count(k) < rule.most[k]

    def _is_cluster_tie(self, loads: Sequence[int], weight: int, out: int, into: int) -> bool:
        """Return whether a leader or a replica may move at no cost to the cluster.

        Between brokers of the same capacity both loads change places, so max − min stays too.
        """
        scales = self._load.scales
        return scales[out] == scales[into] and loads[out] == loads[into] + weight

    def _settle(self, p: int, followers: Sequence[int], new: Succession) -> None:
        """Give row p its followers, and count it. It was taken from the table before."""
        for b in self._rows[p][1:]:
            del self._followed[b][p]
        self._rows[p] = arrange(new, followers, self._demands[self._topic[p]].ranks)
        for b in followers:
            self._followed[b][p] = None
        self._counted[p] = new
        self._table.add(new)


def _is_tie(counts: Sequence[int], out: int, into: int) -> bool:
    """Return whether a leader or a replica may move at no cost to its topic."""
    return counts[out] == counts[into] + 1


def _move(counts: list[int], weight: int, out: int, into: int) -> None:
    counts[out] -= weight
    counts[into] += weight
