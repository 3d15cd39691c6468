"""One topic as a matrix: partitions by brokers in their racks, before and after, with totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from reconciler.diff.brokers import eligible_brokers
from reconciler.errors import escape_unprintable
from reconciler.model.cluster import Assignment, Broker, ClusterState, TopicSpec, list_known
from reconciler.model.moves import LoadKind
from reconciler.model.plan import Balance, LevelResult, Plan, PlannedTopic
from reconciler.model.steps import is_deletion
from reconciler.placement.loss import Exposed, lose_each_broker, lose_each_rack
from reconciler.placement.measure import measure_balance
from reconciler.placement.problem import count_load
from reconciler.placement.weigh import ReplicaWeights
from reconciler.show.explain.odds import Odds, weigh_odds
from reconciler.show.explain.reasons import Growth, give_reasons
from reconciler.units import count

Loads = tuple[tuple[Mapping[int, int], Mapping[int, int]], ...]
"""Leaders and replicas by broker, before and after the plan."""

Idle = Literal["", "dead", "cordoned", "excluded", "gone"]
"""Why a broker gets no new replicas; "gone": only a replica list names it."""


@dataclass(frozen=True, slots=True)
class Load:
    """Preferred leaders, and replicas including these."""

    leaders: int = 0
    replicas: int = 0

    def __add__(self, other: Load) -> Load:
        return Load(self.leaders + other.leaders, self.replicas + other.replicas)


@dataclass(frozen=True, slots=True)
class Shift:
    """A load before and after the plan."""

    before: Load = Load()
    after: Load = Load()

    def __add__(self, other: Shift) -> Shift:
        return Shift(self.before + other.before, self.after + other.after)


@dataclass(frozen=True, slots=True)
class Column:
    """A broker: its load of the topic, and of all topics by number, size or rate.

    `taken_over` is the most leaders that one other broker takes over if this one is lost, after the
    plan.
    """

    broker: int
    topic: Shift
    cluster: Shift
    idle: Idle = ""
    taken_over: int = 0
    weight: Shift = Shift()


@dataclass(frozen=True, slots=True)
class Rack:
    """The brokers of a rack, by id; `name` is None if brokers have no rack.

    `taken_over` is the most leaders that one other broker takes over if the rack is lost.
    """

    name: str | None
    columns: tuple[Column, ...]
    taken_over: int = 0

    @property
    def topic(self) -> Shift:
        """The rack's load of the topic."""
        return sum((column.topic for column in self.columns), Shift())

    @property
    def cluster(self) -> Shift:
        """The rack's load of all topics."""
        return sum((column.cluster for column in self.columns), Shift())

    @property
    def weight(self) -> Shift:
        """The rack's load of all topics by size or rate."""
        return sum((column.weight for column in self.columns), Shift())


