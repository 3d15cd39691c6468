"""Moves between the log directories of a broker: where each is, what begins, and how far it is.

| state     | seen                                                       | a run     | a cancel    |
|-----------|------------------------------------------------------------|-----------|-------------|
| NOT_BEGUN | in the directory before the plan, and no copy elsewhere    | sends it  | leaves it   |
| UNDER_WAY | copied to the directory of the plan: ours                  | waits     | sends it    |
|           |                                                            |           | back        |
| FOREIGN   | copied to another directory                                | waits     | leaves it   |
| DONE      | in the directory of the plan, and no copy elsewhere        | leaves it | leaves it   |
| CANCELLED | was under way, and is in the directory before the plan     | leaves it | is done     |
| ELSEWHERE | in another directory, or not on the broker                 | leaves it | leaves it   |
| GONE      | the topic was deleted, or created again                    | leaves it | leaves it   |
| REFUSED   | the broker refuses it, or one of its directories failed    | leaves it | leaves it   |

The broker itself says where its replicas are, so no view lags and nothing is unclear. A broker that
does not answer leaves its replicas in the state that they had. Kafka keeps what is in flight when
the run ends, also over a restart of the broker.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from reconciler.model.cluster import Place, ReplicaPlace, StoredReplica
from reconciler.model.moves import MovePolicy, MovesReading, PartitionState
from reconciler.model.plan import Plan
from reconciler.moves.running.rows import ENDED_OTHERWISE, TOO_LATE, RowState
from reconciler.units import approximate_duration, approximate_size

SHOWN_S = 30.0
"""How long a broker has to show a move that it accepted."""

QUOTA_S = 10.0
"""The quota remembers 10 s of earlier copies, so one may begin this much later."""

IDLE_S = 10.0
"""For how long a move that was under way is not shown until it counts as cancelled.

