"""An in-memory Kafka for moves: copies, quotas, views that lag, and everything that fails.

It implements ClusterReader and ClusterMover as far as a run of moves and interventions ask. What
Kafka does in the end, and what it does not show, follows what was seen on brokers of 3.9 and 4.4;
the contract tests of the mover check the same facts there. Time is simulated: `sleep` lets the
cluster work.

Violations are what a run must never do, found where it would do harm and not in its answers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from reconciler.errors import ClusterError, Finding, LockLostError
from reconciler.model.cluster import (
    Broker,
    ClusterState,
    LogDirectory,
    Place,
    RateSource,
    Reassignment,
    Replicas,
    StoredReplica,
    ThrottleList,
    ThrottleRate,
    ThrottleSide,
    TopicState,
)
from reconciler.model.moves import MIN_INSYNC, DirectoryRate, MovesReading, PartitionState
from reconciler.model.outcomes import Answer, AnswerKind

ACCEPTED = Answer(AnswerKind.ACCEPTED)
LOST = Answer(AnswerKind.LOST, "REQUEST_TIMED_OUT", "no answer")
UNKNOWN = Answer(AnswerKind.REFUSED, "UNKNOWN_TOPIC_OR_PARTITION", "no such partition")
NOT_DONE = Answer(AnswerKind.NOT_DONE, "CONNECTION_LOST", "no connection")
SIDES = tuple(ThrottleSide)
FAST = 400
"""The bytes per second of a copy that nothing throttles."""

FAST_DISK = 4096
"""The bytes per second that a broker copies between log directories without a throttle."""

CALL_S = 0.05
TIMEOUT_S = 20.0
DISTURBED_S = 25.0
"""How long throttles may be wrong after somebody else, or a late request, changed them."""


class KilledError(Exception):
    """The process of the run is gone: nothing of it is executed any more."""


@dataclass(slots=True)
class Partition:
    """A partition; `replicas` is as metadata shows it: the target, then what is removed."""

    replicas: Replicas
    size: int
    in_sync: set[int]
    leader: int
    adding: Replicas = ()
    removing: Replicas = ()
    held: dict[int, float] = field(default_factory=dict)
    begun_late: bool = False

    @property
    def target(self) -> Replicas:
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def in_flight(self) -> bool:
        return bool(self.adding or self.removing)


@dataclass(frozen=True, slots=True)
class Image:
    """The metadata and configs at one time."""

    partitions: Mapping[str, tuple[PartitionState, ...]]
    configs: Mapping[str, Mapping[str, str]]
    rates: Mapping[ThrottleSide, int]


class SimulatedClock:
    """A clock that lets the cluster work while somebody sleeps."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def monotonic(self) -> float:
        return self._cluster.now_s

    def sleep(self, seconds: float) -> None:
        self._cluster.sleep(seconds)


