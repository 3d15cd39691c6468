"""Whether the cluster is as healthy as when the run began: in-sync replicas of each partition.

What was unhealthy at the start does not stop a run, so that it works during an incident. Produce
latency is not visible through the admin API.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from reconciler.model.cluster import ClusterState, Place
from reconciler.model.health import Fault, judge_partition, read_min_insync
from reconciler.model.moves import MovesReading, PartitionState, PlannedMoves
from reconciler.units import count

NAMED = 3


_SAID = MappingProxyType(
    {
        Fault.OFFLINE: "has no leader",
        Fault.UNWRITABLE: "has fewer in-sync replicas than min.insync.replicas",
        Fault.UNDER_REPLICATED: "is not fully in sync",
    }
)
_COUNTED = MappingProxyType(
    {
        Fault.OFFLINE: "without a leader",
        Fault.UNWRITABLE: "below min.insync.replicas",
    }
)
"""How many of the partitions that lack a dead broker are worse than under-replicated."""


def list_required(state: ClusterState, moves: PlannedMoves) -> tuple[dict[str, int], int]:
    """Return min.insync.replicas in force during a run of moves, by topic and of all others."""
    own = {name: read_min_insync(topic.config, {}) for name, topic in state.topics.items()}
    found = {name: value for name, value in own.items() if value is not None}
    return found | dict(moves.min_insync), read_min_insync({}, state.config_defaults) or 1


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
    known_bad: frozenset[tuple[Place, Fault]] | None = None

    def check(
        self, reading: MovesReading, moving: Collection[Place], leaving: Mapping[Place, set[int]]
    ) -> list[str]:
        """Return what is worse than at the start, as texts: dead brokers first.

        `moving` has the partitions that are in flight, or were a moment ago: their new replicas
        are not in sync yet. `leaving` has the replicas that the plan takes off a partition. Where
        one of these is not in sync, to move the partition is the cure, and a pause would last for
        ever. The same holds for what is left on a drained broker that is dead.
        """
        alive = {broker.id for broker in reading.brokers if broker.alive}
        gone = self.drained - alive
        bad: set[tuple[Place, Fault]] = set()
        worse: dict[Place, tuple[Fault, ...]] = {}
        lacked: dict[Place, set[int]] = {}
        for place, state in _list_faulty(reading):
            now = self._judge(place, state, moving, alive)
            bad |= {(place, fault) for fault in now}
            if Fault.OFFLINE in now:  # with a leader again, it is not worse than at the start
                bad.add((place, Fault.UNWRITABLE))
            spared = leaving.get(place, set()) | gone
            lacked[place] = set(state.replicas).difference(state.in_sync, spared)
            in_sync = tuple(broker for broker in state.replicas if broker not in lacked[place])
            stays = not spared.issuperset(state.replicas)
            as_left = replace(state, in_sync=in_sync)
            worse[place] = self._judge(place, as_left, moving, alive) if stays else ()
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
        moving: Collection[Place],
        alive: Collection[int],
    ) -> tuple[Fault, ...]:
        is_moving, leader = place in moving, state.leader
        if is_moving and leader < 0:
            # It cannot be copied, and a pause would not change that: the run reports it as stuck.
            leader = state.replicas[0]
        needed = self.min_insync.get(place[0], self.least)
        shown = (state.replicas, state.in_sync, leader, needed)
        return judge_partition(*shown, moving=is_moving, alive=alive)


def _list_faulty(reading: MovesReading) -> Iterator[tuple[Place, PartitionState]]:
    """Yield the partitions that are not led or not fully in sync."""
    for topic, partitions in reading.partitions.items():
        for number, state in enumerate(partitions):
            if state.leader < 0 or len(state.in_sync) < len(state.replicas):
                yield (topic, number), state


def _describe(worse: Mapping[Place, list[Fault]], dead: Mapping[Place, set[int]]) -> Iterator[str]:
    """Name the dead brokers that partitions lack, and the partitions that lack no such broker."""
    for broker in sorted(set().union(*dead.values())):
        places = [place for place in worse if broker in dead[place]]
        verb = "lacks" if len(places) == 1 else "lack"
        counts = {said: sum(f in worse[place] for place in places) for f, said in _COUNTED.items()}
        more = "".join(f", {number:,} of them {said}" for said, number in counts.items() if number)
        yield f"broker {broker} is not alive: {count(len(places), 'partition')} {verb} it{more}"
    others = [(place, fault) for place in worse if not dead[place] for fault in worse[place]]
    for (topic, number), fault in others[:NAMED]:
        yield f"{topic} partition {number} {_SAID[fault]}"
    if len(others) > NAMED:
        yield count(len(others) - NAMED, "more partition")
