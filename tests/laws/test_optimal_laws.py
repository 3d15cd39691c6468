"""What holds of placement whatever the problem: one answer, sound rows, steady growth."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from instances import draw_problem
from sizes import choose

import reconciler
from reconciler.model.cluster import Assignment, Broker
from reconciler.model.plan import Level
from reconciler.placement import optimal
from reconciler.placement.check import check_placement
from reconciler.placement.measure import measure_balance
from reconciler.placement.problem import Problem, Wish, count_load
from reconciler.placement.strategies import place_replicas

HERE = Path(__file__).parent
SEED = int(os.environ.get("RECONCILER_SEED", "20261121"))


def mixed_problem(seed: int, topics: int) -> Problem:
    """Unequal racks, load that is not flat, expansions among the new topics."""
    rng = Random(seed)
    brokers = tuple(Broker(b, f"r{min(b % 5, 3)}") for b in range(11))
    wishes = []
    for t in range(topics):
        grown = t % 7 == 0
        rows = tuple(tuple(rng.sample(range(11), 3)) for _ in range(4 if grown else 0))
        wishes.append(Wish(f"topic-{t}", rows, rng.choice((1, 3, 8)), 3))
    leaders, replicas = count_load([wish.existing for wish in wishes])
    return Problem(brokers, leaders, replicas, tuple(wishes))


@pytest.fixture(params=["exact", "bulk"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to place new topics, whatever their number."""
    monkeypatch.setattr(optimal, "_pays_in_bulk", lambda _: request.param == "bulk")
    return str(request.param)


def test_the_order_of_wishes_and_brokers_changes_nothing(way: str) -> None:
    rng = Random(SEED)
    problem = mixed_problem(SEED, 40)
    placed = place_replicas(problem)
    for _ in range(5):
        wishes, brokers = list(problem.wishes), list(problem.brokers)
        rng.shuffle(wishes)
        rng.shuffle(brokers)
        again = place_replicas(replace(problem, wishes=tuple(wishes), brokers=tuple(brokers)))
        assert dict(again.rows) == dict(placed.rows)
        assert again.levels == placed.levels


DIGEST = """
import hashlib, sys
sys.path[:0] = {here!r}
from test_optimal_laws import mixed_problem
from reconciler.placement import optimal
from reconciler.placement.strategies import place_replicas
for bulk in (True, False):
    optimal._pays_in_bulk = lambda _: bulk
    placed = place_replicas(mixed_problem(3, 40))
    print(hashlib.sha256(repr((sorted(placed.rows.items()), placed.levels)).encode()).hexdigest())
"""


def test_the_hash_seed_changes_nothing() -> None:
    answers = {_digest(seed) for seed in ("0", "1", "4711")}
    assert len(answers) == 1


