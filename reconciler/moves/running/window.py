"""Which rows may begin now: seats, room on disks, living brokers, and the time that is left.

A sliding window without a barrier: one partition of 500 GiB does not block the free slots. What
is blocked is remembered, so that a run ends that nothing can bring further.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.model.cluster import INTERNAL_TOPICS, Place
from reconciler.model.moves import MIN_INSYNC, Forecast, MovePolicy, MovesReading
from reconciler.moves.forecast import measure_fullness
from reconciler.moves.running.health import Health
from reconciler.moves.running.notes import Observe, note
from reconciler.moves.running.relocations import QUOTA_S
from reconciler.moves.running.rows import TOO_LATE, Row, Rows
from reconciler.moves.window import RowMove, Seats, order_moves
from reconciler.run.events import MovesNote
from reconciler.units import approximate_duration, approximate_size, count

NO_LEADER = "the partition has no leader"

MOST_LISTED = 32_767
"""The bytes that a config holds: controllers refuse a longer one (ConfigurationControlManager)."""

NAMED = 3

BLOCKED_S = 60.0


def find_size(row: Row, reading: MovesReading, forecast: Forecast | None) -> int:
    """Return the bytes of a partition: of its leader, its largest replica, or as forecast.

    0 if nothing is known.
    """
    held = [
        size
        for broker in (row.leader, *row.before)
        if (size := reading.sizes.get(broker, {}).get(row.place)) is not None
    ]
    if row.leader in reading.sizes and held:
        return held[0]
    if held:
        return max(held)
    topic, partition = row.place
    sizes = forecast.sizes.get(topic, ()) if forecast else ()
    return max(0, sizes[partition]) if partition < len(sizes) else 0


def measure_entries(row: Row) -> int:
    """Return the bytes of a row in the longer one of its throttle lists, that of the leaders."""
    if not row.adding:
        return 0
    return sum(len(f"{row.place[1]}:{broker},") for broker in row.brokers)


@dataclass(slots=True)
class Window:
    """The replicas that are being copied now, and the bytes that they still need.

    `to_take` and `to_send` are bytes by broker. `others` and `listed` have the bytes of the longer
    throttle list by topic, of others and of these rows; `full` are the topics whose lists had no
    room for a row.
    """

    policy: MovePolicy
    others: Mapping[str, int] = field(default_factory=dict)
    listed: Counter[str] = field(default_factory=Counter)
    full: set[str] = field(default_factory=set)
    seats: Seats = field(init=False)
    to_take: Counter[int] = field(default_factory=Counter)
    to_send: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.seats = Seats(self.policy)

    def add(self, row: Row, size: int, reading: MovesReading, *, stuck: bool = False) -> None:
        """Give a row its seats. One that is `stuck` needs none, so that the others go on."""
        if not stuck:
            self.seats.take(restate(row, size))
        self.listed[row.place[0]] += measure_entries(row)
        for broker in row.adding:
            left = max(0, size - reading.sizes.get(broker, {}).get(row.place, 0))
            self.to_take[broker] += left
            self.to_send[row.leader] += left

    def has_room(self, row: Row) -> bool:
        """Return whether the throttle lists of a topic can name one more row."""
        topic, needed = row.place[0], measure_entries(row)
        taken = self.others.get(topic, 0) + self.listed[topic]
        if not needed or taken + needed <= MOST_LISTED:
            return True
        self.full.add(topic)
        return False

    def find_full_disk(self, row: Row, size: int, reading: MovesReading) -> str:
        """Name a log directory that would have less than `keep_free`; empty if none would.

        Of several directories the fullest counts: the broker chooses, and not by free space.
        """
        for broker in row.adding:
            for each in reading.directories.get(broker, ()):
                if each.total_bytes is None or each.usable_bytes is None:
                    continue
                free = each.usable_bytes - self.to_take[broker] - size
                least = each.total_bytes * self.policy.keep_free_percent // 100
                if free < least:
                    return (
                        f"{each.path} of broker {broker} would have "
                        f"{approximate_size(max(0, free))} free, less than the "
                        f"{self.policy.keep_free_percent} % of keep_free"
                    )
        return ""

    def estimate_s(self, row: Row, size: int, rate: int | None) -> float:
        """Return the seconds until a row would have ended that begins now; 0 without a rate."""
        if not rate or not row.adding:
            return 0.0
        taken = max(self.to_take[broker] + size for broker in row.adding)
        sent = self.to_send[row.leader] + size * len(row.adding)
        return QUOTA_S + max(taken, sent) / rate


@dataclass(frozen=True, slots=True)
class Limits:
    """What decides about beginning a row, besides seats.

    `rate` is in bytes per second and broker, None if it is not known. `seconds_left` is None
    without an end.
    """

    rate: int | None
    seconds_left: float | None
    health: Health


def _find_bare(row: Row, alive: set[int], health: Health) -> str:
    """Say that too few of the replicas that stay are in sync; empty if a copy brings others.

    The plan refused such rows, and replicas may have died since.
    """
    if row.adding or row.shown is None:
        return ""
    synced = alive.intersection(row.shown.in_sync)
    kept = len(synced.intersection(row.after))
    needed = health.min_insync.get(row.place[0], health.least)
    if kept == 0 and synced:
        return "no replica that stays is alive and in sync"
    if kept < min(needed, len(row.after)) and len(synced) >= min(needed, len(row.before)):
        return f"fewer of the replicas that stay are in sync than {MIN_INSYNC} {needed}"
    return ""


def choose_rows(
    waiting: Iterable[Row],
    window: Window,
    reading: MovesReading,
    forecast: Forecast | None,
    limits: Limits,
    prepared: Collection[Place] = (),
) -> tuple[list[Row], Mapping[Place, str]]:
    """Choose the rows that begin now. Returns: those, and why others cannot, by place.

    A row that only has no seat has no reason: it waits for its turn. The order and the seats are
    those of the forecast, but `prepared` rows come first: their throttles are on the way to the
    brokers, and one that shows them late would also show late that they are gone again.
    """
    alive = {broker.id for broker in reading.brokers if broker.alive}
    cordoned = {broker.id for broker in reading.brokers if broker.cordoned}
    sizes = {row.place: find_size(row, reading, forecast) for row in waiting}
    empty = Window(window.policy)
    chosen: list[Row] = []
    blocked: dict[Place, str] = {}

    by_place = {row.place: row for row in waiting}
    moves = [restate(row, sizes[row.place]) for row in by_place.values()]
    fullness = measure_fullness(reading.directories)
    ordered = order_moves(moves, fullness, _find_urgent(by_place.values()))
    for move in sorted(ordered, key=lambda each: each.place not in prepared):
        row = by_place[move.place]
        size = sizes[row.place]
        dead = sorted(set(row.adding) - alive)
        seconds = window.estimate_s(row, size, limits.rate)
        alone_s = empty.estimate_s(row, size, limits.rate)
        if dead:
            blocked[row.place] = f"broker {dead[0]} is not alive"
        elif bare := _find_bare(row, alive, limits.health):
            blocked[row.place] = bare
        elif closed := sorted(set(row.adding) & cordoned):
            blocked[row.place] = f"broker {closed[0]} is cordoned"
        elif row.leader == -1:
            blocked[row.place] = NO_LEADER
        elif full := window.find_full_disk(row, size, reading):
            blocked[row.place] = full
        elif not window.listed[row.place[0]] and not window.has_room(row):
            blocked[row.place] = "the throttle lists of its topic are full of entries of others"
        elif limits.seconds_left is not None and alone_s > max(0.0, limits.seconds_left):
            needed = approximate_duration(alone_s)
            blocked[row.place] = f"it needs about {needed}, {TOO_LATE}"
        elif (
            window.seats.fits(move)
            and window.has_room(row)
            and (limits.seconds_left is None or seconds <= limits.seconds_left)
        ):
            window.add(row, size, reading)
            chosen.append(row)
    return chosen, blocked


def _find_urgent(rows: Iterable[Row]) -> set[Place]:
    """Return the partitions that lack a copy."""
    return {
        row.place
        for row in rows
        if row.shown is None or len(row.shown.in_sync) < len(row.shown.replicas)
    }


def restate(row: Row, size: int) -> RowMove:
    """Restate a row as the forecast knows it."""
    internal = row.place[0] in INTERNAL_TOPICS
    return RowMove(row.place, row.before, row.after, row.leader, size, internal=internal)


def find_stuck(flying: Iterable[Row], reading: MovesReading) -> dict[Place, str]:
    """Say which copies in flight get no further, and why, by place.

    Kafka keeps such a move until the broker is back, or until it is cancelled.
    """
    alive = {broker.id for broker in reading.brokers if broker.alive}
    stuck = {}
    for row in flying:
        if dead := sorted(set(row.adding) - alive):
            stuck[row.place] = f"broker {dead[0]} is not alive"
        elif row.adding and row.leader == -1:
            stuck[row.place] = NO_LEADER
    return stuck


def explain(obstacles: Iterable[str]) -> list[str]:
    """Say what blocks partitions, with their number by cause, the largest first."""
    causes = Counter(obstacles)
    said = [
        f"{why}: {count(number, 'partition')} cannot be moved"
        for why, number in sorted(causes.items(), key=lambda item: (-item[1], item[0]))
    ]
    more = [count(len(said) - NAMED, "more reason")] if len(said) > NAMED else []
    return [*said[:NAMED], *more]


@dataclass(slots=True)
class Blocked:
    """Remembers which rows cannot begin or go on, and since when.

    `reasons` says why rows cannot begin, as `choose_rows` returns it, and `stuck` why rows in
    flight cannot go on; both by place.
    """

    rows: Rows
    observe: Observe
    reasons: Mapping[Place, str] = field(default_factory=dict)
    stuck: Mapping[Place, str] = field(default_factory=dict)
    since_s: dict[Place, float] = field(default_factory=dict)
    full: set[str] = field(default_factory=set)

    def say_full(self, topics: Iterable[str]) -> None:
        """Say once of a topic that its throttle lists are full: they bound what begins."""
        for topic in sorted(set(topics) - self.full):
            self.full.add(topic)
            what = f"the throttle lists of {topic} are as long as a config may be"
            text = f"{what}, {MOST_LISTED:,} bytes: its other partitions wait, whatever at_once is"
            note(self.observe, MovesNote.BLOCKED, text)

    def update(self, reasons: Mapping[Place, str], stuck: Mapping[Place, str], now: float) -> None:
        """Take the reasons of a step, and say what is new."""
        before, self.reasons, self.stuck = self.since_s, reasons, stuck
        obstacles = self.obstacles
        self.since_s = {place: before.get(place, now) for place in obstacles}
        fresh: dict[str, list[Place]] = {}
        for place, why in obstacles.items():
            if place not in before:
                fresh.setdefault(why, []).append(place)
        for why, (first, *others) in fresh.items():
            row = None if others else self.rows.by_place[first]
            more = f": {count(1 + len(others), 'partition')} cannot be moved" if others else ""
            note(self.observe, MovesNote.BLOCKED, f"{why}{more}", row)

    @property
    def obstacles(self) -> dict[Place, str]:
        """Why rows can neither begin nor go on, by place."""
        return {**self.reasons, **self.stuck}

    def cannot_progress(self, waiting: Sequence[Row], flying: Sequence[Row], now: float) -> bool:
        """Return whether no row can begin or end: all are blocked or stuck for BLOCKED_S."""
        since = dict(self.since_s)
        since |= {place: 0.0 for place, why in self.reasons.items() if why.endswith(TOO_LATE)}
        return all(now - since.get(row.place, now) >= BLOCKED_S for row in (*waiting, *flying))
