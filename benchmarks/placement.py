"""How good and how fast placement is: ours, striping, and Kafka's own class, side by side.

Every case is placed by all three in turn, in one run. Ours and striping run in this process,
Kafka's StripedReplicaPlacer in a warm JVM beside it. `make bench-placement` runs it; letters
choose cases: `python benchmarks/placement.py a e`.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from statistics import mean

from placement_bounds import bound_cluster, bound_takeovers, bound_topics, count_takeovers
from placement_java import JavaPlacer

from reconciler.model.cluster import Assignment, Broker
from reconciler.placement.check import check_placement
from reconciler.placement.measure import measure_balance
from reconciler.placement.problem import Problem, Wish, count_load
from reconciler.placement.strategies import STRATEGIES

Rows = Mapping[str, Assignment]

LEGEND = """\
Columns. topic: leader/replica max − min of the worst topic (in c: of the worst step on the way);
  cluster: the same of all topics together; bound: the least that is possible, each on its own.
  broker lost: the most leaders that one broker takes over if another one is lost; rack lost: the
  same if all brokers of one rack are lost. Of all rows of the cluster, whichever is lost where it
  hurts most. Their bounds suppose that the leaders of the cluster are even.
  sets: different sets of brokers that hold a partition. Of the topics that the case places.
CPU. optimal and striped: of this process, from the problem to the rows; with certificates where
  there are any, without the checker, which has to accept every answer. kafka: of the JVM's
  process, garbage collection included, from specs in Java to assignments in Java; in brackets the
  placing thread alone. One call into Java for all topics; its view of the cluster is a list and a
  constant, less than the controller's own costs. Means of the repeats.
Dice. kafka draws at random, and looks neither at existing replicas nor at other topics. Small
  cases are drawn {draws} times: means over these, then the worst of each column."""

HEADING = (
    f"{'':24} {'topic':>9} {'cluster':>11} {'broker lost':>11} {'rack lost':>9} {'sets':>7}"
    f" {'CPU s':>9} {'÷ kafka':>9}"
)
DRAWS = 200


@dataclass(frozen=True, slots=True)
class Case:
    """A problem, or one grown a partition at a time up to `grown_to`. If `one_by_one`, each wish is
    a plan of its own, on the cluster that those before it leave.

    `repeats` are interleaved; within each, ours runs `loops` times to be long enough to time.
    `draws` is how many random numbers Kafka's class draws for it.
    """

    name: str
    problem: Problem
    grown_to: int = 0
    one_by_one: bool = False
    repeats: int = 3
    loops: int = 1
    draws: int = 1


@dataclass(frozen=True, slots=True)
class Figures:
    """How good an answer is; what each means, the legend says."""

    topic_leaders: float
    topic_replicas: float
    cluster_leaders: float
    cluster_replicas: float
    broker_lost: float
    rack_lost: float
    sets: float

    def __str__(self) -> str:
        topic = f"{_short(self.topic_leaders)}/{_short(self.topic_replicas)}"
        cluster = f"{_short(self.cluster_leaders)}/{_short(self.cluster_replicas)}"
        sets = f"{self.sets:,.0f}" if self.sets else ""
        lost = f"{_short(self.broker_lost):>11} {_short(self.rack_lost):>9}"
        return f"{topic:>9} {cluster:>11} {lost} {sets:>7}"


def main(letters: Iterable[str] = ()) -> None:
    """Compare all cases, or some."""
    with JavaPlacer() as java:
        print(f"{java.described}; Python {sys.version.split()[0]}")
        print(LEGEND.format(draws=DRAWS))
        print(HEADING)
        for letter, make in CASES.items():
            if letter in (letters or CASES):
                compare(make(), java)


def compare(case: Case, java: JavaPlacer) -> None:
    """Place a case by each, turn by turn, and print a line for each and one for the bounds."""
    cpu: dict[str, list[float]] = defaultdict(list)
    answers: dict[str, Rows] = {}
    for turn in range(case.repeats):
        for strategy in STRATEGIES:
            answers[strategy], seconds = place(case, strategy)
            cpu[strategy].append(seconds)
        thrown, whole, thread = throw(case, java, turn)
        cpu["kafka"].append(whole)
        cpu["thread"].append(thread)
    print(f"\n{case.name}\n  {'bound':<22} {bound(case)}", flush=True)
    kafka = mean(cpu["kafka"])
    for strategy, rows in answers.items():
        check(case, strategy, rows)
        spent = mean(cpu[strategy])
        times = f"{_seconds(spent):>9} {spent / kafka:9.1f}"
        print(f"  {strategy:<22} {measure(case, rows)} {times}", flush=True)
    figures = [measure(case, rows) for rows in thrown]
    times = f"{_seconds(kafka):>9} ({_seconds(mean(cpu['thread']))})"
    print(f"  {'kafka':<22} {_fold(mean, figures)} {times}", flush=True)
    if len(figures) > 1:
        print(f"  {'kafka, worst':<22} {replace(_fold(max, figures), sets=0)}", flush=True)


def place(case: Case, strategy: str) -> tuple[Rows, float]:
    """Return the new rows, and the CPU seconds they took."""
    start = time.process_time()
    for _ in range(case.loops):
        if case.grown_to:
            rows = _grow(case, strategy)
        elif case.one_by_one:
            rows = _place_one_by_one(case, strategy)
        else:
            rows = STRATEGIES[strategy](case.problem).rows
    return rows, (time.process_time() - start) / case.loops


def _place_one_by_one(case: Case, strategy: str) -> Rows:
    """Make a plan for each wish, and apply it before the next."""
    live: dict[str, Assignment] = {}
    for wish in case.problem.wishes:
        others = tuple(live.values())
        leaders, replicas = count_load(others)
        problem = Problem(case.problem.brokers, leaders, replicas, (wish,), others=others)
        live |= STRATEGIES[strategy](problem).rows
    return live


def _grow(case: Case, strategy: str) -> Rows:
    """Grow one topic a partition at a time."""
    (wish,) = case.problem.wishes
    rows: Assignment = ()
    while len(rows) < case.grown_to:
        rows += STRATEGIES[strategy](_step(case, rows)).rows[wish.topic]
    return {wish.topic: rows}


def _step(case: Case, rows: Assignment) -> Problem:
    leaders, replicas = count_load([rows])
    (wish,) = case.problem.wishes
    step = replace(wish, existing=rows, count=1)
    return replace(case.problem, leaders=leaders, replicas=replicas, wishes=(step,))


def throw(case: Case, java: JavaPlacer, seed: int) -> tuple[list[Rows], float, float]:
    """Return every draw of Kafka's class, and the CPU seconds of one: process and thread."""
    nodes = [(broker.id, broker.rack or "") for broker in case.problem.brokers]
    replication = case.problem.wishes[0].replication
    if case.grown_to:
        wished = [(p, 1, replication) for p in range(case.grown_to)]
    else:
        wished = [(len(w.existing), w.count, w.replication) for w in case.problem.wishes]
    cpu, found = java.place(nodes, wished * case.draws, seed)
    rows = iter(tuple(map(tuple, found.tolist())))
    thrown = [_deal(case, rows) for _ in range(case.draws)]
    return thrown, cpu.process / case.draws, cpu.thread / case.draws


