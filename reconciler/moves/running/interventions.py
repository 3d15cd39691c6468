"""Interventions in moves of any tool: another rate, a settlement, and the removal of throttles.

Each takes steps as a run does: read, and write what is not shown yet. An answer says only whether
it was refused; what counts is what the brokers show.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.errors import ClusterError, Finding, LockLostError
from reconciler.model.cluster import RateSource, ThrottleSide
from reconciler.model.moves import DIRECTORY_RATE, MIN_INSYNC, DefaultRate, MovesReading
from reconciler.model.outcomes import Answer, AnswerKind
from reconciler.model.throttles import Leftover
from reconciler.moves.decisions import (
    Settlement,
    Unsettled,
    find_effect,
    find_settlement,
    find_traces,
)
from reconciler.moves.progress import MovesReport, measure_moves
from reconciler.moves.running.throttle import is_rate_gone, is_rate_shown
from reconciler.moves.throttles import choose_removals
from reconciler.rulebook import spell_page
from reconciler.run.ports import Clock, ClusterMover, ClusterReader, Lease

AT_ONCE = 500
"""Topics in one request: well below the 10,000 records that a controller accepts."""

TRIES = 3
VISIBLE_S = 30.0
"""How long the effect of a write is waited for."""

REWRITE_S = 10.0
LAGGING_S = 10.0
"""How long a trace may be one of a view that is late, at most."""

POLL_S = 0.5
WATCH_S = 5.0
SILENT_S = 60.0
RATE = "the throttle rate"

NO_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"


def take_steps(step: Callable[[], float | None], clock: Clock) -> None:
    """Take steps until one returns None, else the seconds to wait before the next.

    A cluster that does not answer is asked again. Errors: ClusterError after SILENT_S of silence;
    LockLostError at once.
    """
    silent_since_s = None
    while True:
        try:
            pause_s = step()
            silent_since_s = None
        except LockLostError:
            raise
        except ClusterError:
            now = clock.monotonic()
            silent_since_s = now if silent_since_s is None else silent_since_s
            if now - silent_since_s >= SILENT_S:
                raise
            pause_s = POLL_S
        if pause_s is None:
            return
        clock.sleep(pause_s)


@dataclass(frozen=True, slots=True)
class Leases:
    """Several locks, all of which an intervention must hold; implements Lease."""

    held: tuple[Lease, ...] = ()

    def check(self) -> None:
        """Check each. Errors: LockLostError."""
        for lease in self.held:
            lease.check()


@dataclass(slots=True)
class Requests:
    """Writes something until it is shown: at most TRIES times, and not while it may be under way.

    `last` has the time of the last request, their number and its answer, by the name of what was
    asked for, and `refused` the answers that say that nothing will be done.
    """

    clock: Clock
    lease: Lease
    last: dict[str, tuple[float, int, AnswerKind]] = field(default_factory=dict)
    refused: dict[str, Answer] = field(default_factory=dict)
    changed_s: float = 0.0

    def __post_init__(self) -> None:
        self.changed_s = self.clock.monotonic()

    def is_due(self, name: str) -> bool:
        """Return whether to ask for something now."""
        at_s, tries, kind = self.last.get(name, (0.0, 0, AnswerKind.NOT_DONE))
        if kind is AnswerKind.REFUSED or tries >= TRIES:
            return False
        return kind is AnswerKind.NOT_DONE or self.clock.monotonic() - at_s >= REWRITE_S

    def send(self, name: str, ask: Callable[[], Answer]) -> None:
        """Ask for something if it is due. Errors: LockLostError."""
        if self.is_due(name):
            self.lease.check()
            self._note(name, ask())

    def unset_lists(self, mover: ClusterMover, topics: Iterable[str]) -> None:
        """Remove the lists of topics. One that is gone has none. Errors: LockLostError."""
        unset = dict.fromkeys((side.list_key for side in ThrottleSide), None)
        due = [topic for topic in topics if self.is_due(topic)]
        for first in range(0, len(due), AT_ONCE):
            self.lease.check()
            answers = mover.configure(dict.fromkeys(due[first : first + AT_ONCE], unset))
            for topic, answer in answers.items():
                self._note(topic, answer)

    def _note(self, name: str, answer: Answer) -> None:
        self.changed_s = self.clock.monotonic()
        _, tries, _ = self.last.get(name, (0.0, 0, None))
        self.last[name] = (self.changed_s, tries + 1, answer.kind)
        if answer.kind is AnswerKind.REFUSED and answer.error != NO_TOPIC:
            self.refused[name] = answer

    def wait(self, patience_s: float = VISIBLE_S) -> float | None:
        """Return the seconds until another look; None if the effect is not waited for any more."""
        late = self.clock.monotonic() - self.changed_s >= patience_s
        return None if late or self.refused else POLL_S

    def check(self) -> None:
        """Raise a finding for each refusal. Errors: ClusterError."""
        page = spell_page("reference/permissions", "runs-of-moves")
        way_out = f"check the rights of the account ({page}) and the brokers' logs"
        findings = [
            Finding(
                "cluster-answer", f"{name} cannot be changed: {each.error}: {each.text}", way_out
            )
            for name, each in self.refused.items()
        ]
        if findings:
            raise ClusterError(findings)


def set_rate(
    mover: ClusterMover, clock: Clock, bytes_per_s: int, *, permanent: bool = False
) -> tuple[MovesReading, bool]:
    """Set the cluster default of both rates. No run removes one that is `permanent`.

    No lock is taken, so that this reaches a run that holds them. It is asked for again only while
    brokers show the rate from before: any other was set by another tool or run since.
    Returns: a reading, and whether every broker without a rate of its own shows the new one.
    Errors: ClusterError if it is refused, or if somebody has set a rate that is to stay.
    """
    wanted = DefaultRate.of_moves(bytes_per_s)
    if permanent:
        wanted = DefaultRate(bytes_per_s, bytes_per_s)
    found: list[MovesReading] = []  # the last one

    def read() -> None:
        found[:] = [mover.read(())]

    take_steps(read, clock)
    before = found[0].default_rate
    if bytes_per_s and not permanent and before is not None and not before.is_of_moves:
        what = "somebody has set a throttle rate meanwhile, which must stay after the moves"
        way_out = "nothing was changed; run the same command again"
        raise ClusterError([Finding("moves-rate-taken", what, way_out)])
    requests = Requests(clock, Leases())

    def step() -> float | None:
        if found[0].default_rate == before:
            requests.send(RATE, lambda: mover.set_rate(bytes_per_s, permanent=permanent))
        read()
        return None if is_rate_shown(found[0], wanted) else requests.wait()

    take_steps(step, clock)
    requests.check()
    return found[0], is_rate_shown(found[0], wanted)


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of a settlement: what was removed, what is left, and why it stopped waiting.

    `traces` are what only the plan, or a person, can put right.
    """

    topics: tuple[str, ...]
    rate_removed: bool
    left: Settlement
    traces: tuple[Unsettled, ...]
    stopped: str = ""
    directory_rate_removed: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether nothing of moves is left on the cluster, as far as it can be seen."""
        left = self.left
        throttles = left.removable or left.kept or left.rate_used or left.directory_rate
        return not (left.is_awaited or throttles or self.traces or self.stopped)


@dataclass(slots=True)
class Settling:
    """A settlement: waits for moves that name their replicas, then removes what nothing uses.

    `lease` is the lock of moves, and `writing` holds that of applies while throttles are removed.
    `specified` has min.insync.replicas by topic as specs have it. `moved` are the topics of what
    was in flight or throttled, `unset` those whose lists were removed.
    """

    reader: ClusterReader
    mover: ClusterMover
    clock: Clock
    observe: Callable[[MovesReport], None]
    lease: Lease
    writing: Callable[[], AbstractContextManager[Lease]]
    specified: Mapping[str, str]
    stop_after_s: float | None
    first: MovesReading | None = None
    last: MovesReading = field(init=False)
    moved: set[str] = field(default_factory=set)
    unset: set[str] = field(default_factory=set)
    rate_unset: bool = False
    directory_rate_unset: bool = False
    traces: tuple[Unsettled, ...] = ()
    stopped: str = ""

    def work(self) -> Settled:
        """Settle. Moves of others are not waited for, and the throttles that they use stay.

        Errors: ClusterError, also if a broker refuses; LockHeldError; LockLostError.
        """
        started_s = self.clock.monotonic()
        while True:
            take_steps(partial(self._await_moves, started_s), self.clock)
            with self.writing() as lease:
                requests = Requests(self.clock, Leases((self.lease, lease)))
                take_steps(partial(self._remove, requests), self.clock)
            requests.check()
            left = find_settlement(self.last)
            if self.stopped or not left.is_awaited:
                break
        topics = tuple(sorted(self.unset - {each.topic for each in self.last.lists}))
        return Settled(
            topics,
            self.rate_unset and is_rate_gone(self.last),
            left,
            self.traces,
            self.stopped,
            self.directory_rate_unset and self.last.own_directory_rate is None,
        )

    def _await_moves(self, started_s: float) -> float | None:
        """Look at what is in flight. Returns: the seconds to the next look; None if to go on."""
        reading = self.mover.read(())
        found = find_settlement(reading)
        self.moved |= {each.topic for each in found.awaited}
        passed_s = self.clock.monotonic() - started_s
        if not found.is_awaited:
            return None
        if find_effect(reading).rate == 0:
            self.stopped = "moves are paused: the throttle rate is 0"
        elif self.stop_after_s is not None and passed_s >= self.stop_after_s:
            self.stopped = "the time of --stop-after is over"
        else:
            self.observe(measure_moves(reading, self.first))
            self.first = self.first or reading
            return WATCH_S
        return None

    def _remove(self, requests: Requests) -> float | None:
        """Remove what nothing uses. What brokers show differently was set a moment ago: it waits.

        Returns: the seconds to the next look; None if nothing is left, or too long.
        """
        reading = self.last = self.mover.read(())
        found = find_settlement(reading)
        self.moved |= set(found.topics)
        passing = self._list_passing(reading, {*found.topics, *self.unset})
        due = [topic for topic in found.topics if topic not in passing]
        self.unset |= set(due)
        requests.unset_lists(self.mover, due)
        default = reading.default_rate
        if found.removes_rate and default is not None and _is_shown_alike(reading, default):
            self.rate_unset = True
            requests.send(RATE, lambda: self.mover.set_rate(None))
        if found.removes_directory_rate:
            self.directory_rate_unset = True
            requests.send(DIRECTORY_RATE, lambda: self.mover.set_directory_rate(None))
        rate_left = self.rate_unset and default is None and not is_rate_gone(reading)
        rate_left |= found.removes_directory_rate
        if found.removable or passing or rate_left:
            return requests.wait()
        self.traces = tuple(self._find_traces(reading))
        return requests.wait(LAGGING_S) if self.traces else None

    def _list_passing(self, reading: MovesReading, topics: Collection[str]) -> set[str]:
        """List the topics of which a broker shows other lists than the reading."""
        named = sorted(topics)
        now = {each for each in reading.lists if each.topic in topics}
        views = self.mover.read_lists(named).values() if named else ()
        return {each.topic for view in views for each in now.symmetric_difference(view)}

    def _find_traces(self, reading: MovesReading) -> Iterator[Unsettled]:
        """Find uneven rows, other leaders, and min.insync.replicas below the spec."""
        moved = self.moved - {each.topic for each in reading.reassignments}
        yield from find_traces(reading, moved, reading.cluster)
        named = sorted(moved & reading.partitions.keys() & self.specified.keys())
        for view in list(self.reader.read_views(named, named).values())[:1] if named else ():
            for topic, state in sorted(view.items()):
                live, wanted = state.config.get(MIN_INSYNC), self.specified[topic]
                if live is not None and int(live) < int(wanted):
                    what = f"{MIN_INSYNC} is {live}, and its spec says {wanted}"
                    yield Unsettled(topic, what, "apply the plan of moves again, or the spec")


def _is_shown_alike(reading: MovesReading, default: DefaultRate) -> bool:
    """Return whether no broker shows another default rate, which somebody set a moment ago."""
    shown = (each for each in reading.rates if each.source is RateSource.CLUSTER_DEFAULT)
    return all(each.bytes_per_s == default.of_side(each.side) for each in shown)


def remove_throttles(
    mover: ClusterMover, clock: Clock, lease: Lease, chosen: Sequence[Leftover]
) -> tuple[Leftover, ...]:
    """Remove throttles that nothing uses. Returns: those that a broker still shows.

    `lease` is the lock of applies alone: they are not those of a run of moves, which may be under
    way. Errors: ClusterError if what was chosen has changed since, if something uses it now, or if
    it is refused; LockLostError.
    """
    topics = [each.topic for each in chosen if each.topic is not None]
    brokers = [each.broker for each in chosen if each.broker is not None]
    of_all = len(chosen) > len(topics) + len(brokers)
    requests = Requests(clock, lease)
    left = tuple(chosen)
    # Whoever approved may have taken his time, and lists are removed as a whole.
    now, wrong = choose_removals(mover.read(()), topics, brokers, of_all=of_all)
    if wrong or now != left:
        what = "; ".join(wrong) or "these throttles have other values now"
        way_out = "nothing was removed; run the same command again"
        raise ClusterError([Finding("plan-stale", what, way_out)])

    def step() -> float | None:
        nonlocal left
        requests.unset_lists(mover, [each.topic for each in left if each.topic is not None])
        for each in left:
            if each.broker is not None:
                name = f"{RATE} of broker {each.broker}"
                requests.send(name, partial(mover.unset_rates, each.broker))
            elif each.topic is None:
                requests.send(RATE, partial(mover.set_rate, None))
        reading = mover.read(())
        shown = {*reading.rates, *reading.lists}
        shown |= {each for view in mover.read_lists(topics).values() for each in view}
        # A broker that is late shows the default as its own.
        shown |= {
            replace(each, broker=None)
            for each in reading.rates
            if each.source is RateSource.CLUSTER_DEFAULT
        }
        left = tuple(each for each in left if not shown.isdisjoint(each.throttles))
        return requests.wait() if left else None

    take_steps(step, clock)
    requests.check()
    return left
