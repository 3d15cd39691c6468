"""Level 5 for thousands of rows at once: pairs of rows exchange followers, levels 1 to 4 stay.

Row p takes follower c instead of u, and another row takes u instead of c: one of the same topic, or
of a topic for which both are ties as well. So no count of leaders or replicas changes by more than
a tie. The moves of `row_search`, but only where level 5 gains, and in rounds of many pairs. The
pairs of a round share no row, no cell of the table and no count of a topic, so each gains what it
gains alone.

The moves, and how near the bound they lead: docs/explanation/placement-proofs.md, "Next leaders".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reconciler.placement.bulk_leaders import first_in_line
from reconciler.placement.bulk_rows import mix
from reconciler.placement.counts import Demand, RackRule

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_ROUNDS, _IDLE, _INDEXED = 60, 4, 8
"""How many rounds there are at most, how many in a row may gain nothing, and after how many rows
are sorted again.
"""

_ROWS_PER_CELL, _ROWS_PER_UNIT = 2, 2
"""How many rows of a leader and its next one try to change in a round, at most; and how many of a
leader, for each that has to.
"""

_LOOKED_AT = 2_048
"""How many rows in cells that are too high a round looks at, about."""

_TAKES, _PARTNERS = 2, 6
"""How many brokers are drawn for a row at least, and how many other rows for each of its followers
and one of these: every third one of its own topic.
"""

_NEVER = 1 << 30


class Block(NamedTuple):
    """New rows of some topics, topic after topic; each has as many as the others."""

    demands: Sequence[Demand]
    rows: Ints


class _Pairs(NamedTuple):
    """Row p gives follower `out` of slot `slot` for `into`, which row `q` has in `back`."""

    p: Ints
    slot: Ints
    into: Ints
    q: Ints
    back: Ints

    def pick(self, chosen: NDArray[np.int64] | Flags) -> _Pairs:
        return _Pairs(*(column[chosen] for column in self))


def exchange_followers(blocks: Sequence[Block], after: Ints, least: int) -> int:
    """Exchange followers in place until level 5 is `least` or no round gains; return the gain.

    `after` is n(a, b) with the rows of all blocks in it. The first follower of a row is next.
    """
    blocks = [block for block in blocks if block.rows.shape[1] > 1]
    gained = 0
    if blocks and (above := int((after * after).sum()) - least) > 0:
        exchange = _Exchange(blocks, after)
        gained = exchange.run(above)
        exchange.write(blocks)
    return gained


class _Exchange:
    """All rows side by side, filled up with -1 to one width, and what topics hold."""

    def __init__(self, blocks: Sequence[Block], after: Ints) -> None:
        self._n = n = len(after)
        self._after = after.ravel().copy()
        width = max(block.rows.shape[1] for block in blocks)
        self._per_cell = np.full(n * n, _ROWS_PER_CELL)
        self._rows = np.concatenate([_widen(block.rows, width) for block in blocks])
        demands = [demand for block in blocks for demand in block.demands]
        self._once = np.ones(len(self._rows), dtype=np.int64)
        counts = np.array([demand.count for demand in demands])
        self._topic = np.repeat(np.arange(len(demands)), counts)
        self._weight = np.array([demand.weight for demand in demands])
        cells = (self._topic[:, None] * n + self._rows)[self._rows >= 0]
        held = np.bincount(cells, minlength=len(demands) * n).reshape(-1, n)
        grown = [t for t, demand in enumerate(demands) if demand.wish.existing]
        for t in grown:
            held[t] += np.array(demands[t].replicas)
        self._held = held
        rules: dict[int, RackRule] = {id(demand.rule): demand.rule for demand in demands}
        number = {key: k for k, key in enumerate(rules)}
        self._rule = np.array([number[id(demand.rule)] for demand in demands])
        racks = max(len(rule.racks) for rule in rules.values())
        self._rack_of = np.array([rule.rack_of for rule in rules.values()])
        fill = [(0,) * (racks - len(rule.racks)) for rule in rules.values()]
        both = list(zip(rules.values(), fill, strict=True))
        self._fewest = np.array([rule.fewest + rest for rule, rest in both])
        self._most = np.array([rule.most + rest for rule, rest in both])
        # A rack that takes one replica of a row has nobody who is next after its own leaders.
        self._open = np.zeros((n, n), dtype=np.bool_)
        for rack_of, most in zip(self._rack_of, self._most, strict=True):
            self._open |= (rack_of[:, None] != rack_of) | (most[rack_of] > 1)
        self._open &= ~np.eye(n, dtype=np.bool_)

    def run(self, above: int) -> int:
        """Exchange in rounds, and return by how much level 5 fell, at most by `above`."""
        gained = idle = 0
        for number in range(_ROUNDS):
            wishes = self._wish(number)
            if wishes is None:
                break
            pairs, gain = self._choose(*wishes, number)
            self._make(pairs)
            gained += 2 * int(gain.sum())
            idle = 0 if len(gain) else idle + 1
            if gained >= above or idle == _IDLE:
                break
        return gained

    def write(self, blocks: Sequence[Block]) -> None:
        """Copy the rows back."""
        start = 0
        for block in blocks:
            end = start + len(block.rows)
            block.rows[:] = self._rows[start:end, : block.rows.shape[1]]
            start = end

    def _choose(self, p: Ints, slot: Ints, into: Ints, number: int) -> tuple[_Pairs, Ints]:
        """Find partners for wishes; return pairs that gain, the best first, and what they gain."""
        if number % _INDEXED == 0:
            self._index()
        gain = -self._price(p, slot, into)
        kept: list[_Pairs] = []
        gains: list[Ints] = []
        for draw in range(_PARTNERS if len(p) else 0):
            place = self._draw_place(p, into, number * _PARTNERS + draw, own=draw % 3 == 0)
            found = np.flatnonzero(place >= 0)
            q, back = np.divmod(place[found], self._rows.shape[1])
            pairs = _Pairs(p[found], slot[found], into[found], q, back)
            may = np.flatnonzero(self._may(pairs))
            pairs, found = pairs.pick(may), found[may]
            both = gain[found] - self._price(pairs.q, pairs.back, self._rows[pairs.p, pairs.slot])
            kept.append(pairs.pick(both > 0))
            gains.append(both[both > 0])
            # Who has found a partner looks no further.
            rest = ~np.isin(p, pairs.p[both > 0])
            p, slot, into, gain = p[rest], slot[rest], into[rest], gain[rest]
        if not kept:
            return _Pairs(p, p, p, p, p), p
        pairs = _Pairs(*(np.concatenate(columns) for columns in zip(*kept, strict=True)))
        both = np.concatenate(gains)
        order = np.argsort(-both, kind="stable")
        order = order[first_in_line(pairs.p[order], self._once)]
        order = order[self._keep_apart(pairs.pick(order))]
        return pairs.pick(order), both[order]

    def _wish(self, number: int) -> tuple[Ints, Ints, Ints] | None:
        """Return rows whose next leader takes over too much, a slot to give, a broker to take.

        None if there is no such row: then each line of the table is as even as it can be.
        """
        n, rows = self._n, self._rows
        table = self._after.reshape(n, n)
        cells = rows[:, 0] * n + rows[:, 1]
        # How many rows of a leader are too many in their cells, or too few.
        open_cells = np.where(self._open, table, 0)
        level = open_cells.sum(axis=1) // np.maximum(1, self._open.sum(axis=1))
        above = np.maximum(open_cells - level[:, None] - 1, 0).sum(axis=1)
        below = np.where(self._open, np.maximum(level[:, None] - table, 0), 0).sum(axis=1)
        enough = np.maximum(np.where(self._open, table, _NEVER).min(axis=1) + 1, level)
        high = np.flatnonzero(self._after[cells] > enough[rows[:, 0]])
        if not len(high):
            return None
        # Each round looks at others; the highest cells come first, then a hash decides.
        step = 1 + len(high) // _LOOKED_AT
        high = high[number % step :: step]
        high = high[np.argsort(_draw(high, number), kind="stable")]
        high = high[np.argsort(-self._after[cells[high]], kind="stable")]
        high = high[first_in_line(cells[high], self._per_cell)]
        high = high[first_in_line(rows[high, 0], _ROWS_PER_UNIT * np.maximum(above, below))]
        return self._draw_takes(high, np.maximum(level - 1, enough - 1), number)

    def _draw_takes(self, high: Ints, few: Ints, number: int) -> tuple[Ints, Ints, Ints]:
        """Return brokers that some rows may take, each with the row and the slot it is to have.

        Every other draw is from those with up to `few` rows of the leader, which need some; the
        rest from all where level 5 gains. The fewer rows are left, the more is drawn for each.
        """
        n, leader = self._n, self._rows[high, 0]
        table = np.where(self._open, self._after.reshape(n, n), _NEVER)
        lines = np.argsort(table, axis=1, kind="stable")
        heights = np.take_along_axis(table, lines, axis=1)[leader]
        now = self._after[leader * n + self._rows[high, 1]]
        ends = [(heights <= most[:, None]).sum(axis=1) for most in (few[leader], now - 2)]
        draws = min(max(_TAKES, _LOOKED_AT // len(high)), n)
        end = np.where(np.arange(draws) % 2 == 0, ends[0][:, None], ends[1][:, None])
        drawn = _draw(np.arange(end.size), number).reshape(end.shape)
        at = (drawn % np.maximum(end, 1).astype(np.uint64)).astype(np.int64)
        into = lines[leader[:, None], at].ravel()
        p, now = np.repeat(high, draws), np.repeat(now, draws)
        good = self._after[self._rows[p, 0] * n + into] <= now - 2
        good &= self._open[self._rows[p, 0], into] & (self._rows[p] != into[:, None]).all(axis=1)
        p, into = p[good], into[good]
        followers = self._rows.shape[1] - 1
        slots = np.tile(np.arange(followers) + 1, len(p))
        p, into = np.repeat(p, followers), np.repeat(into, followers)
        out = self._rows[p, slots]
        fits = (out >= 0) & self._fits(p, out, into)
        return p[fits], slots[fits], into[fits]

    def _index(self) -> None:
        """Sort followers by broker, and by topic and broker: where a partner is looked for."""
        line, column = np.nonzero(self._rows[:, 1:] >= 0)
        broker = self._rows[line, column + 1]
        places = line * self._rows.shape[1] + column + 1
        self._indexed = []
        for keys in (broker, self._topic[line] * self._n + broker):
            order = np.argsort(keys, kind="stable")
            self._indexed.append((keys[order], places[order]))

    def _draw_place(self, p: Ints, into: Ints, salt: int, *, own: bool) -> Ints:
        """Return a place where another row has the wished broker, for each wish; -1 if none has.

        In rows of the `own` topic, or in all. Rows may have changed since they were sorted.
        """
        keys, places = self._indexed[own]
        wanted = self._topic[p] * self._n + into if own else into
        start = np.searchsorted(keys, wanted)
        length = np.searchsorted(keys, wanted, side="right") - start
        drawn = _draw(np.arange(len(p)), salt) % np.maximum(length, 1).astype(np.uint64)
        place = places[np.minimum(start + drawn.astype(np.int64), len(places) - 1)]
        there = (length > 0) & (self._rows.ravel()[place] == into)
        found: Ints = np.where(there, place, -1)
        return found

    def _may(self, pairs: _Pairs) -> Flags:
        """Return which pairs keep rows, racks and topics as they have to be."""
        p, q, into, out = pairs.p, pairs.q, pairs.into, self._rows[pairs.p, pairs.slot]
        t, s = self._topic[p], self._topic[q]
        held, weight = self._held, self._weight
        ties = (weight[t] == weight[s]) & (held[t, out] == held[t, into] + 1)
        ties &= held[s, into] == held[s, out] + 1
        may: Flags = (p != q) & ((s == t) | ties)
        may &= (self._rows[q] != out[:, None]).all(axis=1)
        return may & self._fits(q, into, out)

    def _fits(self, p: Ints, out: Ints, into: Ints) -> Flags:
        """Return whether the racks of rows p allow `into` instead of `out`."""
        rule = self._rule[self._topic[p]]
        j, k = self._rack_of[rule, out], self._rack_of[rule, into]
        rack_of = self._rack_of[rule[:, None], self._rows[p]]
        rack_of[self._rows[p] < 0] = -1
        shrinks = (rack_of == j[:, None]).sum(axis=1) > self._fewest[rule, j]
        grows = (rack_of == k[:, None]).sum(axis=1) < self._most[rule, k]
        fits: Flags = (j == k) | (shrinks & grows)
        return fits

    def _price(self, p: Ints, slot: Ints, into: Ints) -> Ints:
        """Return by how much level 5 rises, in units of two, if rows p take `into` in `slot`."""
        _, low, now = self._best_next(p, slot, into)
        return low - now + 1

    def _best_next(self, p: Ints, slot: Ints, into: Ints) -> tuple[Ints, Ints, Ints]:
        """Return who is next best if rows p take `into` in `slot`, its count without the row, and
        the count of who is next now.
        """
        rows = self._rows[p]
        leader, following = rows[:, 0], rows[:, 1].copy()
        line = np.arange(len(p))
        rows[line, slot] = into
        counts = self._after[leader[:, None] * self._n + np.maximum(rows[:, 1:], 0)]
        counts = np.where(rows[:, 1:] < 0, _NEVER, counts)
        now = self._after[leader * self._n + following]
        counts -= rows[:, 1:] == following[:, None]
        # Who is next stays next where nobody else is better.
        best = counts.argmin(axis=1)
        stays = (slot != 1) & (counts[line, best] == now - 1)
        best[stays] = 0
        return best + 1, counts[line, best], now

    def _keep_apart(self, pairs: _Pairs) -> Ints:
        """Return pairs that share nothing: first come, first served."""
        n, many = self._n, len(self._rows)
        rows, out = self._rows, self._rows[pairs.p, pairs.slot]
        t, s = self._topic[pairs.p], self._topic[pairs.q]
        used = [pairs.p, pairs.q]
        for p, slot, into in ((pairs.p, pairs.slot, pairs.into), (pairs.q, pairs.back, out)):
            best, _, _ = self._best_next(p, slot, into)
            following = np.where(best == slot, into, rows[p, best])
            changes = following != rows[p, 1]
            cells = (many + rows[p, 0] * n + b for b in (rows[p, 1], following))
            used += [np.where(changes, cell, p) for cell in cells]
        for topic in (t, s):
            counts = (many + n * n + topic * n + b for b in (out, pairs.into))
            used += [np.where(s != t, count, pairs.p) for count in counts]
        keys, place = np.unique(np.stack(used), return_inverse=True)
        place = place.reshape(len(used), -1)
        kept, rest = [], np.arange(len(pairs.p))
        taken = np.zeros(len(keys), dtype=np.bool_)
        while len(rest):
            first = np.full(len(keys), len(pairs.p))
            np.minimum.at(first, place[:, rest], np.broadcast_to(rest, (len(used), len(rest))))
            alone = (first[place[:, rest]] == rest).all(axis=0)
            kept.append(rest[alone])
            taken[place[:, rest[alone]]] = True
            rest = rest[~taken[place[:, rest]].any(axis=0)]
        return np.sort(np.concatenate([rest, *kept]))

    def _make(self, pairs: _Pairs) -> None:
        """Exchange all pairs, and put the best follower of each changed row next."""
        out = self._rows[pairs.p, pairs.slot]
        t, s = self._topic[pairs.p], self._topic[pairs.q]
        for topic, less, more in ((t, out, pairs.into), (s, pairs.into, out)):
            np.subtract.at(self._held, (topic, less), 1)
            np.add.at(self._held, (topic, more), 1)
        for p, slot, into in ((pairs.p, pairs.slot, pairs.into), (pairs.q, pairs.back, out)):
            best, _, _ = self._best_next(p, slot, into)
            rows = self._rows[p]
            cells = rows[:, 0] * self._n
            np.subtract.at(self._after, cells + rows[:, 1], 1)
            line = np.arange(len(p))
            rows[line, slot] = into
            rows[line, best], rows[line, 1] = rows[line, 1].copy(), rows[line, best].copy()
            np.add.at(self._after, cells + rows[:, 1], 1)
            self._rows[p] = rows


def _widen(rows: Ints, width: int) -> Ints:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=-1)


def _draw(numbers: Ints, salt: int) -> NDArray[np.uint64]:
    """Return a number by hash for each, others with another salt: the same in every run."""
    return mix(numbers.astype(np.uint64), salt + 16)