When a copy is complete, it takes the place of the replica, and for a moment neither is listed.
"""


@dataclass(slots=True)
class Relocation:
    """One replica that the plan moves to another log directory of its broker.

    `size` is in bytes, as last seen, and `copied` what is in the directory of the plan. `known`:
    the broker has accepted it, at `asked_s`, or it was seen under way; `seen`: it was. `idle_s` is
    the time since when it is not any more. `in_doubt`: the last request had no answer, and the
    broker has not said since where the replica is. `turned`: it had arrived, and is being copied
    back.
    """

    noun: ClassVar[str] = "replica"

    place: Place
    broker: int
    source: str
    target: str
    size: int = 0
    copied: int = 0
    state: RowState = RowState.NOT_BEGUN
    text: str = ""
    known: bool = False
    seen: bool = False
    in_doubt: bool = False
    asked_s: float = 0.0
    idle_s: float | None = None
    turned: bool = False
    was_done: bool = False
    cut_short: int | None = None
    shown: PartitionState | None = None

    @property
    def key(self) -> ReplicaPlace:
        """What it is called among all replicas of the plan."""
        return (*self.place, self.broker)

    @property
    def name(self) -> str:
        """Name it among the replicas of its topic."""
        return f"partition {self.place[1]} on broker {self.broker}"

    @property
    def preferred(self) -> None:
        """It leads as before."""
        return

    @property
    def is_back(self) -> bool:
        """Whether it is in the directory before the plan, and copied nowhere."""
        is_idle = self.state is RowState.UNDER_WAY and self.idle_s is not None
        return is_idle or self.state in (RowState.NOT_BEGUN, RowState.CANCELLED)

    @property
    def where(self) -> str:
        """Say in the words of a cancel where it is."""
        known = self.state in (RowState.NOT_BEGUN, RowState.UNDER_WAY, RowState.DONE)
        return str(self.state if known else RowState.ELSEWHERE)

    @property
    def flight(self) -> str | None:
        """Where it is being copied, None if it is not."""
        return self.target if self.state is RowState.UNDER_WAY else None

    def end(self, state: RowState, text: str) -> None:
        """Give it a state from which this run does not begin it again."""
        self.state, self.text = state, text

    def judge(self, reading: MovesReading, now_s: float) -> None:
        """Find its state in a reading."""
        if self.state is RowState.GONE:
            return
        held = reading.stored.get(self.broker)
        failed = _list_failed(reading, self.broker)
        if held is None and not failed:
            return  # it does not answer
        self.in_doubt = False
        replica = (held or {}).get(self.place)
        if replica is None:
            if self.source in failed:
                what = f"log directory {self.source} has failed: what is in it cannot be read"
                self.end(RowState.REFUSED, what)
            elif self.place[0] not in reading.partitions:
                self.end(RowState.GONE, "its topic was deleted")
            else:
                self.end(RowState.ELSEWHERE, f"broker {self.broker} does not hold it any more")
            return
        self._judge_replica(replica, failed, now_s)

    def _judge_replica(self, replica: StoredReplica, failed: Iterable[str], now_s: float) -> None:
        self.size = replica.size_bytes
        idle_s, self.idle_s = self.idle_s, None
        self.turned = (replica.path, replica.target) == (self.target, self.source)
        if replica.target == self.target and replica.path == self.source:
            self.state, self.known, self.seen = RowState.UNDER_WAY, True, True
            self.copied = replica.copied_bytes
        elif self.state in ENDED_OTHERWISE:
            return
        elif replica.target:
            self.state = RowState.FOREIGN
            self.text = f"another tool or run moves it to {replica.target}"
        elif replica.path == self.target:
            self.state, self.copied = RowState.DONE, replica.size_bytes
        elif replica.path != self.source:
            what = f"it is in {replica.path}, not {self.source}, since the plan was made"
            self.end(RowState.ELSEWHERE, what)
        elif self.target in failed:
            self.end(RowState.REFUSED, f"log directory {self.target} has failed")
        elif self.seen and (idle_s is None or now_s - idle_s < IDLE_S):
            self.idle_s = now_s if idle_s is None else idle_s
        elif self.seen:
            what = f"it was cancelled by another tool or run, and is in {self.source}"
            self.end(RowState.CANCELLED, what)
        elif not self.known:
            self.state = RowState.NOT_BEGUN
        elif now_s - self.asked_s >= SHOWN_S:
            what = f"the broker accepted the move, and it is still in {self.source}"
            self.end(RowState.CANCELLED, what)


def list_relocations(plan: Plan) -> dict[ReplicaPlace, Relocation]:
    """Return the replicas that a plan moves between log directories, in its order."""
    sizes: Mapping[ReplicaPlace, int] = {}
    if plan.moves is not None and plan.moves.directories is not None:
        copies = plan.moves.directories.copies
        sizes = {(each.topic, each.partition, each.broker): each.size_bytes for each in copies}
    found: dict[ReplicaPlace, Relocation] = {}
    for topic in plan.topics:
        if topic.refusals or topic.before is None or topic.after is None:
            continue
        after = {(each.partition, each.broker): each.path for each in topic.after.directories}
        for each in topic.before.directories:
            target = after.get((each.partition, each.broker), each.path)
            if target != each.path:
                key = (topic.name, each.partition, each.broker)
                place = (topic.name, each.partition)
                found[key] = Relocation(place, each.broker, each.path, target, sizes.get(key, 0))
    return found


def _list_failed(reading: MovesReading, broker: int) -> list[str]:
    return [each.path for each in reading.directories.get(broker, ()) if not each.online]


@dataclass(slots=True)
class Relocations:
    """All replicas that a plan moves between log directories, as of the last reading.

    At most `at_once_broker` replicas are copied on a broker at one time, whoever moves them, and
    `at_once_cluster` of the plan in all. `obstacles` has the reasons by replica, and `since_s` when
    each began.
    """

    by_key: Mapping[ReplicaPlace, Relocation]
    policy: MovePolicy
    obstacles: dict[ReplicaPlace, str] = field(default_factory=dict)
    since_s: dict[ReplicaPlace, float] = field(default_factory=dict)

    @classmethod
    def of_plan(cls, plan: Plan) -> Relocations:
        """Take the replicas whose directories differ between the images of a plan."""
        policy = plan.moves.policy if plan.moves else MovePolicy(frozenset(), None)
        return cls(list_relocations(plan), policy)

    def __iter__(self) -> Iterator[Relocation]:
        return iter(self.by_key.values())

    @property
    def topics(self) -> set[str]:
        """The topics of the replicas."""
        return {each.place[0] for each in self}

    def of_topic(self, topic: str) -> list[Relocation]:
        """List the replicas of a topic."""
        return [each for each in self if each.place[0] == topic]

    def list_in(self, *states: RowState) -> list[Relocation]:
        """List the replicas in some states, in the order of the plan."""
        return [each for each in self if each.state in states]

    def update(self, reading: MovesReading, now_s: float) -> list[Relocation]:
        """Judge every replica by a reading. Returns: those that ended otherwise since the last."""
        open_ = [each for each in self if each.state not in ENDED_OTHERWISE]
        for each in self:
            each.judge(reading, now_s)
        return [each for each in open_ if each.state in ENDED_OTHERWISE]

    def measure(self) -> tuple[int, int, int]:
        """Return the bytes that are copied, those of all replicas, and those left of what can move.

        What ended otherwise is to copy, and is not left.
        """
        done = sum(
            each.size if each.state is RowState.DONE else min(each.copied, each.size)
            for each in self
            if each.state in (RowState.DONE, RowState.UNDER_WAY)
        )
        left = sum(
            each.size - (each.copied if each.state is RowState.UNDER_WAY else 0)
            for each in self.list_in(RowState.NOT_BEGUN, RowState.FOREIGN, RowState.UNDER_WAY)
            if each.key not in self.obstacles
        )
        return done, sum(each.size for each in self), max(0, left)

    def choose(
        self, reading: MovesReading, now: float, *, rate: int | None, left_s: float | None
    ) -> list[Relocation]:
        """Choose what begins now, the largest first: started last, it would run alone at the end.

        In: the rate of each broker in bytes per second, None if it is not known, and the seconds
        that are left, None for no end.
        """
        taken: Counter[int] = Counter()
        to_take: Counter[tuple[int, str]] = Counter()
        for broker, held in reading.stored.items():
            for replica in held.values():
                if replica.target:
                    taken[broker] += 1
                    left = max(0, replica.size_bytes - replica.copied_bytes)
                    to_take[broker, replica.target] += left
        flying = self.list_in(RowState.UNDER_WAY)
        obstacles = dict(self._find_stuck(flying, reading))
        seats = self.policy.at_once_cluster - len(flying)
        chosen = []
        waiting = self.list_in(RowState.NOT_BEGUN)
        for each in sorted(waiting, key=lambda each: (-each.size, each.key)):
            waits_s = _estimate_s(to_take, each.broker, each.size, rate)
            alone_s = _estimate_s({}, each.broker, each.size, rate)
            if why := _find_obstacle(each, reading):
                obstacles[each.key] = why
            elif full := self._find_full(each, to_take, reading):
                obstacles[each.key] = full
            elif left_s is not None and alone_s > max(0.0, left_s):
                obstacles[each.key] = f"it needs about {approximate_duration(alone_s)}, {TOO_LATE}"
            elif (
                not each.known
                and seats > 0
                and taken[each.broker] < self.policy.at_once_broker
                and (left_s is None or waits_s <= left_s)
            ):
                seats -= 1
                taken[each.broker] += 1
                to_take[each.broker, each.target] += each.size
                chosen.append(each)
        self.since_s = {key: self.since_s.get(key, now) for key in obstacles}
        self.obstacles = obstacles
        return chosen

    def _find_stuck(
        self, flying: Iterable[Relocation], reading: MovesReading
    ) -> Iterator[tuple[ReplicaPlace, str]]:
        alive = {broker.id for broker in reading.brokers if broker.alive}
        for each in flying:
            if each.broker not in alive:
                yield each.key, f"broker {each.broker} is not alive"

    def _find_full(
        self, each: Relocation, to_take: Counter[tuple[int, str]], reading: MovesReading
    ) -> str:
        for directory in reading.directories.get(each.broker, ()):
            known = directory.usable_bytes is not None and directory.total_bytes is not None
            if directory.path != each.target or not known:
                continue
            free = (directory.usable_bytes or 0) - to_take[each.broker, each.target] - each.size
            if free * 100 < (directory.total_bytes or 0) * self.policy.keep_free_percent:
                return (
                    f"{each.target} of broker {each.broker} would have "
                    f"{approximate_size(max(0, free))} free, less than the "
                    f"{self.policy.keep_free_percent} % of keep_free"
                )
        return ""

    def cannot_progress(self, now: float, patience_s: float) -> bool:
        """Return whether nothing can begin or end: everything has been blocked for `patience_s`."""
        open_ = self.list_in(RowState.NOT_BEGUN, RowState.UNDER_WAY)
        late = {key for key, why in self.obstacles.items() if why.endswith(TOO_LATE)}
        return all(
            each.key in late or now - self.since_s.get(each.key, now) >= patience_s
            for each in open_
        )


def _find_obstacle(each: Relocation, reading: MovesReading) -> str:
    """Say why a broker cannot begin a move now; empty if it can."""
    if each.broker not in {broker.id for broker in reading.brokers if broker.alive}:
        return f"broker {each.broker} is not alive"
    if failed := _list_failed(reading, each.broker):
        what = f"log directory {failed[0]} of broker {each.broker} has failed"
        return f"{what}: Kafka moves nothing between its directories then"
    return ""


def _estimate_s(
    to_take: Mapping[tuple[int, str], int], broker: int, size: int, rate: int | None
) -> float:
    """Return the seconds until a move would have ended that begins now; 0 without a rate."""
    total = sum(left for (number, _), left in to_take.items() if number == broker) + size
    return QUOTA_S + total / rate if rate else 0.0


def group_by_broker(chosen: Iterable[Relocation]) -> dict[int, list[Relocation]]:
    """Group replicas by their broker, each of which takes a request of its own."""
    groups: dict[int, list[Relocation]] = defaultdict(list)
    for each in chosen:
        groups[each.broker].append(each)
    return dict(sorted(groups.items()))
