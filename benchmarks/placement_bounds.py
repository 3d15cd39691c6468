"""The least max − min that is possible, and the fewest leaders that one broker takes over. Both
are counted without any solver.

Each bound is on its own: a placement that reaches one may have to miss another.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from reconciler.model.cluster import Assignment, Broker
from reconciler.placement.problem import Problem, Wish, count_load


@dataclass(frozen=True, slots=True)
class Room:
    """What a rack may take: its brokers' loads now, and how many new ones it has to get."""

    held: tuple[int, ...]
    least: int
    most: int


def bound_topics(problem: Problem) -> tuple[int, int]:
    """Return the least max − min of leaders and of replicas of the worst topic."""
    bounds = [_bound_topic(problem, wish) for wish in problem.wishes]
    return max(leaders for leaders, _ in bounds), max(replicas for _, replicas in bounds)


def bound_cluster(problem: Problem) -> tuple[int, int]:
    """Return the least max − min of the cluster, whatever that would do to the topics."""
    count = sum(wish.count for wish in problem.wishes)
    bounds: Counter[str] = Counter()
    limits: Counter[str] = Counter()
    for wish in problem.wishes:
        for rack, (least, most) in _share(problem, wish).items():
            bounds[rack] += least * wish.count
            limits[rack] += most * wish.count
    total = sum(wish.count * wish.replication for wish in problem.wishes)
    racks = _racks(problem)
    led = _load(racks, problem.leaders)
    held = _load(racks, problem.replicas)
    rooms = tuple(Room(held[rack], bounds[rack], limits[rack]) for rack in racks)
    return _bound_leaders(led, count), least_skew(rooms, total, count)


@dataclass(frozen=True, slots=True)
class Line:
    """A lost broker or rack: who takes over, what each does already, and how many rows are new."""

    held: Mapping[int, int]
    takers: tuple[int, ...]
    least: int

    def room(self, top: int) -> int:
        """Return how many rows fit if nobody takes over more than `top`."""
        return sum(top - self.held.get(b, 0) for b in self.takers)


def bound_takeovers(problem: Problem) -> tuple[int, int]:
    """Return the least that the most loaded broker could take over: after the loss of one broker,
    and after the loss of one rack. It supposes that the leaders of the cluster are even, that all
    new rows have a follower, and that brokers have racks.

    A leader's new rows go to the brokers that may be next after it, those of a rack to the brokers
    outside. Nothing is supposed of the other replicas of a row.
    """
    rack = {broker.id: broker.rack or "" for broker in problem.brokers}
    existing = (*problem.others, *(wish.existing for wish in problem.wishes))
    after, beyond = count_takeovers(problem.brokers, existing)
    count = sum(wish.count for wish in problem.wishes)
    leading = _least_leading(problem, count)
    most_in_rack = [max(most for _, most in _share(problem, w).values()) for w in problem.wishes]
    lines = []
    for leader, home in rack.items():
        takers = [b for b in rack if b != leader and (rack[b] != home or max(most_in_rack) > 1)]
        lines.append(Line(after[leader], tuple(takers), leading[leader]))
    if any(most == w.replication for most, w in zip(most_in_rack, problem.wishes, strict=True)):
        return _least_most(lines, count), 0
    by_rack = []
    for lost in sorted(set(rack.values())):
        takers = [b for b in rack if rack[b] != lost]
        led = sum(leading[b] for b in rack if rack[b] == lost)
        by_rack.append(Line(beyond[lost], tuple(takers), led))
    return _least_most(lines, count), _least_most(by_rack, count)


def count_takeovers(
    brokers: Iterable[Broker], assignments: Iterable[Assignment]
) -> tuple[Mapping[int, Counter[int]], Mapping[str, Counter[int]]]:
    """Count who leads next: by the leader whose broker is lost, and by the rack that is lost."""
    rack = {broker.id: broker.rack for broker in brokers}
    after: dict[int, Counter[int]] = defaultdict(Counter)
    beyond: dict[str, Counter[int]] = defaultdict(Counter)
    for row, times in Counter(chain.from_iterable(assignments)).items():
        leader, *followers = row
        after[leader].update(dict.fromkeys(followers[:1], times))
        home = rack[leader]
        outside = [b for b in followers if rack[b] != home]
        if home is not None:
            beyond[home].update(dict.fromkeys(outside[:1], times))
    return after, beyond


