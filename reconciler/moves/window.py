"""The window of a plan of moves: which rows move next, and how many at one time.

The forecast and the run share it, so that a run moves rows as the forecast assumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from reconciler.model.cluster import Place, Replicas
from reconciler.model.moves import MovePolicy


@dataclass(frozen=True, slots=True)
class RowMove:
    """One partition that gets other replicas: its rows, its leader, and its amount of data.

    `leader` is -1 if there is none. Units: `size` in bytes, -1 if unknown; `rate` in bytes per
    second that producers write, 0 if unknown. `internal`: its topic is internal to Kafka.
    """

    place: Place
    old: Replicas
    new: Replicas
    leader: int = -1
    size: int = -1
    rate: int = 0
    internal: bool = False

    @property
    def adding(self) -> Replicas:
        """The brokers that copy it."""
        return tuple(broker for broker in self.new if broker not in self.old)

    @property
    def removing(self) -> Replicas:
        """The brokers that drop it afterwards."""
        return tuple(broker for broker in self.old if broker not in self.new)


def order_moves(
    moves: Iterable[RowMove],
    fullness: Mapping[int, float],
    urgent: Collection[Place] = (),
) -> list[RowMove]:
    """Return rows in the order in which they start.

    First the `urgent` ones: a replica is on a dead broker or out of sync, so the partition lacks a
    copy. Then those that leave the fullest broker, by `fullness`, a share from 0 to 1 that is 0 if
    unknown. Among equals the largest starts first: started last, it would run alone at the end.
    Internal topics come last, since clients depend on their leaders.
    """

    def rank(move: RowMove) -> tuple[bool, bool, float, int, Place]:
        leaves = move.removing or (move.leader,)
        fullest = max(fullness.get(broker, 0.0) for broker in leaves)
        return move.internal, move.place not in urgent, -fullest, -move.size, move.place

    return sorted(moves, key=rank)


class Side(Enum):
    """What counts the replicas in flight: the cluster, or a broker that sends or receives."""

    CLUSTER = "cluster"
    SENDS = "sends"
    RECEIVES = "receives"


Limit = tuple[Side, int, int]
"""A counter, its broker (-1 for the cluster), and the replicas that a row adds to it."""


@dataclass(slots=True)
class Seats:
    """The replicas that are copied at one time, within the limits of a policy.

    A broker sends at most `at_once_broker` replicas, and receives at most as many. A row that
    exceeds a limit by itself moves while nothing else does there.
    """

    policy: MovePolicy
    taken: Counter[tuple[Side, int]] = field(default_factory=Counter)

    def fits(self, move: RowMove) -> bool:
        """Return whether a row may start now."""
        return all(map(self.allows, list_limits(move)))

    def allows(self, limit: Limit) -> bool:
        """Return whether one limit leaves room."""
        side, broker, added = limit
        policy = self.policy
        most = policy.at_once_cluster if side is Side.CLUSTER else policy.at_once_broker
        taken = self.taken[side, broker]
        return not taken or taken + added <= most

    def take(self, move: RowMove) -> None:
        """Count a row that starts."""
        for side, broker, added in list_limits(move):
            self.taken[side, broker] += added

    def free(self, move: RowMove) -> None:
        """Count a row that ended."""
        for side, broker, added in list_limits(move):
            self.taken[side, broker] -= added


def list_limits(move: RowMove) -> Iterator[Limit]:
    """Yield the limits that a row needs room in."""
    copies = len(move.adding)
    if copies:  # a row that only drops replicas copies nothing
        yield Side.CLUSTER, -1, copies
        yield Side.SENDS, move.leader, copies
        for broker in move.adding:
            yield Side.RECEIVES, broker, 1
