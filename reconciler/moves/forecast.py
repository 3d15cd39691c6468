"""What a plan of moves costs: bytes, time at its rate, the least rate, and the fullest disks.

Everything follows from the images, from the sizes and write rates of partitions, and from the log
directories of the brokers, as they were read. Bytes come from the leader of each partition.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, nlargest
from math import ceil

from reconciler.model.cluster import ClusterState, LogDirectory, Place, TopicState
from reconciler.model.moves import (
    UNLIMITED,
    BrokerTraffic,
    DirectoryCopy,
    DirectoryPeak,
    Forecast,
    MovePolicy,
    read_default,
)
from reconciler.model.plan import Plan, PlannedTopic
from reconciler.model.steps import steps_of
from reconciler.moves.copying import Event, count_followers, play_moves
from reconciler.moves.window import RowMove, order_moves

RESERVE = 1.5
"""The least rate is this many times the writes that share it: the rest is left for copies."""

DELETE_DELAY_S = 60
"""Brokers delete the files of a dropped replica this much later: `file.delete.delay.ms`."""


def forecast_moves(plan: Plan, state: ClusterState) -> Forecast:
    """Forecast what the moves of a plan cost. Same input, same forecast.

    In: a plan with `moves`, and the state that it is based on. A partition whose write rate is not
    known counts as the fastest one of its topic. If no rate of a topic is known, `least_rate` is
    None, and the time leaves out its writes. Peaks reserve the entire size of a replica when its
    copy starts. Where there is no time, nothing is freed. Growth by ordinary writes is left out:
    retention deletes as much.
    """
    if plan.moves is None:
        raise ValueError("the plan has no moves")
    policy, default = plan.moves.policy, read_default(state.throttle_rates)
    rate, theirs = policy.rate_bytes_per_s, None
    if default is not None and not default.is_of_moves:
        rate = theirs = default.bytes_per_s if default.bytes_per_s < UNLIMITED else None
    moves = list_row_moves(plan, state)
    queue = order_moves(moves, measure_fullness(state.directories), find_urgent(moves, state))
    unknown = sum(move.size < 0 for move in moves if move.adding)
    seconds, events = None, [Event(0.0, move, ends=False) for move in queue]
    if rate and not unknown:
        seconds, played = play_moves(queue, policy, rate)
        events = events if seconds is None else played
    names = [topic.name for topic in plan.topics if steps_of(topic)]
    between = plan.moves.directories.copies if plan.moves.directories else ()
    if between and rate and policy.rate_bytes_per_s and not unknown:
        seconds = max(seconds or 0, _time_directories(between, policy.rate_bytes_per_s))
    return Forecast(
        copied_bytes=sum(max(move.size, 0) * len(move.adding) for move in moves)
        + sum(copy.size_bytes for copy in between),
        sizes={name: _list_sizes(state.topics.get(name)) for name in names},
        unknown=unknown,
        seconds=seconds,
        default_rate=theirs,
        least_rate=_find_least_rate(moves, between, policy, state),
        traffic=tuple(_add_up_traffic(moves)),
        peaks=(
            *_find_peaks(events, state.directories),
            *_find_directory_peaks(between, state.directories),
        ),
    )


def _time_directories(copies: Iterable[DirectoryCopy], rate: int) -> int:
    """Return the seconds until the last broker has copied all: each has the rate for itself."""
    total: Counter[int] = Counter()
    for copy in copies:
        total[copy.broker] += copy.size_bytes
    return ceil(max(total.values(), default=0) / rate)


def _find_directory_peaks(
    copies: Iterable[DirectoryCopy], directories: Mapping[int, Collection[LogDirectory]]
) -> Iterator[DirectoryPeak]:
    """Yield the peaks of directories that get replicas of others, as if nothing left them."""
    arriving: Counter[tuple[int, str]] = Counter()
    for copy in copies:
        arriving[copy.broker, copy.target] += copy.size_bytes
    for broker in sorted({broker for broker, _ in arriving}):
        for path, total, used in _list_used(directories.get(broker, ())):
            if (broker, path) in arriving:
                peak = used + arriving[broker, path]
                yield DirectoryPeak(broker, path, total, used, peak)


def list_row_moves(plan: Plan, state: ClusterState) -> list[RowMove]:
    """List the partitions of a plan whose replicas differ, by topic and partition."""
    return [move for topic in plan.topics for move in _list_rows(topic, state)]


def _list_rows(topic: PlannedTopic, state: ClusterState) -> Iterator[RowMove]:
    live = state.topics.get(topic.name)
    if topic.before is None or topic.after is None or topic.refusals or live is None:
        return
    alive = {broker.id for broker in state.brokers if broker.alive}
    sizes, rates = _list_sizes(live), _list_rates(live)
    pairs = zip(topic.before.assignment, topic.after.assignment, strict=False)
    for number, (old, new) in enumerate(pairs):
        if set(old) == set(new):
            continue
        leader = next((broker for broker in old if broker in alive), -1)
        if number < len(live.leaders):
            leader = live.leaders[number]
        yield RowMove(
            place=(topic.name, number),
            old=old,
            new=new,
            leader=leader,
            size=sizes[number] if number < len(sizes) else -1,
            rate=max(0, rates[number]) if number < len(rates) else 0,
            internal=live.internal,
        )


def find_urgent(moves: Iterable[RowMove], state: ClusterState) -> set[Place]:
    """Return the partitions that lack a copy: on a dead broker, or not in sync."""
    alive = {broker.id for broker in state.brokers if broker.alive}
    urgent = set()
    for move in moves:
        name, number = move.place
        in_sync = state.topics[name].in_sync
        synced = set(in_sync[number]) if number < len(in_sync) else set(move.old)
        if not set(move.old) <= alive & synced:
            urgent.add(move.place)
    return urgent


def measure_fullness(
    directories: Mapping[int, Sequence[LogDirectory]],
) -> dict[int, float]:
    """Return the share of use of the fullest log directory of each broker that tells."""
    return {
        broker: max(shares)
        for broker, each in directories.items()
        if (shares := [used / total for _, total, used in _list_used(each) if total])
    }


def _list_sizes(live: TopicState | None) -> tuple[int, ...]:
    if live is None:
        return ()
    return live.size_bytes or (-1,) * len(live.assignment)


def _list_rates(live: TopicState) -> tuple[int, ...]:
    """Return the write rate of each partition: an unknown one as the topic's fastest, else -1."""
    known = live.write_bytes_per_s or (-1,) * len(live.assignment)
    fastest = max(known, default=-1)
    return tuple(fastest if rate < 0 else rate for rate in known)


