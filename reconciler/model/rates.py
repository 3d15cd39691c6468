"""The rates at which a cluster takes changes, and when the next request keeps to them.

Times are seconds of any clock that only goes forward.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from reconciler.units import approximate_duration

Sent = Sequence[tuple[float, int]]
"""Requests of a run: when each was answered, and the partitions that count for it."""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `most` of something in any `window_s` seconds."""

    most: int
    window_s: float

    def describe(self, noun: str) -> str:
        """Format the rate: 250 partitions in 5 min."""
        return f"{self.most:,} {noun} in {approximate_duration(self.window_s)}"


@dataclass(frozen=True, slots=True)
class Rates:
    """The topic requests that a cluster takes, and the partitions that come or go; None: any.

    Partitions count as well where a request only asks whether the change can be made: Kafka's
    controller takes them from its quota (KIP-599).
    """

    requests: Rate | None = None
    partitions: Rate | None = None

    @property
    def are_limited(self) -> bool:
        """Whether there is a rate to keep to."""
        return self.requests is not None or self.partitions is not None


NO_RATES = Rates()


def find_time(rates: Rates, sent: Sent, partitions: int) -> float:
    """Return the time from which one more request keeps to the rates; 0 if it always does.

    More partitions than a rate has in its window are sent alone, and count for as long as the rate
    takes for them.
    """
    times = [0.0]
    if rates.requests is not None:
        times.append(_find_room(rates.requests, [(at_s, 1) for at_s, _ in sent], 1))
    if rates.partitions is not None and partitions:
        times.append(_find_room(rates.partitions, sent, partitions))
    return max(times)


def count_due(rates: Rates, sent: Sent, steps: Sequence[int], now_s: float) -> int:
    """Return how many of the next steps one request can take now. In: the partitions of each."""
    if find_time(rates, sent, steps[0]) > now_s:
        return 0
    if rates.partitions is None:
        return len(steps)
    in_force = (amount for end_s, amount in _list_ends(rates.partitions, sent) if end_s > now_s)
    room = max(0, rates.partitions.most - sum(in_force))
    # At least the first one, which may have more partitions than the rate.
    return max(1, sum(1 for total in accumulate(steps) if total <= room))


def find_least_s(rates: Rates, phases: Iterable[Sequence[int]]) -> float:
    """Return the least time between the first and the last request of a run, by its rates alone.

    In: the steps of each phase, by their partitions.
    """
    sent: list[tuple[float, int]] = []
    now_s = 0.0
    for steps in phases:
        left = steps
        while left:
            now_s = max(now_s, find_time(rates, sent, left[0]))
            due = count_due(rates, sent, left, now_s)
            sent.append((now_s, sum(left[:due])))
            left = left[due:]
    return now_s


def _find_room(rate: Rate, sent: Sent, wanted: int) -> float:
    """Return the time from which a rate has room: for too much, once all of it is free."""
    ends = sorted(_list_ends(rate, sent))
    taken, room_s = sum(amount for _, amount in ends), 0.0
    for end_s, amount in ends:
        if taken + wanted <= rate.most:
            break
        taken, room_s = taken - amount, end_s
    return room_s


def _list_ends(rate: Rate, sent: Sent) -> Iterator[tuple[float, int]]:
    """Yield until when each request counts, and how much."""
    for at_s, amount in sent:
        if amount:
            yield at_s + rate.window_s * max(amount, rate.most) / rate.most, amount
