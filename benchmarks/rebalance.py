"""What a drain, brokers that join, and more replicas cost the solver of moves, in CPU seconds.

Every case has topics of 100 partitions on 90 brokers in 3 racks. The checker has to accept every
result. `make bench-rebalance` runs it; sizes choose how many partitions there are:
`python benchmarks/rebalance.py 10000 30000`.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from reconciler.model.cluster import Broker
from reconciler.placement.moving.check import check_moves, count_moves, least_moves
from reconciler.placement.moving.moves import move_replicas
from reconciler.placement.moving.problem import MoveGoal, MoveProblem, MoveWish
from reconciler.placement.problem import Problem, Wish, count_load
from reconciler.placement.strategies import STRATEGIES

SIZES = (10_000, 30_000, 100_000)
PARTITIONS = 100
BROKERS = tuple(Broker(b, f"rack-{b % 3}") for b in range(90))
JOINED = tuple(Broker(b, f"rack-{b % 3}") for b in range(90, 93))


def make_problem(partitions: int, replication: int) -> MoveProblem:
    """Place balanced topics. Nothing has to move."""
    wishes = tuple(
        Wish(f"topic-{t:05}", (), PARTITIONS, replication) for t in range(partitions // PARTITIONS)
    )
    rows = STRATEGIES["optimal"](Problem(BROKERS, {}, {}, wishes)).rows
    moves = tuple(MoveWish(topic, assignment, None) for topic, assignment in rows.items())
    eligible = frozenset(broker.id for broker in BROKERS)
    return MoveProblem(BROKERS, eligible, *count_load(rows.values()), moves)


def drain(problem: MoveProblem) -> MoveProblem:
    """Drain one broker."""
    return replace(problem, drained=frozenset({7}), eligible=problem.eligible - {7})


def join(problem: MoveProblem) -> MoveProblem:
    """Balance over three more brokers, one in each rack."""
    eligible = problem.eligible | {broker.id for broker in JOINED}
    brokers = problem.brokers + JOINED
    return replace(problem, brokers=brokers, eligible=eligible, goal=MoveGoal.BALANCE)


def rest(problem: MoveProblem) -> MoveProblem:
    """Balance what is balanced."""
    return replace(problem, goal=MoveGoal.BALANCE)


def grow(problem: MoveProblem) -> MoveProblem:
    """Give every partition one more replica."""
    wishes = tuple(replace(wish, replication=3) for wish in problem.wishes)
    return replace(problem, wishes=wishes)


CASES = {
    "drain of one broker": (3, drain),
    "2 → 3 replicas": (2, grow),
    "3 more brokers, rebalance": (3, join),
    "rebalance of balanced rows": (3, rest),
}


def main(sizes: list[int]) -> None:
    print(f"{'':28} {'partitions':>10} {'moves':>8} {'CPU s':>8} {'growth':>7}")
    for name, (replication, change) in CASES.items():
        before = 0.0
        for partitions in sizes:
            problem = change(make_problem(partitions, replication))
            start = time.process_time()
            rows = move_replicas(problem)
            cpu = time.process_time() - start
            moves = check(problem, rows, name)
            growth = f"× {cpu / before:.1f}" if before else ""
            print(f"{name:28} {partitions:10,} {moves:8,} {cpu:8.2f} {growth:>7}", flush=True)
            before = cpu


def check(problem: MoveProblem, rows: dict, name: str) -> int:
    """Return the number of moves. Errors: SystemExit where the checker finds fault."""
    if violations := check_moves(problem, rows):
        raise SystemExit(f"{name}: {violations[0]}")
    moves = count_moves(problem, rows)
    if problem.goal is MoveGoal.FEWEST_MOVES and moves != least_moves(problem):
        raise SystemExit(f"{name}: {moves} moves instead of {least_moves(problem)}")
    return moves


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or list(SIZES))
