"""Decisions on moves in flight: what a rate reaches, what nothing uses, and what a move left.

What Kafka does is in tests/contract/test_mover.py; the reasons below rest on it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from reconciler.model.cluster import (
    RateSource,
    Reassignment,
    ThrottleList,
    ThrottleRate,
    ThrottleSide,
)
from reconciler.model.moves import DefaultRate, DirectoryRate, MovesReading
from reconciler.model.throttles import Leftover, find_leftovers


@dataclass(frozen=True, slots=True)
class RateEffect:
    """What the cluster default of the throttle rates reaches.

    `rate` is its present value, None if it is not set; `standing`: reconciler did not set it, and
    it stays after the moves. `limited` are the moves whose copies are in
    a list of throttled replicas, `unlimited` the others: no rate reaches those. `own` are brokers
    with a rate of their own, which wins over the default. `idle` are lists that nothing in flight
    uses: a rate limits their replicas as well, when one of them catches up after a restart.
    """

    rate: int | None
    limited: tuple[Reassignment, ...]
    unlimited: tuple[Reassignment, ...]
    own: tuple[ThrottleRate, ...]
    idle: tuple[ThrottleList, ...]
    standing: bool = False


def find_effect(reading: MovesReading) -> RateEffect:
    """Find out what the cluster default of the throttle rates reaches."""
    default = reading.default_rate
    listed = {(each.topic, each.side): frozenset(each.entries) for each in reading.lists}
    limited = tuple(each for each in reading.reassignments if _is_limited(each, listed))
    left_over = find_leftovers(reading.rates, reading.lists, reading.reassignments)
    idle = (throttle for found in left_over for throttle in found.throttles)
    return RateEffect(
        default.bytes_per_s if default else None,
        limited,
        tuple(each for each in reading.reassignments if each not in limited),
        tuple(
            rate
            for rate in reading.rates
            if rate.broker is not None and rate.source is not RateSource.CLUSTER_DEFAULT
        ),
        tuple(throttle for throttle in idle if isinstance(throttle, ThrottleList)),
        standing=default is not None and not default.is_of_moves,
    )


def _is_limited(each: Reassignment, listed: dict[tuple[str, ThrottleSide], frozenset[str]]) -> bool:
    """Return whether every copy of a move is in a list, at its destination or at its leader."""
    ends = {ThrottleSide.LEADER: each.leader}
    return all(
        any(
            not listed.get((each.topic, side), frozenset()).isdisjoint(
                ("*", f"{each.partition}:{broker}")
            )
            for side, broker in (*ends.items(), (ThrottleSide.FOLLOWER, destination))
        )
        for destination in each.adding
    )


@dataclass(frozen=True, slots=True)
class Settlement:
    """The throttles of a cluster, sorted by what `moves settle` does with them.

    `awaited` are moves in flight that name their replicas in a list, as reconciler does; `foreign`
    are the others. `removable` is what nothing in flight uses: lists of named replicas, and a
    cluster default of moves. `kept` is left over as well, and reconciler sets no such throttle:
    lists with `*`, and rates of single brokers. `rate_used`: a cluster default of moves limits
    something in flight. `standing` is a cluster default that reconciler did not set.
    `directory_rate` is that between log directories, if it is of moves; it limits something in
    flight if any replica `relocates`, and that is waited for.
    """

    awaited: tuple[Reassignment, ...]
    foreign: tuple[Reassignment, ...]
    removable: tuple[Leftover, ...]
    kept: tuple[Leftover, ...]
    rate_used: bool = False
    standing: DefaultRate | None = None
    directory_rate: DirectoryRate | None = None
    relocates: bool = False

    @property
    def is_awaited(self) -> bool:
        """Whether something is in flight that is waited for."""
        return bool(self.awaited) or (self.directory_rate is not None and self.relocates)

    @property
    def removes_directory_rate(self) -> bool:
        """Whether the rate between log directories can be removed."""
        return self.directory_rate is not None and not self.relocates

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics whose lists can be removed."""
        return tuple(each.topic for each in self.removable if each.topic is not None)

    @property
    def removes_rate(self) -> bool:
        """Whether the cluster default can be removed."""
        return any(each.topic is None for each in self.removable)


def find_settlement(reading: MovesReading) -> Settlement:
    """Sort what is in flight, and the throttles that nothing in flight uses."""
    named = {
        (each.topic, entry)
        for each in reading.lists
        for entry in each.entries
        if each.side is ThrottleSide.FOLLOWER
    }
    awaited = tuple(
        each
        for each in reading.reassignments
        if any((each.topic, f"{each.partition}:{broker}") in named for broker in each.adding)
    )
    removable: list[Leftover] = []
    kept: list[Leftover] = []
    for left in find_leftovers(reading.rates, reading.lists, reading.reassignments):
        if left.topic is not None or left.broker is not None:
            (removable if left.is_of_moves else kept).append(left)
    default = reading.default_rate
    is_ours = default is not None and default.is_of_moves
    rate_used = is_ours and bool(find_effect(reading).limited)
    if is_ours and not rate_used:
        rates = tuple(rate for rate in reading.rates if rate.broker is None)
        removable.append(Leftover(None, None, rates))
    foreign = tuple(each for each in reading.reassignments if each not in awaited)
    standing = None if is_ours else default
    return Settlement(
        awaited,
        foreign,
        tuple(removable),
        tuple(kept),
        rate_used,
        standing,
        reading.own_directory_rate,
        reading.is_relocating,
    )


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A trace of a move in one topic that only the plan, or a person, can put right."""

    topic: str
    what: str
    way_out: str


def find_traces(
    reading: MovesReading, topics: Collection[str], cluster: str
) -> tuple[Unsettled, ...]:
    """Find what a run that did not end may have left in topics: uneven rows, other leaders."""
    found = []
    for topic in sorted(topics):
        shown = reading.partitions.get(topic, ())
        if len(sizes := sorted({len(each.replicas) for each in shown})) > 1:
            what = f"its partitions have {sizes[0]} to {sizes[-1]} replicas"
            found.append(Unsettled(topic, what, "apply the plan of moves again"))
        led = [
            number
            for number, each in enumerate(shown)
            if each.replicas and each.leader not in (-1, each.replicas[0])
        ]
        if led:
            what = f"preferred leaders do not lead partitions {', '.join(map(str, led))}"
            found.append(Unsettled(topic, what, f"reconciler elect --cluster {cluster}"))
    return tuple(found)
