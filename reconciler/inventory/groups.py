"""Consumer groups as rows: who reads a topic, and how far behind."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from reconciler.model.cluster import Place
from reconciler.model.groups import Group, GroupsReading


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group. `topics` are those that it reads now or holds committed offsets on.

    `lag` sums end offsets minus committed ones, None if it commits nothing or an end is unknown;
    `most` is the partition with the largest one. `uncommitted` counts partitions that members read
    and for which nothing is committed. `unseen` says why something of it is missing.
    """

    group: str
    kind: str
    state: str
    members: int
    topics: tuple[str, ...]
    lag: int | None
    most: Place | None
    uncommitted: int
    unseen: str = ""


def list_groups(
    reading: GroupsReading, topics: Collection[str] | None = None
) -> Iterator[GroupRow]:
    """Yield the row of each group that has to do with some topics; None: of every group.

    A group of which it is unknown what it reads is among those of any topic.
    """
    for group in reading.groups:
        row = _measure(group, reading, topics)
        if topics is None or row.topics or row.unseen:
            yield row


def _measure(group: Group, reading: GroupsReading, topics: Collection[str] | None) -> GroupRow:
    wanted = {
        place: offset
        for place, offset in group.committed.items()
        if topics is None or place[0] in topics
    }
    members = [
        {place for place in member.reads if topics is None or place[0] in topics}
        for member in group.members
    ]
    reads = {place for each in members for place in each}
    lags = {
        place: max(reading.ends[place] - offset, 0)
        for place, offset in wanted.items()
        if place in reading.ends
    }
    behind = {place: lag for place, lag in lags.items() if lag}
    return GroupRow(
        group=group.name,
        kind=group.kind,
        state=group.state,
        members=len(members) if topics is None else sum(map(bool, members)),
        topics=tuple(sorted({topic for topic, _ in reads | wanted.keys()})),
        lag=sum(lags.values()) if lags and len(lags) == len(wanted) else None,
        most=max(sorted(behind), key=lambda place: behind[place], default=None),
        uncommitted=len(reads - wanted.keys()),
        unseen=group.unseen,
    )