def _find_least_rate(
    moves: Sequence[RowMove],
    between: Iterable[DirectoryCopy],
    policy: MovePolicy,
    state: ClusterState,
) -> int | None:
    """Return the rate that copies need, whichever rows are in flight together.

    A leader sends each write to every follower, and these count in its rate. So the partitions of
    one broker that are written fastest are counted, as many as may be in flight there.
    """
    copied = [move for move in moves if move.adding]
    if any(max(_list_rates(state.topics[move.place[0]]), default=-1) < 0 for move in copied):
        return None
    sent, received = defaultdict(list), defaultdict(list)
    for move in copied:
        sent[move.leader].append(move.rate * count_followers(move))
        for broker in move.adding:
            received[broker].append(move.rate)
    within = defaultdict(list)
    for copy in between:  # a copy in another directory takes each write as well
        known = _list_rates(state.topics[copy.topic])
        if max(known, default=-1) < 0:
            return None
        within[copy.broker].append(max(0, known[copy.partition]))
    written = (
        sum(nlargest(policy.at_once_broker, rates))
        for rates in (*sent.values(), *received.values(), *within.values())
    )
    return ceil(RESERVE * max(written, default=0))


def _add_up_traffic(moves: Iterable[RowMove]) -> Iterator[BrokerTraffic]:
    """Yield what each broker receives and sends, by id; brokers without traffic are omitted."""
    received: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    for move in moves:
        size = max(move.size, 0)
        for broker in move.adding:
            received[broker] += size
            if move.leader >= 0:
                sent[move.leader] += size
    for broker in sorted({*received, *sent}):
        yield BrokerTraffic(broker, received[broker], sent[broker])


@dataclass(slots=True)
class _Disk:
    """A log directory while replicas move. Units: bytes."""

    path: str
    total: int
    used: int
    replicas: int | None
    now: int = 0
    peak: int = 0


def _choose_disk(disks: Sequence[_Disk]) -> _Disk:
    """Return the directory that gets a new replica: by Kafka's rule, the one with the fewest.

    If counts are unknown or equal, it is the one with the least room: an upper bound.
    """
    counts = [disk.replicas for disk in disks if disk.replicas is not None]
    if len(counts) == len(disks):
        disks = [disk for disk in disks if disk.replicas == min(counts)]
    return min(disks, key=lambda disk: disk.total - disk.now)


def _find_peaks(
    events: Iterable[Event], directories: Mapping[int, Collection[LogDirectory]]
) -> Iterator[DirectoryPeak]:
    """Yield the peak of each log directory of the brokers that receive replicas."""
    brokers: dict[int, list[_Disk]] = {}
    freed: list[tuple[float, int, int, int]] = []
    receiving = set()
    for broker, held in directories.items():
        counts = {directory.path: directory.replicas for directory in held}
        brokers[broker] = [
            _Disk(path, total, used, counts[path], used, used)
            for path, total, used in _list_used(held)
        ]
    for number, event in enumerate(events):
        while freed and freed[0][0] <= event.seconds:
            _, _, broker, size = heappop(freed)
            brokers[broker][0].now -= size
        move, size = event.move, max(event.move.size, 0)
        if event.ends:
            for broker in move.removing:
                # Of several directories, nobody knows which one held it. One may be offline.
                if brokers.get(broker) and len(directories[broker]) == 1:
                    due = event.seconds + DELETE_DELAY_S
                    heappush(freed, (due, number, broker, size))
            continue
        for broker in move.adding:
            receiving.add(broker)
            if disks := brokers.get(broker):
                disk = _choose_disk(disks)
                disk.now += size
                disk.peak = max(disk.peak, disk.now)
                disk.replicas = None if disk.replicas is None else disk.replicas + 1
    for broker in sorted(receiving & brokers.keys()):
        for disk in brokers[broker]:
            yield DirectoryPeak(broker, disk.path, disk.total, disk.used, disk.peak)


def _list_used(directories: Iterable[LogDirectory]) -> Iterator[tuple[str, int, int]]:
    """Yield the path, size and use of each directory whose broker tells. Units: bytes."""
    for each in directories:
        if each.total_bytes is not None and each.usable_bytes is not None:
            yield each.path, each.total_bytes, each.total_bytes - each.usable_bytes
