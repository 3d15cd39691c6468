"""The input of a move: the brokers, what they hold, and the topics whose rows must change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from reconciler.model.cluster import Assignment, Broker, Replicas


@dataclass(frozen=True, slots=True)
class MoveWish:
    """A topic that is to have `replication` replicas of every partition.

    If `replication` is None, each row keeps its number of replicas. `rows` holds the replicas of
    each partition now, preferred leader first. `in_sync` holds those that are in sync, per
    partition; empty if unknown, and then all count as in sync. `fixed` holds other rows of the
    topic, which stay as they are and count in its balance. `offline` holds the replicas on failed
    log directories, per partition; they lead nothing. It is empty if there are none.
    """

    topic: str
    rows: Assignment
    replication: int | None
    rack_aware: bool = True
    in_sync: Assignment = ()
    fixed: Assignment = ()
    offline: Assignment = ()

    def count_wanted(self, row: Replicas) -> int:
        """Return the number of replicas that a row is to have."""
        return len(row) if self.replication is None else self.replication


class MoveGoal(Enum):
    """What comes first: to copy little, or to be balanced."""

    FEWEST_MOVES = "fewest-moves"
    """Only rows that must change do, and they copy as little as they can."""
    BALANCE = "balance"
    """All rows of the wishes may change, as far as this balances topics and the cluster."""
    OFFLINE_REPLICAS = "offline-replicas"
    """As FEWEST_MOVES, and rows give up their replicas on failed log directories.

    Other replicas on the same brokers stay, and so does a preferred leader that is able to lead.
    """


@dataclass(frozen=True, slots=True)
class MoveProblem:
    """All brokers of a cluster, those that may receive a replica, and the wishes.

    `eligible` holds ids of living brokers that are neither excluded nor cordoned; no row grows to
    more replicas than their number. Every row gives up the replicas on `drained` brokers, which are
    not eligible. `leaders` and `replicas` count the preferred leaders and replicas on each broker
    over all topics, the wished and the fixed rows included. `capacity` says how much a broker can
    bear next to others (1 if it is not named). `givers` could take replicas, but are to take none:
    they may lead more. `most` bounds the replicas of some brokers after a balance without drains; a
    broker that holds more already takes no more.
    """

    brokers: tuple[Broker, ...]
    eligible: frozenset[int]
    leaders: Mapping[int, int]
    replicas: Mapping[int, int]
    wishes: tuple[MoveWish, ...]
    capacity: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    drained: frozenset[int] = frozenset()
    goal: MoveGoal = MoveGoal.FEWEST_MOVES
    givers: frozenset[int] = frozenset()
    most: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))

    def give_up(self, wish: MoveWish, number: int) -> frozenset[int]:
        """Return the brokers that are to hold no replica of a partition."""
        if self.goal is MoveGoal.OFFLINE_REPLICAS and wish.offline:
            return self.drained.union(wish.offline[number])
        return self.drained

    def may_change(self, wish: MoveWish, number: int) -> bool:
        """Return whether other brokers may hold a partition."""
        if self.goal is MoveGoal.BALANCE:
            return True
        row = wish.rows[number]
        return len(row) != wish.count_wanted(row) or not self.give_up(wish, number).isdisjoint(row)
