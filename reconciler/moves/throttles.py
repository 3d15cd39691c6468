"""Throttles of one reading: which replicas they limit, and which of them a person may remove."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from reconciler.model.cluster import RateSource, ThrottleList, ThrottleRate, ThrottleSide
from reconciler.model.moves import DefaultRate, MovesReading
from reconciler.model.throttles import Leftover, find_leftovers, say_rate


def say_default(default: DefaultRate) -> str:
    """Spell a default rate: one rate, or that of each side where they differ."""
    if default.is_of_moves or default.leader == default.follower:
        return say_rate(default.bytes_per_s)
    rates = {side: default.of_side(side) for side in ThrottleSide}
    return " and ".join(
        f"{'no limit' if rate is None else say_rate(rate)} for {side}s"
        for side, rate in rates.items()
    )


class Throttles:
    """The throttles of one reading, for questions about single replicas."""

    def __init__(self, rates: Sequence[ThrottleRate], lists: Sequence[ThrottleList]) -> None:
        self._rates = {(rate.side, rate.broker): rate.bytes_per_s for rate in rates}
        self._listed = {(each.topic, each.side): frozenset(each.entries) for each in lists}

    def limit(self, side: ThrottleSide, topic: str, partition: int, broker: int) -> int | None:
        """Return the rate that limits one replica, None if it is not throttled.

        On a broker that did not answer, it is the cluster default. Units: bytes per second.
        """
        if self._listed.get((topic, side), frozenset()).isdisjoint(("*", f"{partition}:{broker}")):
            return None
        return self._rates.get((side, broker), self._rates.get((side, None)))


def choose_removals(
    reading: MovesReading, topics: Collection[str], brokers: Collection[int], *, of_all: bool
) -> tuple[tuple[Leftover, ...], list[str]]:
    """Choose throttles by the names of their topics and brokers, and with `of_all` the default.

    A rate of a broker in use can go if there is a default for its side, which then limits it.
    Returns: them, and what is wrong with each other name: no such throttle, it is in use, or the
    broker does not answer.
    """
    left_over = find_leftovers(reading.rates, reading.lists, reading.reassignments)
    unused = {each for left in left_over for each in left.throttles}
    default = reading.default_rate
    found: list[Leftover] = []
    wrong: list[str] = []

    def choose(left: Leftover, name: str) -> None:
        if not left.throttles:
            wrong.append(f"nothing is throttled by {name}")
        elif left.broker is None and left.topic is None:
            if default is not None and default.is_of_moves:
                wrong.append(f"{name} is of moves: reconciler moves settle removes it")
            elif reading.reassignments:
                wrong.append(f"{name} may be used by what is in flight: wait until that has ended")
            else:
                found.append(left)
        elif default is not None and all(
            isinstance(each, ThrottleRate) and default.of_side(each.side) is not None
            for each in left.throttles
        ):
            found.append(left)
        elif not unused.issuperset(left.throttles):
            wrong.append(f"{name} is used by what is in flight: wait until that has ended")
        else:
            found.append(left)

    for topic in sorted(set(topics)):
        lists = tuple(each for each in reading.lists if each.topic == topic)
        choose(Leftover(topic, None, lists), f"a list of {topic}")
    for broker in sorted(set(brokers)):
        name, sources = f"a rate of broker {broker}", defaultdict(list)
        for rate in reading.rates:
            if rate.broker == broker:
                sources[rate.source].append(rate)
        if broker not in reading.sizes:
            wrong.append(f"broker {broker} does not answer, so its rates are not known")
        elif sources[RateSource.STATIC] and not sources[RateSource.BROKER]:
            wrong.append(f"{name} is in server.properties: remove it there")
        else:
            choose(Leftover(None, broker, tuple(sources[RateSource.BROKER])), name)
    if of_all:
        rates = tuple(rate for rate in reading.rates if rate.broker is None)
        choose(Leftover(None, None, rates), "the default rate of the cluster")
    return tuple(found), wrong


def name_removals(leftovers: Collection[Leftover]) -> Iterator[str]:
    """Yield the commands that remove leftovers, without the cluster."""
    named = [
        f"--broker {each.broker}" if each.topic is None else f"--topic {each.topic}"
        for each in leftovers
        if not each.is_of_moves
    ]
    if len(named) < len(leftovers):
        yield "reconciler moves settle"
    if named:
        yield f"reconciler moves unthrottle {' '.join(named)}"
