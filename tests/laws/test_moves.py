"""Moves of replicas against CP-SAT: every level is the least, whatever must change."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import cp_sat_moves
import pytest
from sizes import choose

from reconciler.model.cluster import Assignment, Broker, Replicas
from reconciler.placement.moving.check import check_moves, count_moves, least_moves
from reconciler.placement.moving.moves import move_replicas
from reconciler.placement.moving.problem import MoveGoal, MoveProblem, MoveWish

SEED = int(os.environ.get("RECONCILER_SEED", "20261122"))
INSTANCES = choose(200, 3_000)


def draw(random: Random, brokers: int, topics: int, partitions: int) -> MoveProblem:
    """Draw topics whose rows ignore racks and balance, on brokers of which some are dead.

    Some brokers are drained, dead or alive. Some rows grow, some shrink, some keep their number.
    """
    racks = random.randint(1, 3)
    names = random.choice(["abc"[:racks], "aab", "aaabc"]) if racks > 1 else ""
    drawn = tuple(
        Broker(b, random.choice(names) if names else None, alive=random.random() > 0.1)
        for b in range(1, brokers + 1)
    )
    ids = [broker.id for broker in drawn]
    drained = frozenset(random.sample(ids, random.choice([0, 0, 1, 1, 2]) % brokers))
    able = {b.id for b in drawn if b.alive} - drained
    eligible = frozenset(b for b in able if random.random() > 0.1)
    if not eligible:
        return draw(random, brokers, topics, partitions)
    skew = [1.0 if random.random() < 0.5 else 0.2 for _ in ids]
    leaders = Counter({b: random.randrange(3) for b in ids})
    replicas = Counter({b: leaders[b] + random.randrange(5) for b in ids})
    wishes = []
    for number in range(random.randint(1, topics)):
        width = random.randint(1, min(4, brokers))
        # Rows grow to no more replicas than there are eligible brokers, and shrink to any number.
        most = max(width if not drained else 1, min(4, len(eligible)))
        wanted = random.choice([None, *[random.randint(1, most)] * 3])
        widths = [
            min(random.randint(1, width), len(eligible)) if wanted is None else width
            for _ in range(random.randint(1, partitions))
        ]
        rows = tuple(_draw_row(random, ids, skew, each) for each in widths)
        in_sync = tuple(tuple(b for b in row if random.random() > 0.3) for row in rows)
        in_sync = random.choice([in_sync, in_sync, ()])
        fixed = tuple(tuple(random.sample(ids, width)) for _ in range(random.choice([0, 0, 2])))
        rack_aware = random.random() > 0.3
        # On some brokers a disk has failed: what is not in sync there may be offline.
        failed = set(random.sample(ids, random.choice([0, 1])))
        missing = zip(rows, in_sync, strict=False)
        offline = tuple(tuple(failed.intersection(row) - {*synced}) for row, synced in missing)
        wishes.append(MoveWish(f"t{number}", rows, wanted, rack_aware, in_sync, fixed, offline))
        leaders.update(row[0] for row in (*rows, *fixed))
        replicas.update(b for row in (*rows, *fixed) for b in row)
    even = random.random() < 0.7
    capacity = {} if even else {b: random.choice([1, 2]) for b in ids}
    return MoveProblem(drawn, eligible, leaders, replicas, tuple(wishes), capacity, drained)


def _draw_row(random: Random, ids: Sequence[int], skew: Sequence[float], width: int) -> Replicas:
    """Draw different brokers, those of much skew more often."""
    order = sorted(zip(skew, ids, strict=True), key=lambda one: random.random() / one[0])
    return tuple(b for _, b in order[:width])


def list_kinds(problem: MoveProblem) -> set[str]:
    """Return what a problem asks for, and what makes it difficult."""
    kinds = set()
    for wish in problem.wishes:
        for p, row in enumerate(wish.rows):
            wanted = wish.count_wanted(row)
            rest = set(row) - problem.drained
            in_sync = set(wish.in_sync[p] if wish.in_sync else row)
            change = "grows" if wanted > len(row) else "shrinks" if wanted < len(row) else "keeps"
            drained = len(rest) < len(row)
            kinds.add(f"{change}, drained" if drained else change)
            if drained and in_sync and not in_sync & rest:
                kinds.add("only the drained replica is in sync")
            if wish.replication is None and len({len(row) for row in wish.rows}) > 1:
                kinds.add("rows of different lengths")
    racks = {broker.rack for broker in problem.brokers}
    held = {b for wish in problem.wishes for row in (*wish.rows, *wish.fixed) for b in row}
    if problem.eligible - held:
        kinds.add("a new broker")
    kept = tuple(replace(wish, replication=None) for wish in problem.wishes)
    if least_moves(replace(problem, wishes=kept, drained=frozenset(), goal=MoveGoal.BALANCE)):
        kinds.add("breaks the rack rule")
    if racks - {broker.rack for broker in problem.brokers if broker.id not in problem.drained}:
        kinds.add("a rack vanishes")
    return kinds


CHANGES = ("grows", "shrinks", "keeps")
KINDS = (
    *CHANGES,
    *(f"{change}, drained" for change in CHANGES),
    "only the drained replica is in sync",
    "rows of different lengths",
    "a rack vanishes",
)


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
        kinds.update(list_kinds(problem))
    assert min(kinds[kind] for kind in CHANGES) > INSTANCES // 50, kinds
    assert all(kinds[kind] for kind in KINDS), kinds


@pytest.mark.parametrize("part", range(5))
def test_every_level_of_a_rebalance_is_the_least(part: int) -> None:
    random = Random(f"{SEED} rebalance {part}")
    kinds: Counter[str] = Counter()
    for _ in range(INSTANCES // 5):
        problem = draw(random, random.randint(2, 7), 3, 6)
        problem = replace(problem, goal=MoveGoal.BALANCE)
        rows = move_replicas(problem)
        assert check_moves(problem, rows) == (), problem
        replicas, leaders = cp_sat_moves.measure(problem, rows)
        assert replicas == cp_sat_moves.least_replicas(problem), problem
        assert leaders == cp_sat_moves.least_leaders(problem, rows), problem
        assert replicas[-1] == count_moves(problem, rows) >= least_moves(problem), problem
        kinds.update(list_kinds(problem))
    assert all(kinds[kind] for kind in (*KINDS, "breaks the rack rule", "a new broker")), kinds


@pytest.mark.parametrize("part", range(5))
def test_every_level_is_the_least_where_only_some_brokers_take_replicas_up_to_a_bound(
    part: int,
) -> None:
    random = Random(f"{SEED} bounded {part}")
    found: Counter[str] = Counter()
    for _ in range(INSTANCES // 5):
        problem = draw_bounded(random)
        rows = move_replicas(problem)
        assert check_moves(problem, rows) == (), problem
        replicas, leaders = cp_sat_moves.measure(problem, rows)
        assert leaders == cp_sat_moves.least_leaders(problem, rows), problem
        free = replace(problem, most={})
        if check_moves(free, rows):
            found["rows stay because the racks ask too much"] += 1
        else:
            least = cp_sat_moves.least_replicas(problem)
            assert replicas == least, problem
            found["bounded" if least > cp_sat_moves.least_replicas(free) else "free"] += 1
        takers = cp_sat_moves.least_leaders(replace(problem, givers=frozenset()), rows)
        found["brokers that only give lead more"] += leaders < takers
    assert len(found) == 4, found
    assert found["bounded"] > INSTANCES // 50, found


@pytest.mark.parametrize("part", range(5))
def test_every_level_is_the_least_where_offline_replicas_move(part: int) -> None:
    random = Random(f"{SEED} offline {part}")
    keeping = 0
    for _ in range(INSTANCES // 5):
        problem = draw_offline(random)
        rows = move_replicas(problem)
        assert check_moves(problem, rows) == (), problem
        replicas, leaders = cp_sat_moves.measure(problem, rows)
        assert replicas == cp_sat_moves.least_replicas(problem), problem
        assert leaders == cp_sat_moves.least_leaders(problem, rows), problem
        assert replicas[0] == count_moves(problem, rows) == least_moves(problem), problem
        failed = {b for wish in problem.wishes for row in wish.offline for b in row}
        kept = {b for wish in problem.wishes for row in rows[wish.topic] for b in row}
        keeping += bool(failed & kept)
    assert keeping > INSTANCES // 50  # brokers with a failed directory keep what is in others


def draw_offline(random: Random) -> MoveProblem:
    """Draw rows that give up offline replicas, and no other."""
    problem = replace(draw(random, random.randint(2, 7), 3, 6), drained=frozenset())
    wishes = tuple(
        replace(wish, replication=None)
        for wish in problem.wishes
        if all(
            len((problem.eligible | set(row)).difference(offline)) >= len(row)
            for row, offline in zip(wish.rows, wish.offline, strict=False)
        )
    )
    if not any(any(wish.offline) for wish in wishes):
        return draw_offline(random)
    return replace(problem, wishes=wishes, goal=MoveGoal.OFFLINE_REPLICAS)


def draw_bounded(random: Random) -> MoveProblem:
    """Draw a rebalance in which some brokers take replicas up to a bound and others only give."""
    problem = draw(random, random.randint(2, 7), 3, 8)
    if len(problem.eligible) < 2 or problem.drained:
        return draw_bounded(random)
    takers = random.sample(sorted(problem.eligible), random.choice([1, 1, 2]))
    wishes = tuple(
        replace(wish, replication=None, rack_aware=random.random() > 0.6)
        for wish in problem.wishes
        if all(len(row) <= len(problem.eligible) for row in wish.rows)
    )
    if not wishes:
        return draw_bounded(random)
    return replace(
        problem,
        wishes=wishes,
        eligible=frozenset(takers),
        givers=problem.eligible.difference(takers),
        most={b: problem.replicas[b] + random.choice([0, 0, 1, 2, 4]) for b in takers},
        goal=MoveGoal.BALANCE,
    )


def test_a_rebalance_is_not_repeated() -> None:
    random = Random(f"{SEED} again")
    for _ in range(INSTANCES):
        problem = replace(draw(random, 6, 3, 6), goal=MoveGoal.BALANCE)
        rows = move_replicas(problem)
        again = apply_rows(problem, rows)
        assert move_replicas(again) == rows


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
        again = apply_rows(problem, move_replicas(problem))
        assert count_moves(again, move_replicas(again)) == 0


def apply_rows(problem: MoveProblem, rows: Mapping[str, Assignment]) -> MoveProblem:
    """Return the problem with these rows in place of its own."""
    leaders, replicas = Counter(problem.leaders), Counter(problem.replicas)
    for wish in problem.wishes:
        leaders.subtract(row[0] for row in wish.rows)
        replicas.subtract(b for row in wish.rows for b in row)
        leaders.update(row[0] for row in rows[wish.topic])
        replicas.update(b for row in rows[wish.topic] for b in row)
    wishes = tuple(replace(w, rows=rows[w.topic], in_sync=()) for w in problem.wishes)
    return replace(problem, wishes=wishes, leaders=leaders, replicas=replicas)
