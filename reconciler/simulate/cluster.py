"""A simulated cluster: its brokers and topics, the steps, and the result of each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, compress, repeat
from operator import not_
from types import MappingProxyType
from typing import assert_never

from reconciler.diff.brokers import eligible_brokers
from reconciler.errors import Location, UsageError
from reconciler.model.cluster import (
    Assignment,
    Broker,
    ClusterState,
    TopicSpec,
    TopicState,
)
from reconciler.model.moves import LoadAim, LoadKind
from reconciler.moves.by_load import balance_by_load
from reconciler.moves.differences import MoveDiff
from reconciler.placement.loss import Exposed, Loss, expose, measure_losses
from reconciler.placement.moving.moves import move_replicas
from reconciler.placement.moving.problem import MoveGoal, MoveProblem, MoveWish
from reconciler.placement.problem import Problem, Wish, count_load
from reconciler.placement.weigh import ReplicaWeights
from reconciler.spec.entry import ClusterEntry
from reconciler.units import count

Placer = Callable[[Problem, Collection[Broker]], Mapping[str, Assignment]]
"""Places a problem's wishes; the second argument holds registered brokers that are not
alive."""


@dataclass(frozen=True, slots=True)
class SimulatedCluster:
    """Brokers, topics by name, and the losses of all steps so far, in order.

    A step that cannot be done is a UsageError, because steps come from the command line. `weights`
    and `known`, the topics with their amounts, are those of the state at the beginning. `copied`
    holds the replicas and bytes of each rebalance; bytes are None if a size is not known.
    """

    brokers: tuple[Broker, ...]
    topics: Mapping[str, Exposed] = field(default_factory=lambda: MappingProxyType({}))
    losses: tuple[Loss, ...] = ()
    # What topics weigh follows from the snapshot: clusters are equal if they hold the same.
    weights: ReplicaWeights = field(
        default_factory=lambda: ReplicaWeights(ClusterState("", (), {})), compare=False
    )
    known: Mapping[str, TopicState] = field(
        default_factory=lambda: MappingProxyType({}), compare=False
    )
    copied: tuple[tuple[int, int | None], ...] = ()

    @classmethod
    def of(
        cls, state: ClusterState, min_in_sync: int = 1, by: LoadKind = LoadKind.COUNT
    ) -> SimulatedCluster:
        """Return the simulation of a cluster's state, without internal topics, as in plans.

        `min_in_sync` is the default for topics without the config.
        Errors: UsageError if the state has no sizes or rates to weigh by.
        """
        weights = ReplicaWeights(state, by)
        if weights.is_blank:
            raise UsageError(weights.asks)
        topics = state.user_topics
        names = sorted(topics)
        exposed = expose([topics[n] for n in names], state.config_defaults, min_in_sync)
        by_name = dict(zip(names, exposed, strict=True))
        return cls(tuple(sorted(state.brokers)), by_name, weights=weights, known=topics)

    @property
    def living(self) -> tuple[Broker, ...]:
        """The brokers that are alive."""
        return tuple(broker for broker in self.brokers if broker.alive)

    def take(self, step: SimulationStep, place: Placer) -> SimulatedCluster:
        """Return the cluster after a step."""
        match step:
            case Place():
                return self._place(step, place)
            case AddBrokers():
                return self._add(step)
            case Rebalance(aim=aim):
                return self._move(self._level() if aim is None else self._balance(aim))
            case LoseBroker(broker=broker):
                return self._lose([b.id for b in self.living if b.id == broker], f"broker {broker}")
            case LoseRack(rack=rack):
                return self._lose([b.id for b in self.living if b.rack == rack], f"rack {rack}")
            case _:
                assert_never(step)

    def _place(self, step: Place, place: Placer) -> SimulatedCluster:
        able = eligible_brokers(self.brokers)
        wishes = []
        for one in step.topics:
            topic = self.topics.get(one.topic)
            replication = _choose_replication(one, topic, len(able))
            existing = topic.assignment if topic else ()
            added = one.partitions - len(existing)
            if one.rows is None and added:
                lead, hold = self.weights.weigh_topic(one.topic)
                wishes.append(
                    Wish(one.topic, existing, added, replication, one.rack_aware, hold, lead)
                )
        eligible = {broker.id for broker in able}
        # Rows of a spec are not placed, but count as load for the topics next to them.
        rows = {one.topic: one.rows for one in step.topics if one.rows is not None}
        load = [(name, topic.assignment) for name, topic in self.topics.items()]
        wished = {wish.topic for wish in wishes}
        others = [t.assignment for name, t in self.topics.items() if name not in wished]
        loads = self.weights.weigh_load([*load, *rows.items()])
        problem = Problem(
            able,
            *loads,
            tuple(wishes),
            others=(*others, *rows.values()),
            also_alive=tuple(b for b in self.living if b.id not in eligible),
        )
        # Kafka also places on registered brokers that are not alive, if the others run out.
        placed = place(problem, [b for b in self.brokers if not b.alive])
        topics = dict(self.topics)
        for one in step.topics:
            old = topics.get(one.topic, Exposed((), one.min_in_sync))
            all_rows = rows.get(one.topic) or old.assignment + placed.get(one.topic, ())
            topics[one.topic] = replace(old, assignment=all_rows)
        return replace(self, topics={name: topics[name] for name in sorted(topics)})

    def _add(self, step: AddBrokers) -> SimulatedCluster:
        brokers = list(self.brokers)
        held = Counter(b.rack for b in brokers if b.alive and b.rack is not None)
        for _ in range(step.count):
            # Kafka spreads over racks first, so unequal racks would make brokers uneven.
            rack = step.rack or min(sorted(held), key=lambda name: held[name], default=None)
            if rack is not None:
                held[rack] += 1
            brokers.append(Broker(max(b.id for b in brokers) + 1, rack))
        return replace(self, brokers=tuple(brokers))

    def _list_healthy(self) -> dict[str, list[bool]]:
        """Return which partitions may move: a replica on a lost broker is back once that is."""
        able = frozenset(broker.id for broker in eligible_brokers(self.brokers))
        return {
            name: [able.issuperset(row) for row in topic.assignment]
            for name, topic in self.topics.items()
        }

    def _level(self) -> Mapping[str, Assignment]:
        """Return rows that make every topic even."""
        rows = {name: topic.assignment for name, topic in self.topics.items()}
        able = frozenset(broker.id for broker in eligible_brokers(self.brokers))
        healthy = self._list_healthy()
        wishes = tuple(
            MoveWish(
                name,
                tuple(compress(assignment, healthy[name])),
                None,
                fixed=tuple(compress(assignment, map(not_, healthy[name]))),
            )
            for name, assignment in rows.items()
            if any(healthy[name])
        )
        load = count_load(rows.values())
        problem = MoveProblem(self.brokers, able, *load, wishes, goal=MoveGoal.BALANCE)
        after = {}
        for name, moved in move_replicas(problem).items():
            rest = iter(moved)
            after[name] = tuple(
                next(rest) if may_move else row
                for row, may_move in zip(rows[name], healthy[name], strict=True)
            )
        return after

    def _balance(self, aim: LoadAim) -> Mapping[str, Assignment]:
        """Return rows that bring every broker near its share."""
        somewhere = Location("simulation", 1)
        healthy, topics, diffs = self._list_healthy(), {}, []
        for name, topic in self.topics.items():
            known = self.known.get(name, TopicState(name, None, ()))
            rows = topic.assignment
            topics[name] = state = replace(
                known,
                assignment=rows,
                size_bytes=_lengthen(known.size_bytes, len(rows)),
                write_bytes_per_s=_lengthen(known.write_bytes_per_s, len(rows)),
                read_bytes_per_s=_lengthen(known.read_bytes_per_s, len(rows)),
            )
            given = {n: row for n, row in enumerate(rows) if not healthy[name][n]}
            diffs.append(MoveDiff(TopicSpec(name, somewhere), state, rows, given, None, ()))
        able = {broker.id for broker in eligible_brokers(self.brokers)}
        cluster = ClusterState("", self.brokers, topics)
        decided, _, _ = balance_by_load(ClusterEntry("", somewhere), diffs, cluster, aim, able)
        return {
            diff.spec.name: tuple(diff.given[number] for number in range(len(diff.rows)))
            for diff in decided
        }

    def _move(self, moved: Mapping[str, Assignment]) -> SimulatedCluster:
        topics = dict(self.topics)
        copies: list[tuple[int, int]] = []
        for name, after in moved.items():
            before = topics[name].assignment
            topics[name] = replace(topics[name], assignment=after)
            sizes = self.known[name].size_bytes if name in self.known else ()
            # Partitions that a step added hold nothing yet.
            pairs = zip(before, after, chain(sizes or repeat(-1), repeat(0)), strict=False)
            copies += (
                (len(set(new) - set(old)), size) for old, new, size in pairs if set(new) != set(old)
            )
        known = all(size >= 0 for _, size in copies)
        size = sum(number * each for number, each in copies) if known else None
        copied = (sum(number for number, _ in copies), size)
        return replace(self, topics=topics, copied=(*self.copied, copied))

    def _lose(self, lost: Collection[int], name: str) -> SimulatedCluster:
        if not lost:
            living = ", ".join(
                str(b.id) if b.rack is None else f"{b.id} in {b.rack}" for b in self.living
            )
            raise UsageError(f"there is no {name} to lose; living brokers: {living}")
        if len(lost) == len(self.living):
            raise UsageError(f"without {name} no broker is left to measure")
        # Measured before the brokers leave, because the loss moves their leaders to others.
        (loss,) = measure_losses(self.topics.values(), self.brokers, [lost])
        brokers = tuple(replace(b, alive=b.alive and b.id not in lost) for b in self.brokers)
        return replace(self, brokers=brokers, losses=(*self.losses, loss))


def _lengthen(amounts: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return amounts for more partitions: those that a step added hold nothing yet."""
    return (*amounts, *[0] * (count - len(amounts))) if amounts else ()


