"""Throttles of a run of moves: which entries a topic lists, and which rate is in force.

The lists name the replicas in flight only. `*` would throttle ordinary replication too, and the
healing of brokers. The rate is the cluster default, which reaches dead and future brokers.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from reconciler.errors import Finding
from reconciler.model import RateSource, ThrottleSide
from reconciler.units import approximate_size

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reconciler.apply.moving.rows import Row
    from reconciler.model import MovesReading, PlannedMoves, ThrottleList

Entries = frozenset[str]
Lists = dict[tuple[str, ThrottleSide], Entries]

EVERY = "*"


def list_entries(rows: Iterable[Row]) -> Lists:
    """Return the throttle entries of rows in flight, by topic and side.

    An added replica that is in sync may lead before the others are, so the leaders' list has the
    added replicas too.
    """
    found: dict[tuple[str, ThrottleSide], set[str]] = defaultdict(set)
    for row in rows:
        topic, partition = row.place
        if row.adding:
            found[topic, ThrottleSide.LEADER] |= {f"{partition}:{b}" for b in row.brokers}
            found[topic, ThrottleSide.FOLLOWER] |= {f"{partition}:{b}" for b in row.adding}
    return {key: frozenset(entries) for key, entries in found.items()}


def read_lists(lists: Iterable[ThrottleList]) -> Lists:
    """Return the entries of lists as read."""
    return {(each.topic, each.side): frozenset(each.entries) for each in lists}


def spell_list(entries: Collection[str]) -> str | None:
    """Spell the entries of a list as Kafka takes them, None for no list."""
    return ",".join(sorted(entries, key=_sort_entry)) if entries else None


def _sort_entry(entry: str) -> tuple[int, int, str]:
    partition, _, broker = entry.partition(":")
    if partition.isdecimal() and broker.isdecimal():
        return int(partition), int(broker), entry
    return -1, -1, entry


def find_default(reading: MovesReading) -> int | None:
    """Return the default rate of the cluster, the lower one if its two sides differ."""
    rates = [rate.bytes_per_s for rate in reading.rates if rate.broker is None]
    return min(rates, default=None)


def find_other_limits(
    reading: MovesReading, moves: PlannedMoves, brokers: Collection[int]
) -> Iterator[Finding]:
    """Name the rates of single brokers that make the rate of the plan untrue."""
    wanted = moves.policy.rate_bytes_per_s
    least = moves.forecast.least_rate if moves.forecast else None
    for rate in reading.rates:
        if rate.broker not in brokers or rate.source is RateSource.CLUSTER_DEFAULT:
            continue
        amount = f"{rate.bytes_per_s} B/s ({approximate_size(rate.bytes_per_s)}/s)"
        what = f"broker {rate.broker} has its own {rate.side} throttle rate of {amount}"
        command = (
            f"kafka-configs --alter --entity-type brokers --entity-name {rate.broker} "
            f"--delete-config {rate.side.rate_key}"
        )
        if rate.source is RateSource.STATIC:
            way_out = f"remove {rate.side.rate_key} from server.properties, and restart the broker"
            yield Finding("moves-broker-rate", f"{what}, in server.properties", way_out)
        elif wanted is not None and rate.bytes_per_s > wanted:
            more = f"more than the {wanted} B/s of the plan, which it overrides"
            yield Finding("moves-broker-rate", f"{what}, {more}", f"remove it: {command}")
        elif least is not None and rate.bytes_per_s < least:
            less = f"less than the {least} B/s that the moves need to end"
            yield Finding("moves-broker-rate", f"{what}, {less}", f"remove it: {command}")


def is_rate_shown(reading: MovesReading, default: int | None, wanted: int | None) -> bool:
    """Return whether every living broker shows the default rate, or one of its own.

    `wanted` is None for no limit. `default` is what the run last set or adopted.
    """
    if wanted is None and default is None:
        return True
    shown = {(rate.broker, rate.side): rate for rate in reading.rates}
    for broker in reading.brokers:
        for side in ThrottleSide:
            rate = shown.get((broker.id, side))
            if not broker.alive or (rate is not None and rate.source is RateSource.BROKER):
                continue
            if rate is None or rate.bytes_per_s != default:
                return False
    return True


def is_rate_gone(reading: MovesReading) -> bool:
    """Return whether no broker shows a default rate."""
    return all(rate.source is not RateSource.CLUSTER_DEFAULT for rate in reading.rates)


def name_missing_lists(
    views: Mapping[int, Collection[ThrottleList]],
    wanted: Mapping[tuple[str, ThrottleSide], Entries],
    living: Collection[int],
) -> str:
    """Name a broker that does not show the wanted entries yet; empty if all of them do."""
    for broker in sorted(living):
        if broker not in views:
            return f"broker {broker} does not answer"
        shown = read_lists(views[broker])
        for (topic, side), entries in wanted.items():
            if not entries <= shown.get((topic, side), frozenset()):
                return f"broker {broker} does not show the {side} list of {topic}"
    return ""
