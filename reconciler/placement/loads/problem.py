"""The input of a balance by load: what each unit puts on its broker, and the band of each broker.

A unit is what moves as one: a replica, the lead of a partition, or a replica between directories.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NOBODY = -1
"""Fills up the rows of partitions with fewer replicas than others."""

KEPT_SHARE = 1000
"""A copy counts as this part of a broker's mean bytes in addition to its own (κ, in the docs)."""


@dataclass(frozen=True, slots=True)
class LoadProblem:
    """Rows of brokers, their loads, and the band that the load of every broker is to be in.

    Shapes: P partitions of R units each, B brokers, K resources. All brokers are indices.

    `rows` (P, R) holds the broker of each unit, NOBODY where there is none. `loads` (K, P) is what
    one unit of a partition puts on its broker, and `fixed` (K, B) what is there besides. `cost` (P)
    is the price of one unit on a broker that did not have it: bytes, or 1 for a lead. `low` and
    `high` (K, B) bound the sum of loads, and `scale` (K) is a broker's mean share: violations are
    counted in it. `racks` (B) numbers the rack of each broker; if all are 0, racks play no part.
    `receivers` (B) may take units, and `movable` (P) may give theirs up. `within` (P, R') holds the
    only brokers that a partition may use: its replicas, for a lead. `topics` (P) numbers the topic
    of each partition; with `spread`, replicas of a topic per broker stay within as much as they
    are apart now, plus that number. `room` (B) is the most that all copies to a broker may cost, as
    if nothing left it before they are there. Units: bytes, bytes per second, or replicas.
    """

    rows: Ints
    loads: Ints
    fixed: Ints
    cost: Ints
    low: Ints
    high: Ints
    scale: Floats
    racks: Ints
    receivers: Flags
    movable: Flags
    topics: Ints
    spread: int | None = None
    within: Ints | None = None
    room: Ints | None = None

    @property
    def brokers(self) -> int:
        """The number of brokers."""
        return len(self.racks)

    @property
    def surcharge(self) -> float:
        """What a unit costs besides its bytes, so that few move; 0 for leads, which cost 1 each."""
        if self.within is not None:
            return 0.0
        held = (self.rows != NOBODY).sum(axis=1)
        return float((self.cost * held).sum()) / self.brokers / KEPT_SHARE

    def add_up(self, rows: Ints) -> Ints:
        """Return the load (K, B) of each broker with these rows."""
        held = rows != NOBODY
        brokers = rows[held]
        sums = self.fixed.copy()
        for load, amounts in zip(sums, self.loads, strict=True):
            np.add.at(load, brokers, np.broadcast_to(amounts[:, None], rows.shape)[held])
        return sums

    def measure_outside(self, load: Ints) -> Floats:
        """Return how far a load (K, B) is outside its band, in shares."""
        outside = np.maximum(np.maximum(load - self.high, self.low - load), 0)
        return np.asarray(outside / self.scale[:, None])

    def measure_cost(self, rows: Ints) -> int:
        """Return what rows cost: the units on brokers that did not have them."""
        return int((self.count_new(rows) * self.cost).sum())

    def count_new(self, rows: Ints) -> Ints:
        """Return the units (P) of each partition on brokers that did not have one of its units."""
        stays = (rows[:, :, None] == self.rows[:, None, :]).any(axis=2)
        return np.asarray(((rows != NOBODY) & ~stays).sum(axis=1))