def _digest(hash_seed: str) -> str:
    root = str(Path(reconciler.__file__).parents[1])
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": root}
    command = [sys.executable, "-c", DIGEST.format(here=[str(HERE), str(HERE.parent)])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert len(done.stdout.split()) == 2
    return done.stdout


@pytest.mark.parametrize("strategy", ["optimal", "striped"])
def test_the_checker_accepts_every_answer(strategy: str, way: str) -> None:
    rng = Random(SEED)
    for _ in range(choose(30, 150)):
        problem = draw_problem(rng, rng.randint(1, 5), brokers=9, partitions=14)
        placed = place_replicas(problem, strategy)
        assert check_placement(problem, placed.rows) == (), problem


def test_both_ways_reach_the_same_on_the_first_three_levels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = Random(SEED)
    for _ in range(choose(12, 60)):
        problem = draw_problem(rng, rng.randint(3, 12), brokers=8, partitions=9)
        reached = []
        for bulk in (True, False):
            monkeypatch.setattr(optimal, "_pays_in_bulk", lambda _, bulk=bulk: bulk)
            reached.append([level.reached for level in place_replicas(problem).levels][:3])
        assert reached[0] == reached[1], problem


def test_rows_are_tuples_of_plain_integers(way: str) -> None:
    for rows in place_replicas(mixed_problem(5, 10)).rows.values():
        assert type(rows) is tuple
        assert {type(row) for row in rows} == {tuple}
        assert {type(broker) for row in rows for broker in row} == {int}


def test_a_small_plan_does_not_import_numpy() -> None:
    code = (
        "import sys\n"
        "from reconciler.model.cluster import Broker\n"
        "from reconciler.placement.problem import Problem, Wish\n"
        "from reconciler.placement.strategies import place_replicas\n"
        "brokers = tuple(Broker(b) for b in range(6))\n"
        "wishes = tuple(Wish(f't{t}', (), 12, 3) for t in range(10))\n"
        "place_replicas(Problem(brokers, {}, {}, wishes))\n"
        "assert 'numpy' not in sys.modules\n"
    )
    root = str(Path(reconciler.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_grown_one_at_a_time_a_topic_stays_within_one() -> None:
    """Six brokers in three racks, to 24 partitions: no step is ever above one."""
    brokers = tuple(Broker(b, f"r{b % 3}") for b in range(6))
    rows: tuple[tuple[int, ...], ...] = ()
    for _ in range(24):
        leaders, replicas = count_load([rows])
        problem = Problem(brokers, leaders, replicas, (Wish("orders", rows, 1, 3),))
        rows += place_replicas(problem).rows["orders"]
        balance = measure_balance([rows], range(6))
        assert balance.leaders.skew <= 1
        assert balance.replicas.skew <= 1


def test_growing_step_by_step_is_never_better_than_at_once_and_seldom_worse() -> None:
    rng = Random(SEED)
    steps = same = 0
    for _ in range(choose(10, 25)):
        problem = draw_problem(rng, 1, brokers=6, partitions=1)
        wish = problem.wishes[0]
        rows = wish.existing
        for total in range(1, 13):
            leaders, replicas = _load_beside(problem, wish, rows)
            step = replace(wish, existing=rows, count=1)
            grown = place_replicas(Problem(problem.brokers, leaders, replicas, (step,)))
            rows += grown.rows[wish.topic]
            whole = place_replicas(replace(problem, wishes=(replace(wish, count=total),)))
            one_by_one = [level.reached for level in grown.levels[:2]]
            at_once = [level.reached for level in whole.levels[:2]]
            assert one_by_one >= at_once
            steps += 1
            same += one_by_one == at_once
    assert same >= 0.9 * steps


def _load_beside(
    problem: Problem, wish: Wish, rows: Assignment
) -> tuple[dict[int, int], dict[int, int]]:
    new_leaders, new_replicas = count_load([rows[len(wish.existing) :]])
    leaders = {b.id: problem.leaders.get(b.id, 0) + new_leaders[b.id] for b in problem.brokers}
    replicas = {b.id: problem.replicas.get(b.id, 0) + new_replicas[b.id] for b in problem.brokers}
    return leaders, replicas


def test_the_leaders_of_a_lost_broker_go_to_many_next_leaders() -> None:
    """Nine brokers in three racks: each has six possible heirs, and uses most of them."""
    brokers = tuple(Broker(b, f"r{b % 3}") for b in range(9))
    placed = place_replicas(Problem(brokers, {}, {}, (Wish("orders", (), 90, 3),)))
    for leader in range(9):
        heirs = [row[1] for row in placed.rows["orders"] if row[0] == leader]
        assert max(map(heirs.count, heirs)) <= 0.5 * len(heirs)


def test_capacity_draws_the_cluster_after_it_and_leaves_topics_even() -> None:
    brokers = tuple(Broker(b) for b in range(4))
    wishes = tuple(Wish(f"t{t}", (), 1, 1) for t in range(60))
    placed = place_replicas(Problem(brokers, {}, {}, wishes, capacity={0: 3}))
    leaders, _ = count_load(placed.rows.values())
    assert dict(leaders) == {0: 30, 1: 10, 2: 10, 3: 10}


def test_weights_level_what_partitions_weigh_and_not_their_number() -> None:
    brokers = tuple(Broker(b) for b in range(3))
    heavy = Wish("heavy", (), 1, 1, weight=10, leader_weight=10)
    light = tuple(Wish(f"light-{t:02}", (), 1, 1) for t in range(20))
    placed = place_replicas(Problem(brokers, {}, {}, (heavy, *light)))
    on_heavy = placed.rows["heavy"][0][0]
    lights = [placed.rows[wish.topic][0][0] for wish in light]
    assert sorted([lights.count(b) + 10 * (b == on_heavy) for b in range(3)]) == [10, 10, 10]


def test_a_bound_that_is_not_met_is_said_to_be_unproven() -> None:
    rng = Random(SEED)
    results = [place_replicas(draw_problem(rng, 3)).levels for _ in range(200)]
    by_level = {level: [result[i] for result in results] for i, level in enumerate(Level)}
    for level in (Level.TOPIC_LEADERS, Level.TOPIC_REPLICAS, Level.CLUSTER_LEADERS):
        assert all(result.proven for result in by_level[level])
    fourth = [result.proven for result in by_level[Level.CLUSTER_REPLICAS]]
    assert any(fourth)
    assert not all(fourth)
