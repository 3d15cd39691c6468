"""Whether the cluster is as healthy as when the run began: in-sync replicas of each partition.

What was unhealthy at the start does not stop a run, so that it works during an incident. Produce
latency is not visible through the admin API.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.model import MIN_INSYNC
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from reconciler.model import ClusterState, MovesReading, Place, PlannedMoves

NAMED = 3


def read_min_insync(state: ClusterState, moves: PlannedMoves) -> tuple[dict[str, int], int]:
    """Return min.insync.replicas in force during a run of moves, by topic and of all others."""
    found = {
        name: int(value)
        for name, topic in state.topics.items()
        if (value := topic.config.get(MIN_INSYNC)) is not None and value.isdecimal()
    }
    default = state.config_defaults.get(MIN_INSYNC, "1")
    return found | dict(moves.min_insync), int(default) if default.isdecimal() else 1


@dataclass(slots=True)
class Health:
    """Compares readings with the first one.

    `min_insync` holds min.insync.replicas by topic, `least` that of other topics. `known_bad` has
    what was unhealthy at the start and still is: once healed, it counts as any other partition.
    """

    min_insync: Mapping[str, int]
    least: int = 1
    known_bad: frozenset[tuple[Place, str]] | None = None

    def check(self, reading: MovesReading, moving: Collection[Place]) -> list[str]:
        """Return what is worse than at the start, as texts.

        `moving` has the partitions that are in flight, or were a moment ago: of these only
        min.insync.replicas counts, since their new replicas are not in sync yet.
        """
        bad = set(self._list_bad(reading, moving))
        if self.known_bad is None:
            self.known_bad = frozenset(bad)
        self.known_bad &= bad
        worse = sorted(bad - self.known_bad)
        said = [f"{topic} partition {number} {what}" for (topic, number), what in worse[:NAMED]]
        if len(worse) > NAMED:
            said.append(f"{count(len(worse) - NAMED, 'more partition')}")
        return said

    def _list_bad(
        self, reading: MovesReading, moving: Collection[Place]
    ) -> Iterator[tuple[Place, str]]:
        for topic, partitions in reading.partitions.items():
            needed = self.min_insync.get(topic, self.least)
            for number, state in enumerate(partitions):
                synced, replicas = len(state.in_sync), len(state.replicas)
                if synced >= replicas:  # most of them, in every reading
                    continue
                place = (topic, number)
                if place not in moving:
                    yield place, "is not fully in sync"
                if synced < min(needed, replicas):
                    yield place, "has fewer in-sync replicas than min.insync.replicas"