@dataclass(frozen=True, slots=True)
class Block:
    """Partitions shown in one line, `first` to `last`, both included."""

    first: int
    last: int
    new: bool

    def __len__(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Matrix:
    """A topic after the plan. The rows from `first_new` on are new.

    `odds` is None if nothing new is placed. `levels` are those of the entire plan. `by` is what
    the cluster is balanced by, None if replicas are counted. `was` holds the rows before a plan
    that changes rows, and is empty otherwise.
    """

    topic: str
    racks: tuple[Rack, ...]
    rows: Assignment
    first_new: int
    before: Balance
    after: Balance
    odds: Odds | None
    reasons: tuple[str, ...]
    levels: tuple[LevelResult, ...] = ()
    by: LoadKind | None = None
    was: Assignment = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """All brokers, rack by rack."""
        return tuple(column for rack in self.racks for column in rack.columns)

    def blocks(self, most: int) -> tuple[Block, ...]:
        """Return a block for each partition, or for runs of partitions if they are too many."""
        if len(self.rows) <= most:
            return tuple(Block(p, p, p >= self.first_new) for p in range(len(self.rows)))
        old = _fold(0, self.first_new, most // 2, new=False)
        return (*old, *_fold(self.first_new, len(self.rows), most // 2, new=True))

    def gained(self, block: Block) -> frozenset[int]:
        """Return the brokers that hold a single partition after the plan, and not before."""
        if len(block) > 1 or (not self.was and not block.new):
            return frozenset()
        old = () if block.new else self.was[block.first]
        return frozenset(self.rows[block.first]).difference(old)

    def lost(self, block: Block) -> frozenset[int]:
        """Return the brokers that hold a single partition before the plan, and not after."""
        if len(block) > 1 or block.new or not self.was:
            return frozenset()
        return frozenset(self.was[block.first]).difference(self.rows[block.first])

    def tally(self, block: Block) -> Mapping[int, Load]:
        """Count the load of a block of partitions on each broker."""
        leaders, replicas = count_load([self.rows[block.first : block.last + 1]])
        return {broker: Load(leaders[broker], replicas[broker]) for broker in replicas}


def _fold(start: int, end: int, most: int, *, new: bool) -> Iterator[Block]:
    """Split partitions into about `most` blocks, at round numbers."""
    size = next(s for s in round_sizes() if (end - start) <= s * most)
    while start < end:
        last = min(start - start % size + size, end) - 1
        yield Block(start, last, new)
        start = last + 1


def round_sizes() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, 50 and so on."""
    size = 1
    while True:
        yield from (size, 2 * size, 5 * size)
        size *= 10


def build_matrix(
    name: str,
    plan: Plan,
    state: ClusterState,
    *,
    spec: TopicSpec | None = None,
) -> Matrix:
    """Lay out one topic of a cluster after a plan, and explain its placement.

    The topic is in the plan or in the state; `spec` is its spec if it has one. Cost: one pass over
    all replicas of the cluster, and some hundred random placements of this one topic by Kafka's
    algorithm.
    """
    found = state.topics.get(name)
    planned = next((topic for topic in plan.topics if topic.name == name), None)
    before = found.assignment if found else ()
    whole = planned.after.assignment if planned and planned.after else before
    rows = list_known(whole)
    eligible = eligible_brokers(plan.brokers, plan.excluded)
    ids = [broker.id for broker in eligible]
    moved = rows[: len(before)] != before
    growth = Growth(eligible, before, rows[len(before) :], spec is None or spec.rack_aware)
    loads = _Loads(plan, state, before, rows)
    racks = _racks(loads, plan.brokers, plan.excluded)
    why = _say_moves(before, rows) if moved else _say_why(growth, planned, spec)
    if rows != whole:
        why = _say_left(len(whole) - len(rows), len(whole[-1]))
    reasons = [*why, *_idle_brokers(racks), *_say_losses(loads)]
    return Matrix(
        topic=name,
        racks=racks,
        rows=rows,
        first_new=len(before),
        before=measure_balance([before], ids),
        after=measure_balance([rows], ids),
        odds=weigh_odds(growth),
        reasons=tuple(map(escape_unprintable, reasons)),
        levels=plan.levels,
        by=plan.weighed.by if plan.weighed else None,
        was=before if moved else (),
    )


def build_layout(topic: PlannedTopic, plan: Plan) -> Matrix:
    """Lay out one planned topic from the plan alone: its placement, without an explanation.

    The load of other topics is not in a plan, and counts as zero.
    """
    before = topic.before.assignment if topic.before else ()
    rows = topic.after.assignment if topic.after else before
    ids = [broker.id for broker in eligible_brokers(plan.brokers, plan.excluded)]
    alone = replace(plan, topics=(topic,))
    loads = _Loads(alone, ClusterState(plan.cluster_id, plan.brokers, {}), before, rows)
    return Matrix(
        topic=topic.name,
        racks=_racks(loads, plan.brokers, plan.excluded),
        rows=rows,
        first_new=len(before),
        before=measure_balance([before], ids),
        after=measure_balance([rows], ids),
        odds=None,
        reasons=(),
        was=before if rows[: len(before)] != before else (),
    )


def _say_left(partitions: int, replication: int) -> Iterator[str]:
    """Say that the brokers place what is new, so that the matrix is what is there now."""
    new = f"{count(partitions, 'new partition')} × {count(replication, 'replica')}"
    yield f"The brokers place {new}. Shown is what is there now; explain again after apply."


def _say_moves(before: Assignment, rows: Assignment) -> Iterator[str]:
    """Count what a plan of moves does to the rows of a topic."""
    pairs = [(set(old), set(new)) for old, new in zip(before, rows, strict=False) if old != new]
    copied = count(sum(len(new - old) for old, new in pairs), "new replica")
    dropped = sum(len(old - new) for old, new in pairs)
    yield f"Rows of {count(len(pairs), 'partition')} change: {copied}, {dropped:,} removed."


def _say_why(growth: Growth, planned: PlannedTopic | None, spec: TopicSpec | None) -> Iterator[str]:
    if planned and planned.refusals:
        yield f"Refused, so nothing new is placed: {planned.refusals[0].what}."
    elif planned and is_deletion(planned):
        yield "Will be deleted. This is its placement until then."
    elif spec is not None and spec.assignment is not None:
        where = spec.where("assignment")
        place = f"{where.file}:{where.line}"
        yield f"Placed by hand, at {place}: the rows are checked and taken as they are."
    else:
        yield from give_reasons(growth)


def _idle_brokers(racks: Iterable[Rack]) -> Iterator[str]:
    """Yield the brokers that get no new replicas, and their existing load of the topic."""
    idle = [column for rack in racks for column in rack.columns if column.idle]
    for kind in sorted({column.idle for column in idle}):
        those = [column for column in idle if column.idle == kind]
        held = sum((column.topic.after for column in those), Load())
        ids = ", ".join(str(column.broker) for column in those)
        who = f"Broker {ids} is {kind} and takes"
        if len(those) > 1:
            who = f"Brokers {ids} are {kind} and take"
        kept = "nothing of this topic is there"
        if held.replicas:
            stay = "stays" if held.replicas == 1 else "stay"
            leading = f", {held.leaders} as preferred leader" if held.leaders else ""
            kept = f"{count(held.replicas, 'replica')} of this topic {stay} there{leading}"
        yield f"{who} nothing new; {kept}."
    if idle:
        yield "Evenness is that of the other brokers."


def _say_losses(loads: _Loads) -> Iterator[str]:
    """Say what the worst loss of a broker, and of a rack, does to the others."""
    for what, losses in (("broker", loads.if_broker), ("rack", loads.if_rack)):
        name, worst = max(losses.items(), key=lambda one: one[1].worst_heir, default=(None, None))
        if worst and worst.worst_heir:
            taker = next(b for b, n in worst.heirs.items() if n == worst.worst_heir)
            moved = count(worst.leaders_moved, "leader")
            yield (
                f"Worst loss of a {what}: {name}. Broker {taker} takes over "
                f"{worst.worst_heir:,} of its {moved}."
            )


class _Loads:
    """Counts every broker's load of the topic and of the cluster, before and after."""

    def __init__(
        self, plan: Plan, state: ClusterState, before: Assignment, rows: Assignment
    ) -> None:
        live = {topic: found.assignment for topic, found in state.user_topics.items()}
        planned = {t.name: list_known(t.after.assignment) if t.after else () for t in plan.topics}
        self._topic = count_load([before]), count_load([rows])
        after = {**live, **planned}
        self._cluster = count_load(live.values()), count_load(after.values())
        self._weight: Loads = (Counter(), Counter()), (Counter(), Counter())
        if plan.weighed and state.topics:
            weights = ReplicaWeights(state, plan.weighed.by)
            self._weight = (
                weights.add_amounts(live.items()),
                weights.add_amounts(after.items()),
            )
        exposed = [Exposed(assignment) for assignment in after.values()]
        self.if_broker = lose_each_broker(exposed, plan.brokers)
        self.if_rack = lose_each_rack(exposed, plan.brokers)
        self.named = {broker for row in rows for broker in row}

    def of_topic(self, broker: int) -> Shift:
        return self._shift(self._topic, broker)

    def of_cluster(self, broker: int) -> Shift:
        return self._shift(self._cluster, broker)

    def of_weight(self, broker: int) -> Shift:
        return self._shift(self._weight, broker)

    @staticmethod
    def _shift(counts: Loads, broker: int) -> Shift:
        before, after = (
            Load(leaders.get(broker, 0), replicas.get(broker, 0)) for leaders, replicas in counts
        )
        return Shift(before, after)


def _racks(loads: _Loads, brokers: Iterable[Broker], excluded: Collection[int]) -> tuple[Rack, ...]:
    """Group all brokers by rack; brokers that left the cluster are last, in the rack `gone`."""
    columns: dict[str | None, list[Column]] = {}
    known = sorted(brokers, key=lambda broker: (broker.rack or "", broker.id))
    for broker in known:
        column = _column(loads, broker.id, _idle(broker, excluded))
        columns.setdefault(broker.rack, []).append(column)
    gone = sorted(loads.named - {broker.id for broker in known})
    racks = [
        Rack(
            name,
            tuple(group),
            loads.if_rack[name].worst_heir if name and name in loads.if_rack else 0,
        )
        for name, group in columns.items()
    ]
    lost = tuple(_column(loads, broker, "gone") for broker in gone)
    return (*racks, *([Rack("gone", lost)] if lost else []))


def _column(loads: _Loads, broker: int, idle: Idle) -> Column:
    taken_over = loads.if_broker[broker].worst_heir if broker in loads.if_broker else 0
    return Column(
        broker,
        loads.of_topic(broker),
        loads.of_cluster(broker),
        idle,
        taken_over,
        loads.of_weight(broker),
    )


def _idle(broker: Broker, excluded: Collection[int]) -> Idle:
    if not broker.alive:
        return "dead"
    if broker.cordoned:
        return "cordoned"
    return "excluded" if broker.id in excluded else ""
