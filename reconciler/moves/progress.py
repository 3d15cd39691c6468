"""Progress of moves: bytes, rates between two readings, time left, and why a copy is slow.

Bytes come from the size of replicas on disk. A new replica reports no lag while it copies: its
offset lag is 0 all along, since it is counted from its own high watermark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.cluster import Broker, Reassignment, ThrottleSide
from reconciler.model.moves import MovesReading
from reconciler.model.throttles import Leftover, find_leftovers
from reconciler.moves.throttles import Throttles
from reconciler.units import approximate_size

Replica = tuple[str, int, int]
"""A topic, a partition and a broker."""


class Cause(StrEnum):
    """Why a copy does not end, as far as the cluster shows it."""

    DESTINATION_DEAD = "destination-dead"
    NO_LEADER = "no-leader"
    ADDED_AND_REMOVED = "added-and-removed"
    RATE_ZERO = "rate-zero"
    RATE_BELOW_WRITES = "rate-below-writes"
    CORDONED = "cordoned"


@dataclass(frozen=True, slots=True)
class Copy:
    """One replica that a move adds.

    `bytes_done` is the size of the replica, at most `bytes_to_do`, the size of the leader's; each
    is None if its broker did not answer. `bytes_per_s` is None without an earlier reading of it.
    """

    broker: int
    bytes_done: int | None
    bytes_to_do: int | None
    in_sync: bool
    throttled: bool
    bytes_per_s: float | None = None
    cause: Cause | None = None
    why: str = ""

    @property
    def percent(self) -> float | None:
        """The share of bytes done, None if it is not known."""
        return find_percent(self.bytes_done, self.bytes_to_do)

    @property
    def bytes_left(self) -> int:
        """The bytes that are known to be left."""
        return (self.bytes_to_do or 0) - (self.bytes_done or 0)


@dataclass(frozen=True, slots=True)
class Move:
    """A partition in flight, with a copy for each replica that is added."""

    reassignment: Reassignment
    copies: tuple[Copy, ...]


@dataclass(frozen=True, slots=True)
class DirectoryMove:
    """A replica that moves between log directories of its broker.

    `bytes_per_s` is None without an earlier reading of it.
    """

    topic: str
    partition: int
    broker: int
    source: str
    target: str
    bytes_done: int
    bytes_to_do: int
    bytes_per_s: float | None = None

    @property
    def percent(self) -> float | None:
        """The share of bytes done."""
        return find_percent(self.bytes_done, self.bytes_to_do)


@dataclass(frozen=True, slots=True)
class BrokerProgress:
    """What the moves cost one broker: bytes in as a destination, bytes out as a leader.

    Rates are None without an earlier reading, `seconds_left` also if nothing gets less.
    """

    broker: Broker
    in_bytes_per_s: float | None
    out_bytes_per_s: float | None
    bytes_left: int
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class MovesReport:
    """What is in flight, how far it is, and the throttles that nothing uses.

    `slowest` is the copy that is behind, those with a cause first; None if all are in sync.
    `directory_moves` are within brokers; bytes and rates in total do not count them.
    """

    reading: MovesReading
    moves: tuple[Move, ...]
    brokers: tuple[BrokerProgress, ...]
    leftovers: tuple[Leftover, ...]
    slowest: tuple[Reassignment, Copy] | None
    directory_moves: tuple[DirectoryMove, ...] = ()

    @property
    def is_moving(self) -> bool:
        """Whether anything is in flight, between brokers or within one."""
        return bool(self.moves or self.directory_moves)

    @property
    def copies(self) -> tuple[Copy, ...]:
        """Every replica that is added."""
        return tuple(copy for move in self.moves for copy in move.copies)

    @property
    def bytes_done(self) -> int:
        """The bytes that are known to be copied."""
        return sum(copy.bytes_done or 0 for copy in self.copies)

    @property
    def bytes_to_do(self) -> int:
        """The bytes of all copies."""
        return sum(copy.bytes_to_do or 0 for copy in self.copies)

    @property
    def percent(self) -> float | None:
        """The share of all bytes done, None if there is nothing to copy."""
        return find_percent(self.bytes_done, self.bytes_to_do) if self.copies else None

    @property
    def bytes_per_s(self) -> float | None:
        """The bytes that all destinations took each second."""
        return add_rates(copy.bytes_per_s for copy in self.copies)

    @property
    def seconds_left(self) -> float | None:
        """The time until the last broker has everything, None if it is not known."""
        behind = [each for each in self.brokers if each.bytes_left]
        left = [each.seconds_left for each in behind if each.seconds_left is not None]
        blocked = any(copy.cause for copy in self.copies)
        return max(left) if left and len(left) == len(behind) and not blocked else None


def find_percent(done: int | None, to_do: int | None) -> float | None:
    """Return the share of bytes done in per cent; of no bytes, everything is done."""
    if done is None or to_do is None:
        return None
    return 100 * done / to_do if to_do else 100.0


def add_rates(rates: Iterable[float | None]) -> float | None:
    """Add the rates that are known, None if there is none."""
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


def measure_moves(now: MovesReading, before: MovesReading | None = None) -> MovesReport:
    """Return the progress of what is in flight; rates need an earlier reading of the cluster."""
    elapsed_s = now.clock_s - before.clock_s if before else 0.0
    if elapsed_s <= 0:
        before = None
    earlier = {(each.topic, each.partition) for each in before.reassignments} if before else set()

    def grow(each: Reassignment, broker: int) -> float | None:
        """Return how fast a replica grew, None if it is not known."""
        if before is None or (each.topic, each.partition) not in earlier:
            return None
        size, size_before = _size(now, each, broker), _size(before, each, broker)
        # A size that fell lost a segment to retention: what was added meanwhile is unknown.
        if size is None or size_before is None or size < size_before:
            return None
        return (size - size_before) / elapsed_s

    moving = sorted(now.reassignments, key=lambda each: (each.topic, each.partition))
    written = {
        (each.topic, each.partition): grow(each, each.leader) or 0.0
        for each in moving
        if each.leader is not None
    }
    causes = _Causes(now, written)
    done = dict(_list_done(now))
    moves = tuple(
        Move(
            each,
            tuple(
                Copy(
                    broker,
                    *done[each.topic, each.partition, broker],
                    broker in each.in_sync,
                    causes.limits(each, broker),
                    grow(each, broker),
                    *causes.find(each, broker),
                )
                for broker in each.adding
            ),
        )
        for each in moving
    )
    behind = [
        (move.reassignment, copy)
        for move in moves
        for copy in move.copies
        if not copy.in_sync or copy.cause
    ]
    slowest = min(
        behind,
        key=lambda pair: (pair[1].cause is None, pair[1].percent or 0.0, -pair[1].bytes_left),
        default=None,
    )
    done_before = dict(_list_done(before)) if before else {}
    brokers = tuple(_measure_brokers(now, moves, done, done_before, elapsed_s))
    left_over = find_leftovers(now.rates, now.lists, now.reassignments)
    within = tuple(_list_directory_moves(now, before, elapsed_s))
    return MovesReport(now, moves, brokers, left_over, slowest, within)


def _list_directory_moves(
    now: MovesReading, before: MovesReading | None, elapsed_s: float
) -> Iterator[DirectoryMove]:
    for broker, held in sorted(now.stored.items()):
        for (topic, partition), each in sorted(held.items()):
            if not each.target:
                continue
            then = before.stored.get(broker, {}).get((topic, partition)) if before else None
            rate = None
            if then and then.target == each.target and then.copied_bytes <= each.copied_bytes:
                rate = (each.copied_bytes - then.copied_bytes) / elapsed_s
            done = min(each.copied_bytes, each.size_bytes)
            yield DirectoryMove(
                topic, partition, broker, each.path, each.target, done, each.size_bytes, rate
            )


def _size(reading: MovesReading, each: Reassignment, broker: int) -> int | None:
    """Return the size of a replica: 0 before its first byte, None if its broker did not answer."""
    sizes = reading.sizes.get(broker)
    return None if sizes is None else sizes.get((each.topic, each.partition), 0)


def _list_done(reading: MovesReading) -> Iterator[tuple[Replica, tuple[int | None, int | None]]]:
    """Yield the bytes done and to do of each copy."""
    for each in reading.reassignments:
        to_do = None if each.leader is None else _size(reading, each, each.leader)
        if to_do is None:  # without the leader's size, that of the largest replica there is
            sizes = [_size(reading, each, broker) for broker in each.current]
            to_do = max((size for size in sizes if size is not None), default=None)
        for broker in each.adding:
            size = _size(reading, each, broker)
            if size is not None and to_do is not None:
                # A compacted copy is smaller than its source, and a leader may have deleted more.
                size = to_do if broker in each.in_sync else min(size, to_do)
            yield (each.topic, each.partition, broker), (size, to_do)


def _measure_brokers(
    now: MovesReading,
    moves: Iterable[Move],
    done: Mapping[Replica, tuple[int | None, int | None]],
    done_before: Mapping[Replica, tuple[int | None, int | None]],
    elapsed_s: float,
) -> Iterator[BrokerProgress]:
    rates_in: dict[int, list[float | None]] = defaultdict(list)
    rates_out: dict[int, list[float | None]] = defaultdict(list)
    left: dict[int, int] = defaultdict(int)
    for move in moves:
        for copy in move.copies:
            rates_in[copy.broker].append(copy.bytes_per_s)
            left[copy.broker] += copy.bytes_left
            if move.reassignment.leader is not None:
                rates_out[move.reassignment.leader].append(copy.bytes_per_s)
    with_cause = {copy.broker for move in moves for copy in move.copies if copy.cause}
    # What got less: copies of the earlier reading that are not listed any more have ended.
    gained: dict[int, int] = defaultdict(int)
    for replica, (is_done, to_do) in done_before.items():
        now_done, now_to_do = done.get(replica, (0, 0))
        if (
            is_done is None or now_done is None
        ):  # its broker was silent: nothing is known to be less
            continue
        before_left, now_left = (to_do or 0) - (is_done or 0), (now_to_do or 0) - (now_done or 0)
        gained[replica[2]] += before_left - now_left
    known = {broker.id: broker for broker in now.brokers}
    for number in sorted({*rates_in, *rates_out} - {-1}):
        seconds = None
        if gained[number] > 0 and number not in with_cause:
            seconds = left[number] * elapsed_s / gained[number]
        yield BrokerProgress(
            known.get(number, Broker(number, alive=False)),
            add_rates(rates_in[number]),
            add_rates(rates_out[number]),
            left[number],
            seconds,
        )


class _Causes:
    """Finds why copies do not end. `written`: bytes per second, by topic and partition."""

    def __init__(self, reading: MovesReading, written: Mapping[tuple[str, int], float]) -> None:
        self._reading = reading
        self._brokers = {broker.id: broker for broker in reading.brokers}
        self._throttles = Throttles(reading.rates, reading.lists)
        # Everything that passes a throttle counts, also what a replica in sync fetches: so a leader
        # needs a rate above its writes times the followers, and a destination above its writes.
        self._needed: dict[tuple[ThrottleSide, int], float] = defaultdict(float)
        for each in reading.reassignments:
            amount = written.get((each.topic, each.partition), 0.0)
            for broker in each.adding:
                if self._limit(ThrottleSide.FOLLOWER, each, broker) is not None:
                    self._needed[ThrottleSide.FOLLOWER, broker] += amount
            leader, side = each.leader, ThrottleSide.LEADER
            if leader is not None and self._limit(side, each, leader) is not None:
                self._needed[side, leader] += amount * (len(each.replicas) - 1)

    def limits(self, each: Reassignment, broker: int) -> bool:
        """Return whether a rate limits a copy, at its leader or at its destination."""
        return bool(self._list_limits(each, broker))

    def find(self, each: Reassignment, broker: int) -> tuple[Cause | None, str]:
        """Return the cause of a copy, and what it means; none if nothing is seen."""
        known = self._brokers.get(broker)
        if known is None or not known.alive:
            return Cause.DESTINATION_DEAD, f"broker {broker} is not alive"
        if each.leader == -1:
            return Cause.NO_LEADER, "the partition has no leader to copy from"
        if broker in each.removing:
            # 4.x completes it only when the replica is in sync, which one that leaves never is.
            what = f"broker {broker} is added and removed at once; only a cancel ends this move"
            return Cause.ADDED_AND_REMOVED, what
        if broker in each.in_sync:
            return None, ""
        for side, limited, rate in self._list_limits(each, broker):
            needed = self._needed[side, limited]
            if rate == 0:
                return Cause.RATE_ZERO, f"the {side} rate of broker {limited} is 0"
            if rate <= needed:
                return Cause.RATE_BELOW_WRITES, (
                    f"the {side} rate of broker {limited} is {approximate_size(rate)}/s, and "
                    f"writes alone take {approximate_size(needed)}/s of it"
                )
        # A cordon does not stop a copy that has begun (4.4.0).
        if known.cordoned and not _size(self._reading, each, broker):
            return Cause.CORDONED, f"all log directories of broker {broker} are cordoned"
        return None, ""

    def _list_limits(self, each: Reassignment, broker: int) -> list[tuple[ThrottleSide, int, int]]:
        """List the rates that limit a copy: at its destination, and at its leader."""
        ends = [(ThrottleSide.FOLLOWER, broker)]
        if each.leader is not None:
            ends.append((ThrottleSide.LEADER, each.leader))
        limits = ((side, end, self._limit(side, each, end)) for side, end in ends)
        return [(side, end, rate) for side, end, rate in limits if rate is not None]

    def _limit(self, side: ThrottleSide, each: Reassignment, broker: int) -> int | None:
        return self._throttles.limit(side, each.topic, each.partition, broker)
