"""Moves of replicas against CP-SAT: every level is the least, whatever must change."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from random import Random

import cp_sat_moves
import pytest
from sizes import choose

from reconciler.model import Broker
from reconciler.placement.moving import (
    MoveProblem,
    MoveWish,
    check_moves,
    count_moves,
    least_moves,
    move_replicas,
)

SEED = int(os.environ.get("RECONCILER_SEED", "20261122"))
INSTANCES = choose(150, 3_000)


def draw(random: Random, brokers: int, topics: int, partitions: int) -> MoveProblem:
    """Draw topics whose rows ignore racks and balance, on brokers of which some are dead."""
    racks = random.randint(1, 3)
    drawn = tuple(
        Broker(b, random.choice("abc"[:racks]) if racks > 1 else None, alive=random.random() > 0.1)
        for b in range(1, brokers + 1)
    )
    eligible = frozenset(b.id for b in drawn if b.alive and random.random() > 0.1)
    ids = [broker.id for broker in drawn]
    leaders = Counter({b: random.randrange(3) for b in ids})
    replicas = Counter({b: leaders[b] + random.randrange(5) for b in ids})
    wishes = []
    for number in range(random.randint(1, topics)):
        width = random.randint(1, min(4, brokers))
        # Rows grow to no more replicas than there are eligible brokers, and shrink to any number.
        wanted = random.randint(1, max(width, min(4, len(eligible))))
        rows = tuple(tuple(random.sample(ids, width)) for _ in range(random.randint(1, partitions)))
        in_sync = tuple(tuple(b for b in row if random.random() > 0.2) for row in rows)
        fixed = tuple(tuple(random.sample(ids, width)) for _ in range(random.choice([0, 0, 2])))
        wishes.append(MoveWish(f"t{number}", rows, wanted, random.random() > 0.3, in_sync, fixed))
        leaders.update(row[0] for row in (*rows, *fixed))
        replicas.update(b for row in (*rows, *fixed) for b in row)
    even = random.random() < 0.7
    capacity = {} if even else {b: random.choice([1, 2]) for b in ids}
    problem = MoveProblem(drawn, eligible, leaders, replicas, tuple(wishes), capacity)
    return problem if eligible else draw(random, brokers, topics, partitions)


@pytest.mark.parametrize("part", range(5))
def test_every_level_is_the_least(part: int) -> None:
    random = Random(f"{SEED} {part}")
    kinds: Counter[str] = Counter()
    for _ in range(INSTANCES // 5):
        problem = draw(random, random.randint(1, 7), 3, 6)
        rows = move_replicas(problem)
        assert check_moves(problem, rows) == (), problem
        replicas, leaders = cp_sat_moves.measure(problem, rows)
        assert replicas == cp_sat_moves.least_replicas(problem), problem
        assert leaders == cp_sat_moves.least_leaders(problem, rows), problem
        assert replicas[0] == count_moves(problem, rows) == least_moves(problem), problem
        for wish in problem.wishes:
            change = wish.replication - len(wish.rows[0])
            kinds["grows" if change > 0 else "shrinks" if change else "reorders"] += 1
    assert min(kinds[kind] for kind in ("grows", "shrinks", "reorders")) > INSTANCES // 50


@pytest.mark.parametrize("part", range(5))
def test_many_rows_copy_no_more_than_they_must(part: int) -> None:
    random = Random(f"{SEED} many {part}")
    problem = draw(random, 12, 8, 60)
    rows = move_replicas(problem)
    assert check_moves(problem, rows) == ()
    assert count_moves(problem, rows) == least_moves(problem)


def test_the_order_of_wishes_and_brokers_plays_no_part() -> None:
    random = Random(SEED)
    for _ in range(INSTANCES):
        problem = draw(random, 6, 3, 6)
        other = replace(problem, brokers=problem.brokers[::-1], wishes=problem.wishes[::-1])
        assert move_replicas(problem) == move_replicas(other)


def test_what_is_moved_is_not_moved_again() -> None:
    random = Random(SEED)
    for _ in range(INSTANCES):
        problem = draw(random, 6, 3, 6)
        rows = move_replicas(problem)
        leaders, replicas = Counter(problem.leaders), Counter(problem.replicas)
        for wish in problem.wishes:
            leaders.subtract(row[0] for row in wish.rows)
            replicas.subtract(b for row in wish.rows for b in row)
            leaders.update(row[0] for row in rows[wish.topic])
            replicas.update(b for row in rows[wish.topic] for b in row)
        wishes = tuple(replace(w, rows=rows[w.topic], in_sync=()) for w in problem.wishes)
        again = replace(problem, wishes=wishes, leaders=leaders, replicas=replicas)
        assert count_moves(again, move_replicas(again)) == 0
