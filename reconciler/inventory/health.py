"""What is wrong with one partition: the flags that rows and screens show."""

from __future__ import annotations

from enum import StrEnum

from reconciler.model.cluster import TopicState


class Flag(StrEnum):
    """A problem of a partition, worst first; the names are those of the metrics."""

    OFFLINE = "offline"
    UNWRITABLE = "unwritable"
    UNDER_REPLICATED = "under_replicated"

    @property
    def words(self) -> str:
        """The problem as people say it."""
        return "under min in-sync" if self is Flag.UNWRITABLE else self.replace("_", "-")


def flag_partition(topic: TopicState, number: int, needed: int) -> tuple[Flag, ...]:
    """Return the problems of a partition, worst first. In: its effective min.insync.replicas.

    An unknown leader or in-sync replica is no problem, and neither are replicas that a reassignment
    still copies.
    """
    found = []
    if topic.leaders and topic.leaders[number] < 0:
        found.append(Flag.OFFLINE)
    if topic.in_sync and number not in topic.reassigning:
        in_sync = len(topic.in_sync[number])
        if in_sync < needed and not found:
            found.append(Flag.UNWRITABLE)
        if in_sync < len(topic.assignment[number]):
            found.append(Flag.UNDER_REPLICATED)
    return tuple(found)
