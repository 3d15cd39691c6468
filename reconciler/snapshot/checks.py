"""What a snapshot of good form can still get wrong: doubles, and lists that do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.snapshot.document import SnapshotDocument, TopicDocument

Mistake = tuple[tuple[int | str, ...], str, str]
"""The path, what is wrong there, and the way out."""


def check_document(document: SnapshotDocument) -> Iterator[Mistake]:
    """Name every mistake. Rows of different lengths are none: such topics exist."""
    if not document.brokers:
        yield ("brokers",), "no broker is named", "a cluster has at least one"
    yield from _check_brokers(document)
    seen: dict[str, int] = {}
    for number, topic in enumerate(document.topics):
        path = ("topics", number)
        if topic.name in seen:
            what = f"{topic.name} stands there already, as topics[{seen[topic.name]}]"
            yield (*path, "name"), what, "keep one of them"
        seen.setdefault(topic.name, number)
        for inner, what, way_out in _check_topic(topic):
            yield (*path, *inner), f"{topic.name}: {what}", way_out


def _check_brokers(document: SnapshotDocument) -> Iterator[Mistake]:
    seen: dict[int, int] = {}
    for number, broker in enumerate(document.brokers):
        if broker.id in seen:
            what = f"broker {broker.id} stands there already, as brokers[{seen[broker.id]}]"
            yield ("brokers", number, "id"), what, "ids are unique"
        seen.setdefault(broker.id, number)
        if broker.rack is not None and not broker.rack.isprintable():
            what = f"{broker.rack!r} is no name of a rack"
            yield ("brokers", number, "rack"), what, "a rack is printable text, or null for none"


def _check_topic(topic: TopicDocument) -> Iterator[Mistake]:
    count = len(topic.partitions)
    for partition, row in enumerate(topic.partitions):
        if not row:
            yield ("partitions", partition), "the row is empty", "a partition has a replica"
        if len(set(row)) < len(row):
            what = f"a broker stands twice in {list(row)}"
            yield ("partitions", partition), what, "a broker holds one replica of a partition"
    for key in ("in_sync", "size_bytes", "rate_bytes_per_s"):
        entries = getattr(topic, key)
        if entries and len(entries) != count:
            what = f"{len(entries)} entries for {count} partitions"
            yield (key,), what, "write one for each, or leave all of them out"
    for number, partition in enumerate(topic.reassigning):
        if partition >= count:
            what = f"there is no partition {partition}; the last is {count - 1}"
            yield ("reassigning", number), what, "partitions count from 0"
