"""How long the copies of a plan of moves take: its window, played at the rate of the plan.

A model of Kafka's throttle: the replicas in flight share the rate of a broker, for what it sends
and for what it receives. Writes to a partition in flight count as well: its leader sends each of
them to every follower. Fixed costs of a row are left out, such as the time until brokers show that
it has ended, so a plan of many small partitions takes longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil
from typing import NamedTuple

from reconciler.model.moves import MovePolicy
from reconciler.moves.window import Limit, RowMove, Seats, list_limits

MANY = 5_000
"""Of more rows, those that end at nearly the same time end together. That saves most of the CPU."""

_STEPS = 5_000
_NEGLIGIBLE = 0.5
"""What rounding leaves of a copy, in bytes: such a copy has ended."""

Link = tuple[bool, int]
"""What limits a copy: a broker that sends (True), or one that receives."""


class Event(NamedTuple):
    """A row that starts or ends. Units: seconds since the first row started."""

    seconds: float
    move: RowMove
    ends: bool


@dataclass(slots=True)
class _Copy:
    """One replica in flight. Units: bytes that it lacks, and bytes per second."""

    move: RowMove
    broker: int
    left: float
    speed: float = 0.0


def play_moves(
    moves: Sequence[RowMove], policy: MovePolicy, rate: int
) -> tuple[int | None, list[Event]]:
    """Play the copies of rows of known size, in this order. Units: `rate` in bytes per second.

    Returns the seconds until the last copy ends, None if the rate is too low for that, and the
    starts and ends of rows in order of time.
    """
    seats = Seats(policy)
    waiting = _Queue(moves, seats)
    copies: list[_Copy] = []
    events: list[Event] = []
    now = 0.0
    shortest = _find_shortest_step(moves, rate)
    while waiting or copies:
        for move in waiting.start():
            events.append(Event(now, move, ends=False))
            copies += [_Copy(move, broker, move.size) for broker in move.adding]
            if not move.adding:  # it only drops replicas
                events.append(Event(now, move, ends=True))
        _share_rate(copies, rate)
        steps = [copy.left / copy.speed for copy in copies if copy.speed and copy.left]
        idle = not any(copy.left for copy in copies)
        if not steps and not idle:
            return None, events
        if not idle:
            step = max(min(steps), shortest)
            now += step
            for copy in copies:
                left = copy.left - copy.speed * step
                # What is left must be nothing: rounding would leave ever less of it, until a step
                # takes no time, and time would stand still.
                copy.left = left if left > _NEGLIGIBLE else 0.0
        # Kafka ends a row when all of its replicas are in sync, and its seats are free only then.
        unfinished = {copy.move.place for copy in copies if copy.left}
        ended = {c.move.place: c.move for c in copies if c.move.place not in unfinished}
        for move in ended.values():
            seats.free(move)
            events.append(Event(now, move, ends=True))
        copies = [copy for copy in copies if copy.move.place in unfinished]
    return ceil(now), events


class _Queue:
    """The rows that wait, each parked at a limit without room for it.

    Only limits with room are looked at, so a start does not cost a look at everything that waits.
    """

    def __init__(self, moves: Sequence[RowMove], seats: Seats) -> None:
        self._moves = moves
        self._seats = seats
        self._parked: dict[Limit | None, list[int]] = {}
        if moves:
            self._parked[None] = list(range(len(moves)))

    def __bool__(self) -> bool:
        """Return whether a row waits."""
        return bool(self._parked)

    def start(self) -> Iterator[RowMove]:
        """Yield the rows that may start, and take their seats: the first in order comes first."""
        while able := [at for at in self._parked if at is None or self._seats.allows(at)]:
            limit = min(able, key=lambda at: self._parked[at][0])
            number = heappop(self._parked[limit])
            if not self._parked[limit]:
                del self._parked[limit]
            move = self._moves[number]
            full = next((at for at in list_limits(move) if not self._seats.allows(at)), None)
            if full is None:
                self._seats.take(move)
                yield move
            else:
                heappush(self._parked.setdefault(full, []), number)


def _share_rate(copies: Iterable[_Copy], rate: int) -> None:
    """Give each copy its speed: every broker's rate is shared evenly by what cannot go faster.

    Progressive filling: the broker with the smallest share for each of its copies limits these;
    what they leave of the rate of other brokers is shared by the others.
    """
    left: dict[Link, float] = {}
    users: dict[Link, dict[int, _Copy]] = {}
    written = set()
    for number, copy in enumerate(copies):
        move = copy.move
        sends, receives = (True, move.leader), (False, copy.broker)
        left.setdefault(sends, float(rate))
        left[receives] = left.get(receives, float(rate)) - move.rate
        if move.place not in written:
            written.add(move.place)
            left[sends] -= move.rate * count_followers(move)
        copy.speed = 0.0
        if copy.left > 0:
            links = (receives,) if move.leader < 0 else (sends, receives)
            for link in links:
                users.setdefault(link, {})[number] = copy
    while users:
        slowest = min(users, key=lambda link: left[link] / len(users[link]))
        share = max(0.0, left[slowest] / len(users[slowest]))
        for number, copy in users.pop(slowest).items():
            copy.speed = share
            for link in ((True, copy.move.leader), (False, copy.broker)):
                if number in users.get(link, ()):
                    del users[link][number]
                    left[link] -= share
                    if not users[link]:
                        del users[link]


def count_followers(move: RowMove) -> int:
    """Count the followers that a leader sends each write to while its partition is in flight."""
    return len({*move.old, *move.new}) - 1


def _find_shortest_step(moves: Sequence[RowMove], rate: int) -> float:
    """Return the shortest time between two events, 0 for exact times. Units: seconds."""
    if len(moves) <= MANY:
        return 0.0
    sent = sum(move.size * len(move.adding) for move in moves)
    brokers = {broker for move in moves for broker in move.adding}
    return sent / rate / len(brokers) / _STEPS