def _choose_replication(one: WantedTopic, topic: Exposed | None, able: int) -> int:
    """Return the replicas of each new partition. Errors: UsageError for an impossible step."""
    name = one.topic
    if topic is None and one.replication is None:
        raise UsageError(f"there is no topic {name} to grow")
    if topic is not None and one.replication is not None:
        raise UsageError(f"there is a topic {name} already; grow it with --grow {name}=…")
    if topic is not None and one.partitions < len(topic.assignment):
        raise UsageError(
            f"{name} has {count(len(topic.assignment), 'partition')}; Kafka cannot remove any"
        )
    replication = one.replication or max(map(len, topic.assignment if topic else ()), default=0)
    if not 0 < replication <= able:
        raise UsageError(
            f"{name}: {replication} replicas need as many brokers, and {able} can take replicas"
        )
    return replication


@dataclass(frozen=True, slots=True)
class WantedTopic:
    """A topic to create, or to expand to `partitions` partitions.

    `replication` is None for a topic that grows: its replication does not change. `rows` lists the
    replicas of every partition if a spec does; then nothing is placed.
    """

    topic: str
    partitions: int
    replication: int | None = None
    min_in_sync: int = 1
    rack_aware: bool = True
    rows: Assignment | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Create and grow topics, all of them placed together."""

    topics: tuple[WantedTopic, ...]


@dataclass(frozen=True, slots=True)
class AddBrokers:
    """Add brokers with the next ids: all in one rack, or each in the rack with fewest brokers."""

    count: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class LoseBroker:
    """Lose a broker; its replicas stay assigned to it."""

    broker: int


@dataclass(frozen=True, slots=True)
class LoseRack:
    """Lose every broker of a rack at once."""

    rack: str


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Bring every broker near its share, as `reconciler rebalance` does, or make all topics even.

    `aim` says near what, and how near; None makes the replicas of every topic even, with the fewest
    moves. Partitions with a replica on a lost broker stay.
    """

    aim: LoadAim | None = None


SimulationStep = Place | AddBrokers | Rebalance | LoseBroker | LoseRack
