"""What a rebalance, a drain and more replicas cost their solvers: CPU seconds and memory.

Every case has topics of 100 partitions on brokers in 3 racks, in a process of its own, and the
checker has to accept every result. `make bench-rebalance` runs it; sizes are brokers x partitions:
`python benchmarks/rebalance.py 90x10000 500x100000`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.cluster import Broker
from reconciler.placement.loads.check import check_loads
from reconciler.placement.loads.problem import LoadProblem
from reconciler.placement.loads.search import balance_loads
from reconciler.placement.loads.shares import bound_loads, share_load
from reconciler.placement.moving.check import check_moves, count_moves, least_moves
from reconciler.placement.moving.moves import move_replicas
from reconciler.placement.moving.problem import MoveGoal, MoveProblem, MoveWish
from reconciler.placement.problem import Problem, Wish, count_load
from reconciler.placement.strategies import STRATEGIES

SIZES = ("90x30000", "60x200000", "500x100000")
PARTITIONS = 100
RACKS = 3


@dataclass(frozen=True, slots=True)
class Result:
    """The replicas that a case copies, and the least of them if that is known."""

    replicas: int
    least: int | None = None


def make_problem(brokers: int, partitions: int, replication: int) -> MoveProblem:
    """Place balanced topics. Nothing has to move."""
    wishes = tuple(
        Wish(f"topic-{t:05}", (), PARTITIONS, replication) for t in range(partitions // PARTITIONS)
    )
    able = make_brokers(brokers)
    rows = STRATEGIES["optimal"](Problem(able, {}, {}, wishes)).rows
    moves = tuple(MoveWish(topic, assignment, None) for topic, assignment in rows.items())
    eligible = frozenset(broker.id for broker in able)
    return MoveProblem(able, eligible, *count_load(rows.values()), moves)


def make_brokers(count: int, first: int = 0) -> tuple[Broker, ...]:
    return tuple(Broker(b, f"rack-{b % RACKS}") for b in range(first, first + count))


def drain(brokers: int, partitions: int) -> Callable[[], Result]:
    """Drain one broker."""
    problem = make_problem(brokers, partitions, 3)
    return _move(replace(problem, drained=frozenset({7}), eligible=problem.eligible - {7}))


def grow(brokers: int, partitions: int) -> Callable[[], Result]:
    """Give every partition one more replica."""
    problem = make_problem(brokers, partitions, 2)
    wishes = tuple(replace(wish, replication=3) for wish in problem.wishes)
    return _move(replace(problem, wishes=wishes))


def level(brokers: int, partitions: int) -> Callable[[], Result]:
    """Level every topic over three more brokers, one in each rack."""
    problem = make_problem(brokers, partitions, 3)
    joined = make_brokers(RACKS, brokers)
    eligible = problem.eligible | {broker.id for broker in joined}
    every = problem.brokers + joined
    return _move(replace(problem, brokers=every, eligible=eligible, goal=MoveGoal.BALANCE))


def _move(problem: MoveProblem) -> Callable[[], Result]:
    def run() -> Result:
        rows = move_replicas(problem)
        if violations := check_moves(problem, rows):
            raise SystemExit(violations[0])
        moves = count_moves(problem, rows)
        if problem.goal is MoveGoal.FEWEST_MOVES and moves != least_moves(problem):
            raise SystemExit(f"{moves} moves instead of {least_moves(problem)}")
        return Result(moves)

    return run


def fill(brokers: int, partitions: int, *, by_count: bool) -> Callable[[], Result]:
    """Bring three more brokers, one in each rack, within 10 % of their share."""
    problem = make_problem(brokers, partitions, 3)
    every = brokers + RACKS
    rows = np.array([row for wish in problem.wishes for row in wish.rows])
    sizes = np.random.default_rng(1).lognormal(23, 1.0, len(rows)).astype(np.int64)
    loads = np.ones(len(rows), dtype=np.int64) if by_count else sizes
    racks, able = np.arange(every) % RACKS, np.ones(every, dtype=bool)
    zero, movable = np.zeros((1, every), dtype=np.int64), np.ones(len(rows), dtype=bool)
    topics = np.arange(len(rows)) // PARTITIONS
    bare = LoadProblem(
        rows, loads[None], zero, sizes, zero, zero, np.ones(1), racks, able, movable, topics, 0
    )
    share = share_load(loads, np.full(len(rows), 3), racks, np.ones(every), able, movable)
    low, high, _ = bound_loads(bare.add_up(rows)[0], share, 0.1, 0.05)
    whole = replace(bare, low=low[None], high=high[None], scale=np.array([share.mean()]))

    def run() -> Result:
        found = balance_loads(whole)
        if violations := check_loads(whole, found.rows):
            raise SystemExit(violations[0])
        if whole.measure_outside(whole.add_up(found.rows)).any():
            raise SystemExit("a broker is outside its band")
        least = round(100 * whole.measure_cost(found.rows) / found.least_cost - 100, 1)
        print(f"at most {least} % above the fewest bytes; ", end="")
        return Result(int(whole.count_new(found.rows).sum()))

    return run


CASES: dict[str, Callable[[int, int], Callable[[], Result]]] = {
    "drain of one broker": drain,
    "2 → 3 replicas": grow,
    "3 more brokers, by disk": lambda b, p: fill(b, p, by_count=False),
    "3 more brokers, by count": lambda b, p: fill(b, p, by_count=True),
    "3 more brokers, every topic even": level,
}


def measure(name: str, brokers: int, partitions: int) -> None:
    """Run one case in this process. The memory of making the problem counts, its time does not."""
    run = CASES[name](brokers, partitions)
    start = time.process_time()
    result = run()
    cpu = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{result.replicas:,} replicas, {cpu:.2f} s CPU, {memory:,.0f} MiB")


def main(sizes: list[str]) -> None:
    """Measure every case of every size, one process after the other."""
    for size in sizes:
        brokers, partitions = map(int, size.split("x"))
        print(f"{brokers} brokers, {partitions:,} partitions", flush=True)
        for name in CASES:
            command = [sys.executable, __file__, "--one", name, str(brokers), str(partitions)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            print(f"  {name:34}{done.stdout.strip() or done.stderr.strip()[-200:]}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main(sys.argv[1:] or list(SIZES))
