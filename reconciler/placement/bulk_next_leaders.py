"""Levels 5 and 6 for thousands of rows at once: followers change places, counts do not.

The same prices as in `next_leaders`, on arrays: a first choice part by part, rounds in which many
rows change their next leader at once, and hand-overs along paths of rows, which are exact for
level 5 and the given replica sets if there is time for all of them.

The measure, and the argument for paths: docs/explanation/placement-proofs.md, "Next leaders".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from reconciler.placement.bulk_leaders import first_in_line
from reconciler.placement.bulk_rows import mix
from reconciler.placement.next_leaders import NextLeaders
from reconciler.placement.topic_groups import TopicGroup

Ints = NDArray[np.int64]

_PARTS = 64
_WORK = 4_000_000
"""How many rows each of the three stages looks at: few rows, many rounds; a million, one or two."""

_UNIT = 1 << 32
"""The weight of level 5 next to level 6."""

_NEVER = np.iinfo(np.int64).max


def change_partners(group: TopicGroup, rows: Ints) -> None:
    """Let pairs of rows of a topic exchange followers of the same rack, drawn by hash.

    So that a leader meets many brokers even if there are few topics. Sorted by topic and rack, then
    by hash, neighbours are the pairs; in one slot, a row is in one pair only.
    """
    racks = np.array(group.demand.rule.rack_of)
    for slot in range(1, rows.shape[1]):
        topic = np.arange(len(rows)) // group.demand.count
        place = topic * (racks.max() + 1) + racks[rows[:, slot]]
        drawn = mix(np.arange(len(rows)).astype(np.uint64) + np.uint64(group.demand.ranks[0]), slot)
        line = np.lexsort((drawn, place))
        one, other = line[:-1:2], line[1::2]
        mine, theirs = rows[one, slot], rows[other, slot]
        fits = place[one] == place[other]
        fits &= (rows[other] != mine[:, None]).all(axis=1)
        fits &= (rows[one] != theirs[:, None]).all(axis=1)
        rows[one[fits], slot], rows[other[fits], slot] = theirs[fits], mine[fits]


def order_followers(
    rows_of_groups: Iterable[Ints], table: NextLeaders, *, afresh: bool = True
) -> None:
    """Order the followers of all rows in place, and count the rows in the table.

    If not `afresh`, their order is a good one already, and is improved.
    """
    n = len(table.rack_of)
    after = np.array(table.after, dtype=np.int64).ravel()
    # One more line, in which nobody counts: for leaders without a rack, rows within one rack.
    beyond = np.array([*table.beyond, [0] * n], dtype=np.int64).ravel()
    by_width: dict[int, list[Ints]] = defaultdict(list)
    for rows in rows_of_groups:
        by_width[rows.shape[1]].append(rows)
    orders = []
    for width, alike in sorted(by_width.items()):
        if width > 1:
            rows = np.concatenate(alike)
            order = _Order(rows, np.array(table.rack_of), after, beyond)
            if afresh:
                order.choose()
                order.improve()
            else:
                order.keep()
            orders.append((order, rows, alike))
    for order, rows, alike in orders:
        # Only when all rows are counted is it known where one gains.
        if not afresh:
            order.improve()
        order.write(rows)
        ends = np.cumsum([len(one) for one in alike])
        for one, end in zip(alike, ends.tolist(), strict=True):
            one[:] = rows[end - len(one) : end]
    table.after = after.reshape(n, n).tolist()
    table.beyond = beyond.reshape(-1, n)[:-1].tolist()


class _Order:
    """Which follower of each row is next, as `slot`, and which is next if the rack is lost.

    `first` and `second` are the cells of n and m where each follower would count if it were next.
    """

    def __init__(self, rows: Ints, rack_of: Ints, after: Ints, beyond: Ints) -> None:
        self._n = n = len(rack_of)
        self._after, self._beyond = after, beyond
        self._line = np.arange(len(rows))
        self.slot, self.rack_slot = np.zeros((2, len(rows)), dtype=np.int64)
        racks = rack_of[rows]
        home = np.where(racks[:, :1] < 0, len(beyond) // n - 1, racks[:, :1])
        self._first = rows[:, :1] * n + rows[:, 1:]
        self._outside = racks[:, 1:] != racks[:, :1]
        self._second = home * n + rows[:, 1:]
        # A row within one rack counts nowhere.
        self._second[~self._outside.any(axis=1)] = len(beyond) - 1
        self._all_outside = bool(self._outside.all())
        used = np.zeros(len(after), dtype=np.bool_)
        used[self._first.ravel()] = True
        self._used = used.reshape(n, n)

    def choose(self) -> None:
        """Choose for all rows, part by part: a part sees those before it, but not itself."""
        size = max(1, -(-len(self._line) // _PARTS))
        for start in range(0, len(self._line), size):
            part = self._line[start : start + size]
            n, m = self._heights(part)
            self.slot[part] = slots = (n * _UNIT + m).argmin(axis=1)
            self.rack_slot[part] = self._look_beyond(part, slots)
            self._count(part, 1)

    def keep(self) -> None:
        """Choose for all rows who is next in them now."""
        self.rack_slot = np.where(self._outside[:, 0], 0, self._outside.argmax(axis=1))
        self._count(self._line, 1)

    def improve(self) -> None:
        """Gain on level 5, by single changes and then along paths; then on level 6 alone."""
        if self._first.shape[1] < 2:
            return
        self._work = _WORK
        while self._work > 0 and self._gain_first():
            pass
        self._work = _WORK
        self._hand_on()
        self._work = _WORK
        while self._work > 0 and self._gain_second():
            pass

    def write(self, rows: Ints) -> None:
        """Put the chosen followers second, and who is next after the rack right behind them."""
        chosen = rows[self._line, 1 + self.slot]
        after_rack = rows[self._line, 1 + self.rack_slot]
        rows[self._line, 1 + self.slot] = rows[:, 1]
        rows[:, 1] = chosen
        if not self._all_outside and rows.shape[1] > 3:
            where = rows[:, 2:] == after_rack[:, None]
            line = np.flatnonzero(where.any(axis=1) & (after_rack != chosen))
            at = 2 + where[line].argmax(axis=1)
            rows[line, at], rows[line, 2] = rows[line, 2], rows[line, at]

    def _heights(self, part: Ints) -> tuple[Ints, Ints]:
        """Return n and m of the cells where each follower of some rows would count."""
        m = self._beyond[self._second[part]]
        if not self._all_outside:
            # Behind a follower of the leader's own rack, the best one outside is next.
            m = np.where(self._outside[part], m, _UNIT - 1)
            m = np.where(self._outside[part], m, m.min(axis=1, keepdims=True))
        return self._after[self._first[part]], m

    def _look_beyond(self, lines: Ints, slots: Ints) -> Ints:
        """Return who is next outside the leader's rack, if `slots` are next in some rows."""
        if self._all_outside:
            return slots
        outside = self._outside[lines]
        m = np.where(outside, self._beyond[self._second[lines]], _NEVER)
        return np.where(outside[np.arange(len(lines)), slots], slots, m.argmin(axis=1))

    def _count(self, lines: Ints, times: int) -> None:
        np.add.at(self._after, self._first[lines, self.slot[lines]], times)
        np.add.at(self._beyond, self._second[lines, self.rack_slot[lines]], times)

    def _change(self, lines: Ints, slots: Ints, rack_slots: Ints) -> int:
        self._count(lines, -1)
        self.slot[lines], self.rack_slot[lines] = slots, rack_slots
        self._count(lines, 1)
        return len(lines)

    def _gain_first(self) -> int:
        """Change next leaders where level 5 gains; return in how many rows."""
        self._work -= len(self._line)
        n = self._after[self._first]
        best = n.argmin(axis=1)
        gap = n[self._line, self.slot] - n[self._line, best]
        better = np.flatnonzero(gap > 1)
        better = better[np.argsort(-gap[better], kind="stable")]
        cells = np.maximum(1, self._used.sum(axis=1))
        mean = (self._after.reshape(self._n, -1).sum(axis=1) / cells).repeat(self._n)
        giver, taker = self._first[better, self.slot[better]], self._first[better, best[better]]
        kept = better[_fit_together(giver, taker, self._after - mean)]
        return self._change(kept, best[kept], self._look_beyond(kept, best[kept]))

    def _gain_second(self) -> int:
        """Change next leaders where level 6 gains and level 5 does not change; in how many rows."""
        self._work -= 2 * len(self._line)
        n, m = self._heights(self._line)
        now = n[self._line, self.slot]
        held = self._beyond[self._second[self._line, self.rack_slot]]
        tie = n + 1 == now[:, None]
        if not self._all_outside:
            # Who is next in the leader's own rack may stay, if a better one outside follows.
            tie[self._line, self.slot] = ~self._outside[self._line, self.slot]
        price = np.where(tie, m, _NEVER)
        best = price.argmin(axis=1)
        gap = held - price[self._line, best]
        better = np.flatnonzero(gap > 1)
        better = better[np.argsort(-gap[better], kind="stable")]
        mean = self._beyond.reshape(-1, self._n).mean(axis=1).repeat(self._n)
        once = np.ones(len(self._after), dtype=np.int64)
        for slot in (self.slot, best):
            better = better[first_in_line(self._first[better, slot[better]], once)]
        beyond = self._look_beyond(better, best[better])
        giver, taker = self._second[better, self.rack_slot[better]], self._second[better, beyond]
        kept = _fit_together(giver, taker, self._beyond - mean)
        return self._change(better[kept], best[better[kept]], beyond[kept])

    def _hand_on(self) -> None:
        """Gain on level 5 along paths: a full cell of a leader hands a row on to a nearer one.

        Distances to cells that are lower by two or more come from a search backwards, for all
        leaders at once. If no full cell of a leader reaches a low one, they are as low as they can
        be for these rows, and the search goes on with those that are lower by one.
        """
        table, leader = self._after.reshape(self._n, self._n), self._first[:, 0] // self._n
        top = table.max(axis=1)
        lowest = np.where(self._used, table, _NEVER).min(axis=1)
        once = np.ones(len(self._after), dtype=np.int64)
        while self._work > 0 and len(lines := np.flatnonzero((top > lowest + 1)[leader])):
            self._work -= 2 * len(lines)
            first, now = self._first[lines], self._first[lines, self.slot[lines]]
            height = top.repeat(self._n)
            # No way leads through another full cell: it would have to take and give at once.
            passable = self._after < height
            low = self._used.ravel() & (self._after <= height - 2)
            distance = np.where(low, 0, _NEVER)
            fresh, step = np.flatnonzero(low), 0
            while len(fresh):
                near = now[((distance == step) & passable)[first].any(axis=1)]
                fresh = near[distance[near] == _NEVER]
                step += 1
                distance[fresh] = step
            full = np.flatnonzero((self._after == height)[now] & (distance[now] < _NEVER))
            nearer = distance[first[full]] == distance[now[full], None] - 1
            nearer &= passable[first[full]]
            full, slot = full[nearer.any(axis=1)], nearer[nearer.any(axis=1)].argmax(axis=1)
            kept = first_in_line(now[full], once)
            kept = kept[first_in_line(first[full[kept], slot[kept]], once)]
            changed, slot = lines[full[kept]], slot[kept]
            self._change(changed, slot, self._look_beyond(changed, slot))
            moved = np.zeros(self._n, dtype=np.bool_)
            moved[leader[changed]] = True
            top = np.where(moved, np.minimum(table.max(axis=1), top), top - 1)


def _fit_together(givers: Ints, takers: Ints, above: NDArray[np.float64]) -> Ints:
    """Return which of some changes, each a gain alone, lower the squares if they are made at once.

    `above` is by how much each cell exceeds its mean. Down to the mean a cell gives, up to it a
    cell takes, as often as it can. Of cells that have no part in this, each gives one and takes
    one: these changes form chains, and each link of a chain leads down by two or more.
    """
    kept = np.flatnonzero((above[givers] >= 1) & (above[takers] <= -1))
    kept = kept[first_in_line(givers[kept], above.astype(np.int64))]
    kept = kept[first_in_line(takers[kept], (-above).astype(np.int64))]
    busy = np.zeros(len(above), dtype=np.bool_)
    busy[givers[kept]] = busy[takers[kept]] = True
    once = np.ones(len(above), dtype=np.int64)
    rest = np.flatnonzero(~(busy[givers] | busy[takers]))
    rest = rest[first_in_line(givers[rest], once)]
    rest = rest[first_in_line(takers[rest], once)]
    return np.concatenate((kept, rest))
