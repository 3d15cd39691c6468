"""How good and how fast placement is: the optimal strategy beside striping, case by case.

CPU seconds are this process's own, of placing and its certificate; the checker that holds every
answer against the hard rules is timed apart. An heir is who leads next when a leader's broker
dies: `heir` is the largest share of one broker's leaders that falls to a single other one, in
multiples of an even division over all brokers that can inherit.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler.model import Broker
from reconciler.placement import (
    STRATEGIES,
    Problem,
    Wish,
    check_placement,
    count_load,
    measure_balance,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconciler.model import Assignment

    Rows = Mapping[str, Assignment]

HEADING = (
    f"{'case':34} {'strategy':9} {'CPU s':>7} {'check':>6}  {'topic L/R':>10} {'cluster L/R':>12}"
    f" {'heir':>6}  proven"
)


@dataclass(frozen=True, slots=True)
class Case:
    """A problem, or one grown a partition at a time up to `grown_to`."""

    name: str
    problem: Problem
    grown_to: int = 0
    repeats: int = 1


def main() -> None:
    """Print one line for each case and strategy."""
    print(HEADING)
    for make in CASES:
        case = make()
        for strategy in STRATEGIES:
            print(measure(case, strategy), flush=True)


def measure(case: Case, strategy: str) -> str:
    """Place a case, the best of its repeats, and describe the outcome in a line."""
    seconds = []
    for _ in range(case.repeats):
        start = time.process_time()
        rows, proven = place(case, strategy)
        seconds.append(time.process_time() - start)
    start = time.process_time()
    if not case.grown_to and check_placement(case.problem, rows):
        raise SystemExit(f"{case.name}, {strategy}: the checker finds fault")
    check = time.process_time() - start
    topic, cluster = skews(case, rows)
    return (
        f"{case.name:34} {strategy:9} {min(seconds):7.3f} {check:6.3f}  {topic:>10} {cluster:>12}"
        f" {worst_heir(case, rows):5.2f}x  {proven}"
    )


def place(case: Case, strategy: str) -> tuple[Rows, str]:
    """Return the new rows, and which levels are proven to be optimal."""
    if case.grown_to:
        return grow(case, strategy), "-"
    placed = STRATEGIES[strategy](case.problem)
    return placed.rows, "".join("+" if level.proven else "?" for level in placed.levels) or "-"


def grow(case: Case, strategy: str) -> Rows:
    """Grow one topic a partition at a time."""
    (wish,) = case.problem.wishes
    rows: Assignment = ()
    while len(rows) < case.grown_to:
        leaders, replicas = count_load([rows])
        step = replace(wish, existing=rows, count=1)
        problem = replace(case.problem, leaders=leaders, replicas=replicas, wishes=(step,))
        rows += STRATEGIES[strategy](problem).rows[wish.topic]
    return {wish.topic: rows}


def skews(case: Case, rows: Rows) -> tuple[str, str]:
    """Return max − min of leaders and replicas: of the worst topic, and of the cluster."""
    ids = [broker.id for broker in case.problem.brokers]
    existing = {wish.topic: wish.existing for wish in case.problem.wishes}
    each = [measure_balance([existing[topic], new], ids) for topic, new in rows.items()]
    leaders, replicas = count_load(rows.values())
    led = [case.problem.leaders.get(b, 0) + leaders[b] for b in ids]
    held = [case.problem.replicas.get(b, 0) + replicas[b] for b in ids]
    topic = max(b.leaders.skew for b in each), max(b.replicas.skew for b in each)
    return "{}/{}".format(*topic), f"{max(led) - min(led)}/{max(held) - min(held)}"


def worst_heir(case: Case, rows: Rows) -> float:
    """Return the worst heir's share of a leader's rows, in multiples of an even division."""
    heirs: dict[int, Counter[int]] = defaultdict(Counter)
    for wish in case.problem.wishes:
        for row in (*wish.existing, *rows[wish.topic]):
            if len(row) > 1:
                heirs[row[0]][row[1]] += 1
    rack = {broker.id: broker.rack for broker in case.problem.brokers}
    shares = []
    for leader, after in heirs.items():
        possible = sum(rack[b] != rack[leader] for b in rack)
        shares.append(max(after.values()) * possible / after.total())
    return max(shares, default=0.0)


def nodes(count: int, racks: int) -> tuple[Broker, ...]:
    return tuple(Broker(b, f"rack-{b % racks}") for b in range(count))


def new_topics(name: str, topics: int, partitions: int, repeats: int = 1) -> Case:
    wishes = tuple(Wish(f"topic-{t:05}", (), partitions, 3) for t in range(topics))
    return Case(name, Problem(nodes(100, 5), {}, {}, wishes), repeats=repeats)


def one_topic() -> Case:
    wishes = (Wish("orders", (), 30, 3),)
    return Case("a  30 partitions, 9 brokers", Problem(nodes(9, 3), {}, {}, wishes), repeats=5)


def small_topics() -> Case:
    wishes = tuple(Wish(f"topic-{t:04}", (), 1 + t % 12, 3) for t in range(1000))
    return Case("b  1,000 of 1-12, 12 brokers", Problem(nodes(12, 3), {}, {}, wishes), repeats=3)


def one_at_a_time() -> Case:
    problem = Problem(nodes(6, 3), {}, {}, (Wish("orders", (), 1, 3),))
    return Case("c  one at a time to 24, 6 brokers", problem, grown_to=24, repeats=3)


def unequal_racks() -> Case:
    racks = ("a", "a", "b", "b", "c")
    brokers = tuple(Broker(b, rack) for b, rack in enumerate(racks))
    problem = Problem(brokers, {}, {}, (Wish("orders", (), 60, 3),))
    return Case("d  60 partitions, racks of 2, 2, 1", problem, repeats=5)


def many_topics() -> Case:
    return new_topics("e  10,000 x 20, 100 brokers", 10_000, 20, repeats=5)


def expansions() -> Case:
    """Grow 1,000 of (e)'s topics, on the cluster that (e) leaves."""
    before = many_topics().problem
    rows = STRATEGIES["optimal"](before).rows
    leaders, replicas = count_load(rows.values())
    wishes = tuple(Wish(w.topic, rows[w.topic], 4, 3) for w in before.wishes[::10])
    problem = replace(before, leaders=leaders, replicas=replicas, wishes=wishes)
    return Case("f  1,000 from 20 to 24 on (e)", problem, repeats=3)


def million_partitions() -> Case:
    return new_topics("g  50,000 x 20, 100 brokers", 50_000, 20)


CASES: tuple[Callable[[], Case], ...] = (
    one_topic,
    small_topics,
    one_at_a_time,
    unequal_racks,
    many_topics,
    expansions,
    million_partitions,
)

if __name__ == "__main__":
    main()
