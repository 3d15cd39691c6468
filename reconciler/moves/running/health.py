"""Whether the cluster is as healthy as when the run began: in-sync replicas of each partition.

What was unhealthy at the start does not stop a run, so that it works during an incident. Produce
latency is not visible through the admin API.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.cluster import ClusterState, Place
from reconciler.model.moves import MIN_INSYNC, MovesReading, PartitionState, PlannedMoves
from reconciler.units import count

NAMED = 3


class _Fault(StrEnum):
    """What is wrong with a partition."""

    BELOW_MIN = "has fewer in-sync replicas than min.insync.replicas"
    OUT_OF_SYNC = "is not fully in sync"


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

    `min_insync` holds min.insync.replicas by topic, `least` that of other topics. `drained` are the
    brokers that the plan empties. `known_bad` has what was unhealthy at the start and still is:
    once healed, it counts as any other partition.
    """

    min_insync: Mapping[str, int]
    least: int = 1
    drained: frozenset[int] = frozenset()
    known_bad: frozenset[tuple[Place, _Fault]] | None = None

    def check(
        self, reading: MovesReading, moving: Collection[Place], leaving: Mapping[Place, set[int]]
    ) -> list[str]:
        """Return what is worse than at the start, as texts: dead brokers first.

        `moving` has the partitions that are in flight, or were a moment ago: of these only
        min.insync.replicas counts, since their new replicas are not in sync yet. `leaving` has the
        replicas that the plan takes off a partition. Where one of these is not in sync, to move the
        partition is the cure, and a pause would last for ever. The same holds for what is left on a
        drained broker that is dead.
        """
        alive = {broker.id for broker in reading.brokers if broker.alive}
        gone = self.drained - alive
        bad: set[tuple[Place, _Fault]] = set()
        worse: dict[Place, list[_Fault]] = {}
        lacked: dict[Place, set[int]] = {}
        for place, state in _list_incomplete(reading):
            missing = set(state.replicas).difference(state.in_sync)
            now = list(self._judge(place, state, missing, moving))
            bad |= {(place, fault) for fault in now}
            lacked[place] = missing - leaving.get(place, set()) - gone
            worse[place] = list(self._judge(place, state, lacked[place], moving))
        if self.known_bad is None:
            self.known_bad = frozenset(bad)
        self.known_bad &= bad
        found = {
            place: new
            for place, faults in sorted(worse.items())
            if (new := [fault for fault in faults if (place, fault) not in self.known_bad])
        }
        return list(_describe(found, {place: lacked[place] - alive for place in found}))

    def _judge(
        self,
        place: Place,
        state: PartitionState,
        lacked: Collection[int],
        moving: Collection[Place],
    ) -> Iterator[_Fault]:
        """Yield what is wrong with a partition that lacks some replicas."""
        replicas = len(state.replicas)
        if lacked and place not in moving:
            yield _Fault.OUT_OF_SYNC
        if replicas - len(lacked) < min(self.min_insync.get(place[0], self.least), replicas):
            yield _Fault.BELOW_MIN


def _list_incomplete(reading: MovesReading) -> Iterator[tuple[Place, PartitionState]]:
    """Yield the partitions that are not fully in sync."""
    for topic, partitions in reading.partitions.items():
        for number, state in enumerate(partitions):
            if len(state.in_sync) < len(state.replicas):
                yield (topic, number), state


def _describe(worse: Mapping[Place, list[_Fault]], dead: Mapping[Place, set[int]]) -> Iterator[str]:
    """Name the dead brokers that partitions lack, and the partitions that lack no such broker."""
    for broker in sorted(set().union(*dead.values())):
        places = [place for place in worse if broker in dead[place]]
        verb = "lacks" if len(places) == 1 else "lack"
        short = sum(_Fault.BELOW_MIN in worse[place] for place in places)
        below = f", {short:,} of them below min.insync.replicas" if short else ""
        yield f"broker {broker} is not alive: {count(len(places), 'partition')} {verb} it{below}"
    others = [(place, fault) for place in worse if not dead[place] for fault in worse[place]]
    for (topic, number), fault in others[:NAMED]:
        yield f"{topic} partition {number} {fault}"
    if len(others) > NAMED:
        yield count(len(others) - NAMED, "more partition")