class SimulatedCluster:
    """Brokers, topics, the controller, and the ports that a run of moves has to them.

    `lags` holds the seconds by which each broker's view is behind. `rows` maps topics to the rows
    of their partitions, `sizes` places to bytes.
    """

    directory_rate: int | None = None
    """The rate between log directories."""
    most_relocated = 0
    """The most replicas that a broker has copied between them at one time."""

    def __init__(
        self,
        rows: Mapping[str, tuple[Replicas, ...]],
        sizes: Mapping[Place, int],
        lags: Mapping[int, float],
        configs: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.now_s = 1000.0
        self.alive = dict.fromkeys(lags, True)
        self.lags = dict(lags)
        self.frozen = False
        self.topics = {
            name: [
                Partition(row, sizes.get((name, n), 10), set(row), row[0])
                for n, row in enumerate(given)
            ]
            for name, given in rows.items()
        }
        for name, partitions in self.topics.items():
            for n, each in enumerate(partitions):
                each.held = dict.fromkeys(each.replicas, float(sizes.get((name, n), 10)))
        self.ids = {name: f"id-{name}" for name in rows}
        self.configs: dict[str, dict[str, str]] = {
            name: dict((configs or {}).get(name, {})) for name in rows
        }
        self.rates: dict[ThrottleSide, int] = {}
        self.own_rates: dict[int, tuple[int, RateSource]] = {}
        self.directories: dict[int, tuple[LogDirectory, ...]] = {}
        self.stored: dict[int, dict[Place, StoredReplica]] = {}
        self.racks: dict[int, str] = {}
        self.cordoned: set[int] = set()
        self.refused_cordons: set[int] = set()
        self.events: list[tuple[float, Callable[[], None]]] = []
        self.late: list[tuple[float, Callable[[], None]]] = []
        self.faults: dict[int, str] = {}
        self.calls = 0
        self.clock = SimulatedClock(self)
        self._log: list[Image] = []
        self._times: list[float] = []
        self._turn = count()
        self._publish()

        # What the run must keep to, and what it is known to have seen.
        self.plan_rows: dict[Place, Replicas] = {}
        self.old_rows: dict[Place, Replicas] = {}
        self.verb = ""
        """The intervention that is under way, if it is no run."""
        self.limited = True
        self.most_topics = 500
        self.most_value = 32_767
        self.at_once_cluster = 10**9
        self.at_once_broker = 10**9
        self.run_number = 0
        self.holds_lock = True
        self.in_writing = False
        self.violations: list[str] = []
        self.disturbed_s = -1e9
        self.unset_by_hand = False
        self.rate_changes = 0
        self.strange: dict[str, tuple[set[str], float]] = {}
        self.broker_died = False
        self.changed_s = -1e9
        self.lowered: set[str] = set()
        self.known: set[tuple[int, Place]] = set()
        self.cancelled: set[Place] = set()
        self.never_again: set[tuple[int, Place]] = set()
        self.touched: set[Place] = set()
        self.recreated: dict[str, dict[str, str]] = {}

    # -- time -------------------------------------------------------------------------------------

    def sleep(self, seconds: float) -> None:
        """Let the cluster work, and let others act at their times."""
        end = self.now_s + seconds
        while self.now_s < end - 1e-9:
            self._advance(min(1.0, end - self.now_s))
            while self.events and self.events[0][0] <= self.now_s:
                self.events.pop(0)[1]()
                self._publish()
            while self.late and self.late[0][0] <= self.now_s and not self.frozen:
                self.late.pop(0)[1]()
                self._publish()

    def at(self, after_s: float, act: Callable[[], None]) -> None:
        """Let somebody act after some seconds."""
        self.events.append((self.now_s + after_s, act))
        self.events.sort(key=lambda event: event[0])

    def kill_run_at(self, after_s: float) -> None:
        """Kill the run that is then under way: one that does not end."""
        self.at(after_s, lambda: self.faults.update({self.calls + 1: "kill"}))

    def _advance(self, seconds: float) -> None:
        self.now_s += seconds
        self._relocate(seconds)
        busy = self._list_copies()
        takers: dict[int, int] = {}
        senders: dict[int, int] = {}
        for _, _, each, broker in busy:
            takers[broker] = takers.get(broker, 0) + 1
            senders[each.leader] = senders.get(each.leader, 0) + 1
        for topic, number, each, broker in busy:
            limits = (
                self._limit(topic, f"{number}:{broker}", broker, ThrottleSide.FOLLOWER),
                self._limit(topic, f"{number}:{each.leader}", each.leader, ThrottleSide.LEADER),
            )
            speed = float(FAST)
            for limit, sharing in zip(limits, (takers[broker], senders[each.leader]), strict=True):
                if limit is not None:
                    speed = min(speed, limit / sharing)
            if speed:
                self._check_throttled(topic, number, each, limits)
            each.held[broker] = min(each.size, each.held.get(broker, 0.0) + speed * seconds)
            if each.held[broker] >= each.size:
                each.in_sync.add(broker)
                self._complete(each)
                self._publish()
        for topic in self.lowered:
            self._check_writable(topic)

    def _relocate(self, seconds: float) -> None:
        """Copy between log directories: each broker shares one rate among its copies."""
        for broker, held in self.stored.items():
            moving = {place: each for place, each in held.items() if each.target}
            if not moving or not self.alive[broker]:
                continue
            self.most_relocated = max(self.most_relocated, len(moving))
            limit = FAST_DISK if self.directory_rate is None else self.directory_rate
            for place, each in moving.items():
                copied = each.copied_bytes + int(seconds * limit / len(moving))
                held[place] = each._replace(copied_bytes=copied)
                if copied >= each.size_bytes:
                    held[place] = StoredReplica(each.target, each.size_bytes)

    def fail_directory(self, broker: int, path: str) -> None:
        """Lose a log directory: what was in it, and what was being copied to it."""
        self.directories[broker] = tuple(
            LogDirectory(path, None, None, online=False) if each.path == path else each
            for each in self.directories[broker]
        )
        self.stored[broker] = {
            place: each._replace(target="", copied_bytes=0) if each.target == path else each
            for place, each in self.stored[broker].items()
            if each.path != path
        }

    def _list_copies(self) -> list[tuple[str, int, Partition, int]]:
        return [
            (topic, number, each, broker)
            for topic, partitions in self.topics.items()
            for number, each in enumerate(partitions)
            if each.adding and each.leader != -1
            for broker in each.adding
            if broker not in each.in_sync and self.alive[broker]
        ]

    def _limit(self, topic: str, entry: str, broker: int, side: ThrottleSide) -> int | None:
        """Return the rate for one replica as its own broker knows it, None for no throttle."""
        view = self._view(broker)
        if entry not in view.configs.get(topic, {}).get(side.list_key, "").split(","):
            return None
        if broker in self.own_rates:
            return self.own_rates[broker][0]
        return view.rates.get(side)

    def _complete(self, each: Partition) -> None:
        """End a reassignment whose added replicas are in sync; one that also leaves never is."""
        if each.in_flight and set(each.adding) - set(each.removing) <= each.in_sync:
            if set(each.adding) & set(each.removing):
                return
            each.replicas, each.adding, each.removing = each.target, (), ()
            each.in_sync &= set(each.replicas)
            each.held = {b: each.held.get(b, 0.0) for b in each.replicas}
            each.begun_late = False
            if each.leader not in each.replicas:
                self._lead(each)

    def _lead(self, each: Partition) -> None:
        able = [b for b in each.replicas if b in each.in_sync and self.alive[b]]
        each.leader = able[0] if able else -1

    # -- views ------------------------------------------------------------------------------------

    def _publish(self) -> None:
        image = Image(
            {
                topic: tuple(
                    [
                        PartitionState(each.replicas, each.leader, tuple(sorted(each.in_sync)))
                        for each in partitions
                    ]
                )
                for topic, partitions in self.topics.items()
            },
            {topic: dict(values) for topic, values in self.configs.items()},
            dict(self.rates),
        )
        self._log.append(image)
        self._times.append(self.now_s)

    def _view(self, broker: int) -> Image:
        place = bisect_right(self._times, self.now_s - self.lags[broker]) - 1
        return self._log[max(0, place)]

    @property
    def living(self) -> list[int]:
        return [broker for broker, alive in self.alive.items() if alive]

    # -- calls and faults -------------------------------------------------------------------------

    def _begin_call(self) -> str:
        """Count a call of a port, and let it fail as planned. Returns: the fault of its answer."""
        self.calls += 1
        fault = self.faults.pop(self.calls, "")
        if fault == "kill":
            raise KilledError
        if fault == "interrupt":
            raise KeyboardInterrupt
        if fault == "lock":
            self.holds_lock = False
        self._advance(CALL_S)
        return fault

    def _read(self, *, controller: bool = False) -> None:
        fault = self._begin_call()
        if controller and self.frozen:
            self._advance(TIMEOUT_S)
            raise _silent()
        if fault == "error" or not self.living:
            raise _silent()

    def _write(self, execute: Callable[[], Mapping[object, Answer]], items: Collection[object]):
        """Execute a write, with the fault that is planned for its answer."""
        is_locked = self.verb != "rate"
        if not self.holds_lock and is_locked:
            self.violations.append("a write without the lock of moves")
        if not self.in_writing and is_locked:
            self.violations.append("a write without the lock of applies")
        fault = self._begin_call()
        run = self.run_number
        if fault == "not done":
            return dict.fromkeys(items, NOT_DONE)
        if self.frozen or fault == "late":
            self._advance(TIMEOUT_S if self.frozen else CALL_S)
            delay_s = 0.0 if self.frozen else 3.0 + self.calls % 7 * 5.0

            def later() -> None:
                self.disturbed_s = self.now_s
                execute_late(execute, run)

            def execute_late(execute: Callable[[], object], run: int) -> None:
                self._executing_late = True
                try:
                    execute()
                finally:
                    self._executing_late = False

            self.late.append((self.now_s + delay_s, later))
            self.late.sort(key=lambda item: item[0])
            return dict.fromkeys(items, LOST)
        if fault == "lost":
            return dict.fromkeys(items, LOST)
        answers = execute()
        self._publish()
        if fault == "unanswered":
            return dict.fromkeys(items, LOST)
        if fault == "kill after":
            raise KilledError
        if fault == "interrupt after":
            raise KeyboardInterrupt
        return answers

    _executing_late = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        self.in_writing = True
        try:
            yield None
        finally:
            self.in_writing = False

    def check(self) -> None:
        """The lease of the run."""
        if not self.holds_lock:
            raise LockLostError([Finding("lock-lost", "the lock is lost", "run it again")])

    # -- ClusterReader ----------------------------------------------------------------------------

    def read_cluster(self, config_of: Collection[str] | None = None) -> ClusterState:  # noqa: ARG002
        self._read()
        view = self._view(self._pick())
        topics = {name: self._state(view, name, with_config=True) for name in view.partitions}
        return ClusterState("cluster-1", self._brokers(), topics, {MIN_INSYNC: "1"})

    def read_topic_ids(self, names: Collection[str]) -> Mapping[str, str]:
        self._read()
        return {name: self.ids[name] for name in names if name in self.ids}

    def read_views(
        self, names: Collection[str], with_config: Collection[str] = ()
    ) -> Mapping[int, Mapping[str, TopicState]]:
        self._read()
        views = {broker: self._view(broker) for broker in self.living}
        return {
            broker: {
                name: self._state(view, name, with_config=name in with_config)
                for name in names
                if name in view.partitions
            }
            for broker, view in views.items()
        }

    def read_usage(self, names: Collection[str]) -> Mapping[str, object]:  # noqa: ARG002
        return {}

    def _state(self, view: Image, name: str, *, with_config: bool) -> TopicState:
        config = dict(view.configs[name]) if with_config else {}
        rows = tuple(each.replicas for each in view.partitions[name])
        return TopicState(name, self.ids[name], rows, config)

    def _brokers(self) -> tuple[Broker, ...]:
        return tuple(
            Broker(b, self.racks.get(b) if alive else None, alive, b in self.cordoned)
            for b, alive in self.alive.items()
        )

    def _pick(self) -> int:
        """Pick the broker that answers, another one each time."""
        return self.living[next(self._turn) % len(self.living)]

    # -- ClusterMover -----------------------------------------------------------------------------

    def read(self, topics: Collection[str]) -> MovesReading:  # noqa: ARG002
        self._read(controller=True)
        view = self._view(self._pick())
        moving = []
        for topic, partitions in self.topics.items():
            for number, each in enumerate(partitions):
                if each.in_flight:
                    self.known.add((self.run_number, (topic, number)))
                    moving.append(
                        Reassignment(
                            topic,
                            number,
                            each.replicas,
                            each.adding,
                            each.removing,
                            each.leader,
                            tuple(sorted(each.in_sync)),
                        )
                    )
        sizes: dict[int, dict[Place, int]] = {broker: {} for broker in self.living}
        for topic, partitions in self.topics.items():
            for number, each in enumerate(partitions):
                for broker, held in each.held.items():
                    if broker in sizes:
                        sizes[broker][topic, number] = int(held)
        return MovesReading(
            cluster="prod",
            cluster_id="cluster-1",
            seen_at_ms=0,
            clock_s=self.now_s,
            brokers=self._brokers(),
            reassignments=tuple(moving),
            sizes=sizes,
            rates=tuple(self._list_rates(view)),
            lists=tuple(_list_lists(view)),
            partitions=view.partitions,
            directories={b: d for b, d in self.directories.items() if self.alive[b]},
            stored={b: dict(held) for b, held in self.stored.items() if self.alive[b]},
            directory_rates=tuple(
                DirectoryRate(broker, self.directory_rate, RateSource.CLUSTER_DEFAULT)
                for broker in (None, *self.living)
                if self.directory_rate is not None
            ),
        )

    def _list_rates(self, shown: Image) -> Iterator[ThrottleRate]:
        default = RateSource.CLUSTER_DEFAULT
        for side, rate in shown.rates.items():
            yield ThrottleRate(None, side, rate, default)
        for broker in self.living:
            for side in SIDES:
                own = self.own_rates.get(broker)
                rate = self._view(broker).rates.get(side)
                if own is not None and (own[1] is RateSource.BROKER or rate is None):
                    yield ThrottleRate(broker, side, *own)
                elif rate is not None:
                    yield ThrottleRate(broker, side, rate, default)

    def read_lists(self, topics: Collection[str]) -> Mapping[int, Collection[ThrottleList]]:
        self._read()
        return {
            broker: [each for each in _list_lists(self._view(broker)) if each.topic in topics]
            for broker in self.living
        }

    def reassign(
        self, rows: Mapping[Place, Replicas | None], *, may_resize: bool = False
    ) -> Mapping[Place, Answer]:
        run = self.run_number
        for place, row in rows.items():
            self._check_sent(place, row)
        if len(rows) > 500:
            self.violations.append("more than 500 rows in a request")

        def execute() -> Mapping[Place, Answer]:
            answers = {
                place: self._alter(place, row, may_resize=may_resize) for place, row in rows.items()
            }
            if not self._executing_late:
                accepted = [p for p, answer in answers.items() if answer is ACCEPTED]
                self.known |= {(run, place) for place in accepted}
                self._check_seats()
            return answers

        return self._write(execute, rows)

    def elect(self, places: Collection[Place]) -> Mapping[Place, Answer]:
        def execute() -> Mapping[Place, Answer]:
            return {place: self._elect(place) for place in places}

        return self._write(execute, places)

    def configure(self, configs: Mapping[str, Mapping[str, str | None]]) -> Mapping[str, Answer]:
        verb = self.verb  # of who asks: it may have ended when the request is carried out

        def execute() -> Mapping[str, Answer]:
            known = {topic: values for topic, values in configs.items() if topic in self.configs}
            self._check_lists(known, verb)
            for topic, values in known.items():
                for key, value in values.items():
                    if value is None:
                        self.configs[topic].pop(key, None)
                    else:
                        self.configs[topic][key] = value
            unknown = dict.fromkeys(configs.keys() - known.keys(), UNKNOWN)
            return dict.fromkeys(known, ACCEPTED) | unknown

        if any("*" in (value or "") for values in configs.values() for value in values.values()):
            self.violations.append("a throttle list of *")
        if len(configs) > self.most_topics:
            self.violations.append(f"configs of {len(configs)} topics in a request")
        # Brokers close the connection of such a request: a string of the protocol is no longer.
        longest = max(len(v or "") for values in configs.values() for v in values.values())
        if longest > self.most_value:
            return dict.fromkeys(configs, LOST)
        return self._write(execute, configs)

    def read_stored(self, broker: int) -> Collection[Place] | None:
        self._read()
        if not self.alive[broker]:
            raise _silent()
        return self.list_stored(broker)

    def list_stored(self, broker: int) -> list[Place]:
        """List the partitions of which a broker has a replica, or a part of one."""
        return [
            (name, number)
            for name, partitions in self.topics.items()
            for number, each in enumerate(partitions)
            if broker in each.held
        ]

    def relocate(self, broker: int, paths: Mapping[Place, str]) -> Mapping[Place, Answer]:
        def execute() -> Mapping[Place, Answer]:
            if not self.alive[broker]:
                return dict.fromkeys(paths, LOST)
            failed = [each for each in self.directories[broker] if not each.online]
            answers = {}
            for place, path in paths.items():
                held = self.stored[broker].get(place)
                if held is None:
                    answers[place] = UNKNOWN
                    continue
                if path == held.path or not failed:
                    target = "" if path == held.path else path
                    copied = held.copied_bytes if target == held.target else 0
                    held = held._replace(target=target, copied_bytes=copied)
                    self.stored[broker][place] = held
                    answers[place] = ACCEPTED
                else:
                    answers[place] = Answer(AnswerKind.REFUSED, "KAFKA_STORAGE_ERROR", "disk")
            return answers

        return self._write(execute, list(paths))  # type: ignore[arg-type,return-value]

    def set_directory_rate(self, bytes_per_s: int | None) -> Answer:
        def execute() -> Mapping[str, Answer]:
            self.directory_rate = bytes_per_s
            return {"": ACCEPTED}

        return self._write(execute, [""])[""]

    def cordon(self, broker: int) -> Answer:
        def execute() -> Mapping[str, Answer]:
            if not self.alive[broker]:
                return {"": LOST}
            if broker in self.refused_cordons:
                return {"": Answer(AnswerKind.REFUSED, "CLUSTER_AUTHORIZATION_FAILED", "denied")}
            self.cordoned.add(broker)
            return {"": ACCEPTED}

        return self._write(execute, [""])[""]

    def set_rate(self, bytes_per_s: int | None, *, permanent: bool = False) -> Answer:
        def execute() -> Mapping[str, Answer]:
            is_pause = self.verb == "rate" and bytes_per_s == 0
            if self.permanent and not (self._executing_late or permanent or is_pause):
                self.violations.append(f"the default rate of somebody else becomes {bytes_per_s}")
            if bytes_per_s is not None and not self._executing_late and not self.verb:
                self._check_slowed()
            self.rates = _mark_rate(bytes_per_s)
            if permanent and bytes_per_s is not None:
                self.rates = dict.fromkeys(SIDES, bytes_per_s)
            self.disturbed_s = self.now_s if self.verb else self.disturbed_s
            return {"": ACCEPTED}

        return self._write(execute, [""])[""]

    def unset_rates(self, broker: int) -> Answer:
        def execute() -> Mapping[str, Answer]:
            self.own_rates.pop(broker, None)
            return {"": ACCEPTED}

        return self._write(execute, [""])[""]

    # -- what the controller does -----------------------------------------------------------------

    def _alter(  # noqa: PLR0911  # an answer for each reason
        self, place: Place, row: Replicas | None, *, may_resize: bool
    ) -> Answer:
        topic, number = place
        if topic not in self.topics or number >= len(self.topics[topic]):
            return UNKNOWN
        each = self.topics[topic][number]
        if row is None:
            answer = self.cancel(place)
            if answer is ACCEPTED and place in self.plan_rows:
                self._note_cancelled(place)
            return answer
        if len(set(row)) < len(row) or not set(row) <= self.alive.keys():
            return Answer(AnswerKind.REFUSED, "INVALID_REPLICA_ASSIGNMENT", "invalid brokers")
        if set(row) & self.cordoned - set(each.replicas):
            return Answer(AnswerKind.REFUSED, "INVALID_REPLICA_ASSIGNMENT", "a cordoned broker")
        if each.in_flight:
            if row == each.target:
                return ACCEPTED
            if self._executing_late:
                return ACCEPTED
            self._override(each, row)
            return ACCEPTED
        if len(row) != len(each.replicas) and not may_resize:
            what = f"The replication factor is changed from {len(each.replicas)} to {len(row)}"
            return Answer(AnswerKind.REFUSED, "INVALID_REPLICATION_FACTOR", what)
        adding = tuple(b for b in row if b not in each.replicas)
        removing = tuple(b for b in each.replicas if b not in row)
        if not adding and not each.in_sync & set(row):
            return Answer(AnswerKind.REFUSED, "INVALID_REPLICA_ASSIGNMENT", "none is in sync")
        each.replicas, each.adding, each.removing = (*row, *removing), adding, removing
        each.begun_late = self._executing_late
        each.held.update(dict.fromkeys(adding, 0.0))
        if not adding:
            each.adding = ()
            self._complete(each)
        return ACCEPTED

    def _override(self, each: Partition, row: Replicas) -> None:
        """Take a second target as 4.x does: what was added and is not wanted is also removed."""
        everything = dict.fromkeys((*row, *each.replicas))
        original = [b for b in each.replicas if b not in each.adding]
        each.adding = tuple(b for b in everything if b not in original)
        each.removing = tuple(b for b in everything if b not in row)
        each.replicas = tuple(everything)

    def cancel(self, place: Place) -> Answer:
        """Cancel a reassignment: the order of the row is another one afterwards."""
        each = self.topics[place[0]][place[1]]
        if not each.in_flight:
            return Answer(AnswerKind.REFUSED, "NO_REASSIGNMENT_IN_PROGRESS", "nothing in flight")
        back = tuple(b for b in each.replicas if b not in each.adding)
        if not each.in_sync & set(back):
            what = "it would require an unclean leader election"
            return Answer(AnswerKind.REFUSED, "INVALID_REPLICA_ASSIGNMENT", what)
        each.replicas, each.adding, each.removing = back, (), ()
        each.in_sync &= set(back)
        each.held = {b: each.held.get(b, 0.0) for b in back}
        if each.leader not in back:
            self._lead(each)
        return ACCEPTED

    def _elect(self, place: Place) -> Answer:
        each = self.topics[place[0]][place[1]]
        first = each.replicas[0]
        if first not in each.in_sync or not self.alive[first]:
            return Answer(AnswerKind.REFUSED, "PREFERRED_LEADER_NOT_AVAILABLE", "not in sync")
        each.leader = first
        return ACCEPTED

    # -- what others do ---------------------------------------------------------------------------

    def kill_broker(self, broker: int) -> None:
        """Let a broker die: it leaves the in-sync replicas where another one is left."""
        self.alive[broker] = False
        self.broker_died, self.changed_s = True, self.now_s
        for each in self._every_partition():
            if each.in_sync != {broker}:
                each.in_sync.discard(broker)
            if each.leader == broker:
                self._lead(each)
            self._complete(each)

    def elect_uncleanly(self, place: Place, broker: int) -> None:
        """Let a replica lead that is not in sync; the others take over what it has."""
        each = self.topics[place[0]][place[1]]
        each.leader, each.in_sync = broker, {broker}
        each.size = int(each.held[broker])
        self._complete(each)
        self._publish()

    def revive_broker(self, broker: int) -> None:
        """Let a broker come back; its replicas are in sync again a moment later."""
        self.alive[broker], self.changed_s = True, self.now_s
        for each in self._every_partition():
            if each.leader == -1:
                self._lead(each)
            if each.leader != -1:
                back = set(each.replicas) - set(each.adding)
                each.in_sync |= {replica for replica in back if self.alive[replica]}
                self._complete(each)
        self._publish()

    def freeze_controller(self) -> None:
        self.frozen = True

    def thaw_controller(self) -> None:
        """Let the controller go on: first with the requests that have waited."""
        self.frozen = False

    def cancel_by_hand(self, place: Place) -> None:
        """Let an operator cancel a move of the plan, as `kafka-reassign-partitions --cancel`."""
        each = self.topics[place[0]][place[1]]
        if self.plan_rows.get(place) == each.target and self.cancel(place) is ACCEPTED:
            self._note_cancelled(place)

    def _note_cancelled(self, place: Place) -> None:
        self.cancelled.add(place)
        if (self.run_number, place) in self.known:
            self.never_again.add((self.run_number, place))

    def move_by_hand(self, place: Place, row: Replicas) -> None:
        """Let another tool move a partition that is not in flight."""
        each = self.topics[place[0]][place[1]]
        if not each.in_flight and row != self.plan_rows.get(place):
            self.touched.add(place)
            self._alter(place, row, may_resize=True)

    def move_rack(self, broker: int, rack: str) -> None:
        """Let a broker come back in another rack: what is to rest on it is not moved there."""
        self.racks[broker] = rack
        self.touched |= {place for place, row in self.plan_rows.items() if broker in row}

    def change_rate(self, rate: int | None) -> None:
        """Let an operator set another default rate: `moves rate`, and with 0 `moves pause`."""
        self.disturbed_s = self.now_s
        self.unset_by_hand |= rate is None
        self.rate_changes += 1
        self.rates = _mark_rate(rate)
        self._publish()

    def set_default(self, rate: int) -> None:
        """Let somebody set a default rate with Kafka's own tools, to stay."""
        self.rates = dict.fromkeys(SIDES, rate)
        self._publish()

    def list_by_hand(self, topic: str, entries: str | None) -> None:
        """Let another tool set the followers' list of a topic, or remove what it has set."""
        key = ThrottleSide.FOLLOWER.list_key
        now = {each for each in self.configs[topic].get(key, "").split(",") if each}
        now = now - self.strange.pop(topic, (set(), 0.0))[0]
        if entries is not None:
            self.strange[topic] = (set(entries.split(",")), self.now_s)
            now |= self.strange[topic][0]
        self.configs[topic].pop(key, None)
        if now:
            self.configs[topic][key] = "*" if "*" in now else ",".join(sorted(now))
        self._publish()

    @property
    def permanent(self) -> bool:
        """Whether the default rate is one that reconciler did not set."""
        rates = [self.rates[side] for side in SIDES if side in self.rates]
        return bool(rates) and self.rates != _mark_rate(min(rates))

    def delete_topic(self, topic: str) -> None:
        del self.topics[topic], self.ids[topic], self.configs[topic]
        self._publish()

    def recreate_topic(
        self, topic: str, rows: tuple[Replicas, ...], config: Mapping[str, str] | None = None
    ) -> None:
        """Let somebody delete a topic, and create another one of that name, without records."""
        self.delete_topic(topic)
        self.topics[topic] = [Partition(row, 0, set(row), row[0]) for row in rows]
        for each in self.topics[topic]:
            each.held = dict.fromkeys(each.replicas, 0.0)
        self.ids[topic] = f"another-{topic}"
        self.configs[topic] = dict(config or {})
        self.recreated[topic] = dict(config or {})
        self.touched |= {place for place in self.plan_rows if place[0] == topic}
        self._publish()

    def _every_partition(self) -> Iterator[Partition]:
        for partitions in self.topics.values():
            yield from partitions

    # -- what must never happen -------------------------------------------------------------------

    def _check_sent(self, place: Place, row: Replicas | None) -> None:
        topic, number = place
        if row is None and self.verb != "cancel":
            self.violations.append(f"a cancel of {place}")
        if not self.verb and (self.run_number, place) in self.never_again:
            self.violations.append(f"{place} was cancelled by hand, and is sent again")
        if topic not in self.topics:
            return
        if topic in self.recreated:
            self.violations.append(f"{topic} was created again, and {place} is sent")
            return
        each = self.topics[topic][number]
        planned = self.plan_rows.get(place)
        if each.in_flight and each.target != (planned if row is None else row):
            what = "a cancel of somebody else's move" if row is None else "a second target"
            self.violations.append(f"{what} for {place}")
        wanted = self.old_rows.get(place) if self.verb == "cancel" else planned
        if place in self.plan_rows and row not in (None, wanted):
            self.violations.append(f"{place} gets a row that is not in the plan")
        if row is not None and self.verb and set(row) != set(each.replicas):
            self.violations.append(f"{place} is moved by a {self.verb}")

    def _check_seats(self) -> None:
        ours = [
            (place, each)
            for place, row in self.plan_rows.items()
            if place[0] in self.topics
            and (each := self.topics[place[0]][place[1]]).adding
            and each.target == row
        ]
        # What gets no byte takes no seat; a run learns a moment later that it does again.
        calm = self.now_s - self.changed_s > DISTURBED_S
        if any(each.begun_late for _, each in ours) or not calm:
            return
        ours = [
            (place, each)
            for place, each in ours
            if each.leader != -1 and all(self.alive[broker] for broker in each.adding)
        ]
        copies = [broker for _, each in ours for broker in each.adding]
        if len(ours) > 1 and len(copies) > self.at_once_cluster:
            self.violations.append(f"{len(copies)} replicas at once: {[p for p, _ in ours]}")
        for broker in set(copies):
            taken = copies.count(broker)
            if taken > max(1, self.at_once_broker):
                self.violations.append(f"{taken} replicas at once to broker {broker}")

    def _check_lists(self, configs: Mapping[str, Mapping[str, str | None]], verb: str) -> None:
        """A run removes no entry of somebody else that it could see, and a settlement no `*`."""
        key = ThrottleSide.FOLLOWER.list_key
        for topic, (entries, since_s) in self.strange.items():
            is_seen = self.now_s - since_s > DISTURBED_S
            is_seen = is_seen and not (verb == "settle" and "*" not in entries)
            if is_seen and key in (values := configs.get(topic, {})):
                shown = set(self.configs[topic].get(key, "").split(","))
                if lost := entries & shown - set((values[key] or "").split(",")):
                    self.violations.append(f"{topic} loses {lost} of somebody else")

    def _check_slowed(self) -> None:
        """A run sets no rate that slows replicas which it does not move, as far as it could see."""
        busy = any(each.in_flight for each in self._every_partition())
        planned = {topic for topic, _ in self.plan_rows}
        for topic, (entries, since_s) in self.strange.items():
            is_seen = self.now_s - since_s > DISTURBED_S
            if is_seen and not busy and (topic not in planned or "*" in entries):
                self.violations.append(f"the rate slows the list {entries} of {topic}")

    def _check_throttled(
        self, topic: str, number: int, each: Partition, limits: tuple[int | None, int | None]
    ) -> None:
        ours = self.plan_rows.get((topic, number)) == each.target
        calm = self.now_s - self.disturbed_s > DISTURBED_S and not each.begun_late
        if ours and calm and None in limits and self.limited:
            self.violations.append(f"{topic} {number} copies without a throttle: {limits}")

    def _check_writable(self, topic: str) -> None:
        if self.broker_died or topic not in self.topics:
            return
        for number, each in enumerate(self.topics[topic]):
            if (topic, number) in self.touched:  # another tool lets it grow
                continue
            value = int(self._view(each.leader).configs[topic].get(MIN_INSYNC, "1"))
            if len(each.in_sync) < min(value, len(each.replicas)):
                self.violations.append(f"{topic} {number} refuses acks=all")


def _mark_rate(rate: int | None) -> dict[ThrottleSide, int]:
    """Return the rates that reconciler sets: followers get one byte more, but for a pause."""
    if rate is None:
        return {}
    return {ThrottleSide.LEADER: rate, ThrottleSide.FOLLOWER: rate + (rate > 0)}


def _list_lists(view: Image) -> Iterator[ThrottleList]:
    for topic, values in view.configs.items():
        for side in SIDES:
            if side.list_key in values:
                yield ThrottleList(topic, side, values[side.list_key])


def _silent() -> ClusterError:
    return ClusterError([Finding("connect-lost", "no broker answers", "wait")])
