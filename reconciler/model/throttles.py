"""Throttles that are set on a cluster, and those of them that nothing in flight uses any more."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from reconciler.model.cluster import (
    ClusterState,
    RateSource,
    Reassignment,
    ThrottleList,
    ThrottleRate,
    ThrottleSide,
)
from reconciler.model.moves import UNLIMITED, find_unused_lists, read_default


def say_rate(bytes_per_s: int) -> str:
    """Spell a throttle rate."""
    return "unlimited" if bytes_per_s >= UNLIMITED else f"{bytes_per_s} B/s"


@dataclass(frozen=True, slots=True)
class Leftover:
    """Throttles that nothing in flight uses: all of one topic, one broker, or the cluster default.

    Without a topic and without a broker it is the cluster default.
    """

    topic: str | None
    broker: int | None
    throttles: tuple[ThrottleRate | ThrottleList, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The configs to remove."""
        return tuple(
            each.side.list_key if isinstance(each, ThrottleList) else each.side.rate_key
            for each in self.throttles
        )

    @property
    def is_of_moves(self) -> bool:
        """Whether `moves settle` removes them: reconciler sets neither `*` nor rates of brokers."""
        return self.broker is None and not any(
            isinstance(each, ThrottleList) and each.is_of_all for each in self.throttles
        )

    @property
    def text(self) -> str:
        """What they are, with their values."""
        name = self.topic or ("the cluster" if self.broker is None else f"broker {self.broker}")
        values = [
            f"{each.side} replicas {each.replicas}"
            if isinstance(each, ThrottleList)
            else f"{each.side} rate {say_rate(each.bytes_per_s)}"
            for each in self.throttles
        ]
        return f"{name}: {', '.join(values)}"

    @property
    def command(self) -> str:
        """The command of Kafka that removes them, without the address of the cluster."""
        if self.topic is not None:
            entity = f"--entity-type topics --entity-name {self.topic}"
        elif self.broker is not None:
            entity = f"--entity-type brokers --entity-name {self.broker}"
        else:
            entity = "--entity-type brokers --entity-default"
        return f"kafka-configs --alter {entity} --delete-config {','.join(self.keys)}"


def list_throttled(state: ClusterState) -> tuple[ThrottleList, ...]:
    """List the throttled replicas of all topics, those in their configs among them."""
    lists = dict.fromkeys(state.throttle_lists)
    for name, topic in state.topics.items():
        for side in ThrottleSide:
            if value := topic.config.get(side.list_key):
                lists[ThrottleList(name, side, value)] = None
    return tuple(lists)


def find_leftovers(
    rates: Collection[ThrottleRate],
    lists: Collection[ThrottleList],
    reassignments: Collection[Reassignment],
) -> tuple[Leftover, ...]:
    """Find the throttles that nothing in flight uses: rates first, then lists by topic.

    | throttle | used by |
    |---|---|
    | list of a topic | a move of a partition in it |
    | rate of a broker | a move that the broker takes part in, as tools set both rates on each |
    | cluster default | any move |

    A rate in server.properties is not a leftover: nothing removes it at run time. Nor is a cluster
    default that reconciler did not set: it may be meant for every move.
    """
    involved = {broker for each in reassignments for broker in each.replicas}
    default = read_default(rate for rate in rates if rate.broker is None)
    is_left = default is not None and default.is_of_moves and not reassignments
    found: dict[tuple[str | None, int | None], list[ThrottleRate | ThrottleList]] = {}
    for rate in rates:
        match rate.source:
            case RateSource.BROKER if rate.broker not in involved:
                found.setdefault((None, rate.broker), []).append(rate)
            case RateSource.CLUSTER_DEFAULT if rate.broker is None and is_left:
                found.setdefault((None, None), []).append(rate)
    for each in find_unused_lists(lists, reassignments):
        found.setdefault((each.topic, None), []).append(each)
    return tuple(
        Leftover(topic, broker, tuple(found[topic, broker]))
        for topic, broker in sorted(
            found, key=lambda key: (key[0] or "", -1 if key[1] is None else key[1])
        )
    )
