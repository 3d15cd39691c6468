"""What moves came to, from looks at the cluster before and after: figures and few words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from reconciler.units import approximate_size, count

Replica = tuple[str, int, int]
"""Topic, partition, broker."""


@dataclass(frozen=True, slots=True)
class Look:
    """A cluster at one moment.

    `rows` holds the broker ids of each partition, preferred leader first; `leaders` who leads;
    `sizes` the bytes of the largest replica; `configs` what is set as (topic or broker, key).
    """

    rows: Mapping[str, Sequence[Sequence[int]]]
    leaders: Mapping[str, Sequence[int]]
    sizes: Mapping[str, Sequence[int]]
    racks: Mapping[int, str]
    configs: Sequence[tuple[str, str]]
    in_flight: int

    @property
    def replicas(self) -> set[Replica]:
        """Every replica of the cluster."""
        return {
            (topic, number, broker)
            for topic, rows in self.rows.items()
            for number, row in enumerate(rows)
            for broker in row
        }


def tell_copied(copied: Set[Replica], before: Look) -> str:
    """Say how many replicas were copied, and their bytes at the time of `before`."""
    if not copied:
        return "nothing"
    size = sum(before.sizes[topic][number] for topic, number, _ in copied)
    return f"{count(len(copied), 'replica')}, {approximate_size(size)}"


def tell_balance(look: Look, without: int | None = None) -> str:
    """Say how even replicas, preferred leaders and bytes are, and which rows break the racks."""
    replicas, leaders, sizes = Counter[int](), Counter[int](), Counter[int]()
    crowded = 0
    for topic, rows in look.rows.items():
        for row, size in zip(rows, look.sizes[topic], strict=True):
            replicas.update(row)
            leaders[row[0]] += 1
            sizes.update(dict.fromkeys(row, size))
            racks = {look.racks[broker] for broker in row}
            crowded += len(racks) < min(len(row), len(set(look.racks.values())))
    brokers = [broker for broker in look.racks if broker != without]
    mebibytes = {broker: round(size / (1 << 20)) for broker, size in sizes.items()}
    even = (
        f"{_span(replicas, brokers)} replicas, {_span(leaders, brokers)} leaders,"
        f" {_span(mebibytes, brokers)} MiB per broker"
    )
    return even + (
        f"; {count(crowded, 'partition')} with two replicas in a rack" if crowded else ""
    )


def _span(counts: Mapping[int, int], brokers: Iterable[int]) -> str:
    found = [counts.get(broker, 0) for broker in brokers]
    low, high = min(found), max(found)
    return str(low) if low == high else f"{low}..{high}"


def list_undone(look: Look, drained: int | None, replication: int | None) -> list[str]:
    """Name what the work asked for and the cluster does not show."""
    remaining = sum(broker == drained for _, _, broker in look.replicas)
    rows = [row for rows in look.rows.values() for row in rows] if replication else []
    other = sum(len(row) != replication for row in rows)
    found = [f"{count(remaining, 'replica')} still on broker {drained}"] if remaining else []
    return found + (
        [f"{count(other, 'partition')} without {replication} replicas"] if other else []
    )


def list_left(before: Look, after: Look) -> list[str]:
    """Name what a finished move may not leave: throttles, other configs, moves, leaders."""
    new = [each for each in after.configs if each not in before.configs]
    lists = {where for where, key in new if key.endswith(".replication.throttled.replicas")}
    rates = {where for where, key in new if key.endswith(".replication.throttled.rate")}
    other = [f"{key} of {where}" for where, key in new if ".replication.throttled." not in key]
    led_by_others = sum(
        leader != row[0]
        for topic, rows in after.rows.items()
        for leader, row in zip(after.leaders[topic], rows, strict=True)
    )
    found = [f"{count(after.in_flight, 'move')} in flight"] if after.in_flight else []
    found += [f"throttle lists of {count(len(lists), 'topic')}"] if lists else []
    found += [f"throttle rates of {count(len(rates), 'broker')}"] if rates else []
    found += [f"{count(led_by_others, 'leader')} not preferred"] if led_by_others else []
    return found + other