def _deal(case: Case, rows: Iterator[tuple[int, ...]]) -> Rows:
    """Give every wish its rows, in the order in which they were asked for."""
    return {
        wish.topic: tuple(next(rows) for _ in range(case.grown_to or wish.count))
        for wish in case.problem.wishes
    }


def check(case: Case, strategy: str, rows: Rows) -> None:
    """Errors: SystemExit where the checker finds fault with an answer."""
    problem = case.problem
    if case.grown_to:
        problem = replace(problem, wishes=(replace(problem.wishes[0], count=case.grown_to),))
    if violations := check_placement(problem, rows):
        raise SystemExit(f"{case.name}, {strategy}: {violations[0]}")


def measure(case: Case, rows: Rows) -> Figures:
    """Measure an answer together with what was there before."""
    ids = [broker.id for broker in case.problem.brokers]
    existing = {wish.topic: wish.existing for wish in case.problem.wishes}
    whole = {topic: (*existing[topic], *new) for topic, new in rows.items()}
    if case.grown_to:
        (grown,) = whole.values()
        looked_at = [grown[:count] for count in range(1, case.grown_to + 1)]
    else:
        looked_at = list(whole.values())
    each = [measure_balance([assignment], ids) for assignment in looked_at]
    leaders, replicas = count_load(rows.values())
    after, beyond = count_takeovers(case.problem.brokers, (*case.problem.others, *whole.values()))
    return Figures(
        max(balance.leaders.skew for balance in each),
        max(balance.replicas.skew for balance in each),
        _skew(case.problem.leaders.get(b, 0) + leaders[b] for b in ids),
        _skew(case.problem.replicas.get(b, 0) + replicas[b] for b in ids),
        _most(after.values()),
        _most(beyond.values()),
        len({frozenset(row) for assignment in whole.values() for row in assignment}),
    )


def bound(case: Case) -> Figures:
    """Return what no placement can better; nothing is known of sets."""
    problem = case.problem
    if case.grown_to:
        (wish,) = problem.wishes
        counts = range(1, case.grown_to + 1)
        steps = [replace(problem, wishes=(replace(wish, count=n),)) for n in counts]
        each = [bound_topics(step) for step in steps]
        topic = max(leaders for leaders, _ in each), max(replicas for _, replicas in each)
        problem = steps[-1]
    else:
        topic = bound_topics(problem)
    return Figures(*topic, *bound_cluster(problem), *bound_takeovers(problem), 0)


