"""Topics and partitions as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from reconciler.errors import Finding, Location, Severity
from reconciler.inventory.inventory import Inventory, Standing
from reconciler.model.cluster import ClusterState, Replicas, TopicState
from reconciler.model.health import Fault
from reconciler.units import count


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A live topic. What was not read is None: its size, its last write and its readers.

    `replication` holds every number of replicas that a partition has, normally one. `problems`
    counts partitions by problem, None if it is unknown which replicas are in sync. `size_bytes`
    sums partitions, each counted once. `written_ms` is the latest timestamp of a record, 0 if the
    topic holds none. `labels` are those of its spec.
    """

    topic: str
    partitions: int
    replication: tuple[int, ...]
    owner: str | None
    standing: Standing | None
    spec: Location | None
    problems: Mapping[Fault, int] | None
    size_bytes: int | None = None
    written_ms: int | None = None
    readers: tuple[str, ...] | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition. `leader` is -1 if there is none, None if it is unknown, as in a snapshot.

    `replicas` begins with the preferred leader; during a reassignment it is the target.
    `skew` is its size in relation to the mean of its topic.
    """

    topic: str
    partition: int
    leader: int | None
    replicas: Replicas
    in_sync: Replicas | None
    problems: tuple[Fault, ...]
    moving: bool
    size_bytes: int | None = None
    skew: float | None = None


def list_topics(inventory: Inventory, topics: Iterable[TopicState]) -> Iterator[TopicRow]:
    """Yield the row of each topic."""
    for topic in topics:
        spec = inventory.specs.get(topic.name)
        usage = inventory.state.usage.get(topic.name)
        known = usage is not None and bool(usage.ends)
        yield TopicRow(
            topic=topic.name,
            partitions=len(topic.assignment),
            replication=tuple(sorted(topic.replication_factors)),
            owner=spec.owner if spec else None,
            standing=inventory.stand(topic.name),
            spec=spec.location if spec else None,
            problems=count_problems(inventory, topic) if topic.in_sync else None,
            size_bytes=sum_sizes(topic),
            written_ms=(usage.newest_ms or 0) if usage and known else None,
            readers=usage.groups if usage and not usage.unseen else None,
            labels=spec.labels if spec else MappingProxyType({}),
        )


def list_partitions(inventory: Inventory, topics: Iterable[TopicState]) -> Iterator[PartitionRow]:
    """Yield the row of each partition of some topics."""
    for topic in topics:
        faults = inventory.find_faults(topic)
        total = sum_sizes(topic)
        for number, row in enumerate(topic.assignment):
            size = topic.size_bytes[number] if topic.size_bytes else -1
            yield PartitionRow(
                topic=topic.name,
                partition=number,
                leader=topic.leaders[number] if topic.leaders else None,
                replicas=row,
                in_sync=topic.in_sync[number] if topic.in_sync else None,
                problems=faults[number],
                moving=number in topic.reassigning,
                size_bytes=size if size >= 0 else None,
                skew=size * len(topic.assignment) / total if total and size >= 0 else None,
            )


def note_usage(state: ClusterState) -> Iterator[Finding]:
    """Yield a warning for each reason why the usage of topics is not known, or not all of it."""
    reasons: dict[str, list[str]] = {}
    for name, usage in sorted(state.usage.items()):
        if usage.unseen:
            reasons.setdefault(usage.unseen, []).append(name)
    for reason, names in sorted(reasons.items()):
        more = f" and {count(len(names) - 1, 'more topic')}" if len(names) > 1 else ""
        what = f"who uses {names[0]}{more} is not fully known: {reason}"
        way_out = "a topic without a reader here may have one"
        yield Finding("groups-unseen", what, way_out, severity=Severity.WARNING)


def count_problems(inventory: Inventory, topic: TopicState) -> Mapping[Fault, int]:
    """Count the partitions of a topic with each problem, worst first."""
    counts = Counter(fault for each in inventory.find_faults(topic) for fault in each)
    return {fault: counts[fault] for fault in Fault if counts[fault]}


def sum_sizes(topic: TopicState) -> int | None:
    """Return the bytes of all partitions, each counted once; None if any of them is unknown."""
    if not topic.size_bytes or -1 in topic.size_bytes:
        return None
    return sum(topic.size_bytes)