def _least_leading(problem: Problem, count: int) -> dict[int, int]:
    """Return how many new partitions each broker leads at least if leaders are as even as can be.

    The highest floor to which `count` leaders lift all brokers below it.
    """
    held = {broker.id: problem.leaders.get(broker.id, 0) for broker in problem.brokers}
    floor = (sum(held.values()) + count) // len(held)
    while sum(max(0, floor - load) for load in held.values()) > count:
        floor -= 1
    return {broker: max(0, floor - load) for broker, load in held.items()}


def _least_most(lines: Sequence[Line], count: int) -> int:
    """Return the least maximum that leaves room for the rows of each line, and for all of them."""
    top = max((max(line.held.values(), default=0) for line in lines), default=0)
    while True:
        rooms = [line.room(top) for line in lines]
        if sum(rooms) >= count and all(
            room >= line.least for room, line in zip(rooms, lines, strict=True)
        ):
            return top
        top += 1


def _bound_topic(problem: Problem, wish: Wish) -> tuple[int, int]:
    leaders, replicas = count_load([wish.existing])
    racks = _racks(problem)
    led, held = _load(racks, leaders), _load(racks, replicas)
    share = _share(problem, wish)
    rooms = tuple(
        Room(held[rack], share[rack][0] * wish.count, share[rack][1] * wish.count) for rack in racks
    )
    return (
        _bound_leaders(led, wish.count),
        least_skew(rooms, wish.count * wish.replication, wish.count),
    )


def _bound_leaders(led: Mapping[str, tuple[int, ...]], count: int) -> int:
    """Return the bound for leaders, to whom racks are one."""
    together = tuple(load for loads in led.values() for load in loads)
    return least_skew((Room(together, count, count),), count, count)


@cache
def least_skew(rooms: tuple[Room, ...], total: int, most: int) -> int:
    """Return the least max − min when `total` come on top, at most `most` of them to a broker."""
    loads = [load for room in rooms for load in room.held]
    after = sum(loads) + total
    skew = 0
    while True:  # the average lies between least and most loaded, so few floors can do
        floors = range(-(-after // len(loads)) - skew, after // len(loads) + 1)
        if any(_fits(rooms, total, most, floor, floor + skew) for floor in floors):
            return skew
        skew += 1


def _fits(rooms: Sequence[Room], total: int, most: int, floor: int, ceiling: int) -> bool:
    """Tell whether all loads can end between a floor and a ceiling."""
    fewest = highest = 0
    for room in rooms:
        if max(room.held) > ceiling or min(room.held) + most < floor:
            return False
        low = max(room.least, sum(max(0, floor - load) for load in room.held))
        high = min(room.most, sum(min(most, ceiling - load) for load in room.held))
        if low > high:
            return False
        fewest += low
        highest += high
    return fewest <= total <= highest


def _share(problem: Problem, wish: Wish) -> dict[str, tuple[int, int]]:
    """Return the fewest and the most replicas of one partition that each rack may hold."""
    size = {rack: len(ids) for rack, ids in _racks(problem).items()}
    whole = 0
    while sum(min(n, whole + 1) for n in size.values()) <= wish.replication and whole < max(
        size.values()
    ):
        whole += 1
    left = wish.replication - sum(min(n, whole) for n in size.values())
    return {
        rack: (min(n, whole), min(n, whole) + (left > 0 and n > whole)) for rack, n in size.items()
    }


def _racks(problem: Problem) -> dict[str, list[int]]:
    racks = defaultdict(list)
    for broker in problem.brokers:
        racks[broker.rack or ""].append(broker.id)
    return racks


def _load(
    racks: Mapping[str, Sequence[int]], counts: Mapping[int, int]
) -> dict[str, tuple[int, ...]]:
    return {rack: tuple(counts.get(b, 0) for b in ids) for rack, ids in racks.items()}
