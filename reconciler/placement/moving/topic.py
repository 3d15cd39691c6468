"""The rows of one topic that may change, and the exchanges that they offer.

Brokers are the bits of a mask. A row is a base of a matroid: it has `count` brokers, and of each
rack between its fewest and its most. An exchange gives up one broker of a row and takes another.

The masks of exchanges are upper bounds: an exchange that is no longer possible is noticed, and
dropped, when a row is looked for. So a search that finds nothing has proven that there is nothing.

Proof: docs/explanation/placement-moves.md, "Replicas that move".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from reconciler.placement.moving.graph import find_reach, find_shortest, list_bits


@dataclass(frozen=True, slots=True)
class Row:
    """One row: `count` brokers are chosen from `classes`, masks of brokers, the cheapest first.

    `racks` holds a mask of brokers with the fewest and the most of them that the row may have.
    There are none if the racks play no part.
    """

    topic: int
    count: int
    classes: tuple[int, ...]
    racks: tuple[tuple[int, int, int], ...] = ()


class Exchange(NamedTuple):
    """A row of a topic gives up one broker and takes another; `price` is the change of its price.

    The price of a row is the number of its brokers of the second class.
    """

    topic: int
    row: int
    gives: int
    takes: int
    price: int


class Topic:
    """What the rows of a topic have chosen, how many units its brokers have, and the exchanges."""

    def __init__(self, number: int, units: list[int], *, keeps_classes: bool) -> None:
        """Begin without rows. `units` are those of fixed rows, by broker."""
        brokers = len(units)
        self.number, self.units = number, units
        self.rows: list[Row] = []
        self.chosen: list[int] = []
        self.holders: list[dict[int, None]] = [{} for _ in range(brokers)]
        self.takes = [0] * brokers
        """What may be taken for each broker."""
        self.gains = [0] * brokers
        """What may be taken for each broker at a price of -1."""
        self.swaps = self.takes if keeps_classes else [0] * brokers
        """What may be taken for each broker at a price of 0."""
        self.arcs = {-1: self.gains, 0: self.swaps, 1: self.takes}
        """What may be taken for each broker, by price; at 1, also what costs less."""
        if keeps_classes:
            self.arcs = {0: self.takes}
        self._keeps_classes = keeps_classes
        self._reach: dict[int, int] = {}

    def add(self, row: Row, chosen: int) -> None:
        """Add a row with a choice that is a base."""
        number = len(self.rows)
        self.rows.append(row)
        self.chosen.append(chosen)
        for b in list_bits(chosen):
            self.units[b] += 1
            self.holders[b][number] = None

    def offer(self) -> None:
        """Offer the exchanges of all rows."""
        for number in range(len(self.rows)):
            self._offer(number)

    def _offer(self, number: int) -> None:
        for b, takes, swaps, gains in self._exchanges(number):
            if takes & ~self.takes[b]:
                self.takes[b] |= takes
                self._reach.clear()
            self.swaps[b] |= swaps
            self.gains[b] |= gains

    def _exchanges(self, number: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield each broker of a row, and what may be taken for it: at all, at price 0, at -1."""
        row, chosen = self.rows[number], self.chosen[number]
        classes = row.classes
        room = wide = 0  # brokers of racks that may have one more; racks that may have one less
        for mask, low, high in row.racks:
            used = (chosen & mask).bit_count()
            if used < high:
                room |= mask
            if used > low:
                wide |= mask
        everything = 0
        for one in classes:
            everything |= one
        rest = chosen
        while rest:
            bit = rest & -rest
            rest ^= bit
            takes = everything
            if row.racks:
                takes = next(mask for mask, _, _ in row.racks if mask & bit)
                if wide & bit:
                    takes |= room
            takes &= ~chosen
            if self._keeps_classes:
                takes &= next(one for one in classes if one & bit)
                yield bit.bit_length() - 1, takes & everything, 0, 0
            elif classes[0] & bit:
                yield bit.bit_length() - 1, takes & everything, takes & classes[0], 0
            else:
                swaps = takes & classes[1]
                yield bit.bit_length() - 1, takes & everything, swaps, takes & classes[0]

    def find_row(self, gives: int, takes: int) -> Exchange | None:
        """Find the cheapest exchange of two brokers; correct the masks if there is none."""
        found = None
        bit, taken = 1 << gives, 1 << takes
        for number in self.holders[gives]:
            if self.chosen[number] & taken or not self._may_take(number, bit, taken):
                continue
            first = 0 if self._keeps_classes else self.rows[number].classes[0]
            price = (not first & taken) - (not first & bit)
            if found is None or price < found.price:
                found = Exchange(self.number, number, gives, takes, price)
                if price < 0 or self._keeps_classes:
                    break
        if found is None:
            self.correct(gives)
        return found

    def _may_take(self, number: int, bit: int, taken: int) -> bool:
        classes, racks = self.rows[number].classes, self.rows[number].racks
        if self._keeps_classes:
            if not any(one & bit and one & taken for one in classes):
                return False
        elif not any(one & taken for one in classes):
            return False
        chosen = self.chosen[number]
        for mask, low, high in racks:
            if mask & bit:
                if not mask & taken and (chosen & mask).bit_count() <= low:
                    return False
            elif mask & taken and (chosen & mask).bit_count() >= high:
                return False
        return True

    def correct(self, broker: int) -> None:
        """Make the masks of a broker exact."""
        self.takes[broker] = self.swaps[broker] = self.gains[broker] = 0
        for number in self.holders[broker]:
            for b, takes, swaps, gains in self._exchanges(number):
                if b == broker:
                    self.takes[b] |= takes
                    self.swaps[b] |= swaps
                    self.gains[b] |= gains
        self._reach.clear()

    def find_slack(self, full: int) -> int | None:
        """Find how much dearer some brokers must be for one of their units to leave them at no
        cost. Returns None if none can leave.
        """
        slacks = [
            min(self.units[c] for c in list_bits(behind)) + 1 - self.units[b]
            for b in list_bits(full)
            if self.holders[b] and (behind := self.reach(b) & ~full)
        ]
        return min(slacks, default=None)

    def make_dearer(self, brokers: int, units: int) -> None:
        """Let brokers cost as if they had some units more."""
        for b in list_bits(brokers):
            self.units[b] += units

    def reach(self, broker: int) -> int:
        """Return the brokers that can take a unit of a broker, by any number of exchanges."""
        return find_reach(self.takes, broker, self._reach)

    def find_path(self, source: int, target: int) -> list[Exchange] | None:
        """Find the fewest exchanges that hand a unit from one broker to another."""
        while brokers := find_shortest(self.takes, 1 << source, 1 << target):
            path = []
            for gives, takes in pairwise(brokers):
                if (exchange := self.find_row(gives, takes)) is None:
                    break
                path.append(exchange)
            else:
                return path
        return None

    def push(self, exchange: Exchange) -> None:
        """Make an exchange. Errors: AssertionError if its row does not allow it."""
        _, number, gives, takes, _ = exchange
        bit, taken = 1 << gives, 1 << takes
        chosen = self.chosen[number]
        if not chosen & bit or chosen & taken or not self._may_take(number, bit, taken):
            raise AssertionError("a shortest path offered an exchange that its row does not allow")
        self.change({number: (bit, taken)})

    def change(self, rows: dict[int, tuple[int, int]]) -> None:
        """Let rows give up some brokers and take others, as masks."""
        for number, (gives, takes) in rows.items():
            self.chosen[number] = self.chosen[number] & ~gives | takes
            for b in list_bits(gives):
                self.units[b] -= 1
                del self.holders[b][number]
            for b in list_bits(takes):
                self.units[b] += 1
                self.holders[b][number] = None
            self._offer(number)