def _most(takeovers: Iterable[Counter[int]]) -> int:
    return max((max(each.values()) for each in takeovers if each), default=0)


def _fold(fold: Callable[[Iterable[float]], float], figures: Iterable[Figures]) -> Figures:
    return Figures(*map(fold, zip(*map(astuple, figures), strict=True)))


def _skew(loads: Iterable[int]) -> int:
    counts = list(loads)
    return max(counts) - min(counts)


def _short(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:.1f}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.6f}" if seconds < 0.01 else f"{seconds:.3f}"


def nodes(count: int, racks: int) -> tuple[Broker, ...]:
    return tuple(Broker(b, f"rack-{b % racks}") for b in range(count))


def new_topics(name: str, topics: int, partitions: int, repeats: int) -> Case:
    wishes = tuple(Wish(f"topic-{t:05}", (), partitions, 3) for t in range(topics))
    return Case(name, Problem(nodes(100, 5), {}, {}, wishes), repeats=repeats)


def one_topic() -> Case:
    wishes = (Wish("orders", (), 30, 3),)
    problem = Problem(nodes(9, 3), {}, {}, wishes)
    return Case("a  30 partitions, 9 brokers in 3 racks", problem, loops=50, draws=DRAWS)


def small_topics() -> Case:
    wishes = tuple(Wish(f"topic-{t:04}", (), 1 + t % 12, 3) for t in range(1000))
    problem = Problem(nodes(12, 3), {}, {}, wishes)
    return Case("b  1,000 topics of 1 to 12 partitions, 12 brokers in 3 racks", problem, repeats=5)


def one_at_a_time() -> Case:
    problem = Problem(nodes(6, 3), {}, {}, (Wish("orders", (), 1, 3),))
    name = "c  grown one partition at a time to 24, 6 brokers in 3 racks"
    return Case(name, problem, grown_to=24, loops=10, draws=DRAWS)


def unequal_racks() -> Case:
    racks = ("a", "a", "b", "b", "c")
    brokers = tuple(Broker(b, rack) for b, rack in enumerate(racks))
    problem = Problem(brokers, {}, {}, (Wish("orders", (), 60, 3),))
    return Case("d  60 partitions, racks of 2, 2, 1 brokers", problem, loops=50, draws=DRAWS)


def many_topics() -> Case:
    name = "e  10,000 topics of 20 partitions, 100 brokers in 5 racks"
    return new_topics(name, 10_000, 20, repeats=5)


def expansions() -> Case:
    """Grow 1,000 of (e)'s topics, on the cluster that (e) leaves."""
    before = many_topics().problem
    rows = STRATEGIES["optimal"](before).rows
    leaders, replicas = count_load(rows.values())
    wishes = tuple(Wish(w.topic, rows[w.topic], 4, 3) for w in before.wishes[::10])
    grown = {wish.topic for wish in wishes}
    others = tuple(assignment for topic, assignment in rows.items() if topic not in grown)
    problem = replace(before, leaders=leaders, replicas=replicas, wishes=wishes, others=others)
    return Case("f  1,000 of (e)'s topics grown from 20 to 24, where (e) left them", problem)


def million_partitions() -> Case:
    return new_topics("g  50,000 topics of 20 partitions, 100 brokers in 5 racks", 50_000, 20, 2)


def plans_one_by_one() -> Case:
    wishes = tuple(Wish(f"topic-{t:02}", (), 1 + t % 12, 3) for t in range(60))
    name = "h  60 topics of 1 to 12 partitions, one plan each, 6 brokers in 3 racks"
    return Case(name, Problem(nodes(6, 3), {}, {}, wishes), one_by_one=True, draws=DRAWS)


def mixed_sizes() -> Case:
    wishes = tuple(Wish(f"topic-{t:04}", (), 1 + t % 40, 3) for t in range(1000))
    name = "i  1,000 topics of 1 to 40 partitions, 100 brokers in 5 racks"
    return Case(name, Problem(nodes(100, 5), {}, {}, wishes))


def very_unequal_racks() -> Case:
    sizes = {"a": 10, "b": 8, "c": 6, "d": 4, "e": 2}
    racks = [rack for rack, size in sizes.items() for _ in range(size)]
    brokers = tuple(Broker(b, rack) for b, rack in enumerate(racks))
    problem = Problem(brokers, {}, {}, (Wish("orders", (), 60, 5),))
    name = "j  60 partitions of 5 replicas, racks of 10, 8, 6, 4, 2 brokers"
    return Case(name, problem, loops=20, draws=DRAWS)


CASES: Mapping[str, Callable[[], Case]] = {
    "a": one_topic,
    "b": small_topics,
    "c": one_at_a_time,
    "d": unequal_racks,
    "e": many_topics,
    "f": expansions,
    "g": million_partitions,
    "h": plans_one_by_one,
    "i": mixed_sizes,
    "j": very_unequal_racks,
}

if __name__ == "__main__":
    main(sys.argv[1:])
