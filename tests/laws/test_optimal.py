"""The proof that `optimal` is optimal: thousands of small problems against trying everything.

The gate tries hundreds, `make test-slow` thousands. Repeat a run of these with
`HYPOTHESIS_PROFILE=thorough RECONCILER_SEED=… pytest tests/laws/test_optimal.py`.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

import cp_sat
import exhaustive
import pytest
from instances import draw_problem
from sizes import choose

from reconciler.placement import optimal
from reconciler.placement.problem import Placed, Problem, count_load
from reconciler.placement.strategies import place_replicas
from reconciler.placement.striped import place_striped

SEED = int(os.environ.get("RECONCILER_SEED", "20261121"))


@dataclass
class Agreement:
    """What comparing the strategy with the exhaustive search found."""

    instances: int = 0
    first_three: list[str] = field(default_factory=list)
    fourth: list[str] = field(default_factory=list)
    better_than_best: list[str] = field(default_factory=list)
    false_bounds: list[str] = field(default_factory=list)

    def compare(self, problem: Problem) -> None:
        placed = place_replicas(problem)
        reached = measure(problem, placed)
        best = exhaustive.search(problem)
        case = f"{problem}: reached {reached}, best {best}"
        self.instances += 1
        if reached[:3] != best[:3]:
            self.first_three.append(case)
        elif reached[3] != best[3]:
            self.fourth.append(case)
        if reached < best:
            self.better_than_best.append(case)
        bounds = [level.bound for level in placed.levels[:4]]
        if any(bound > least for bound, least in zip(bounds, best, strict=True)):
            self.false_bounds.append(f"{case}, bounds {bounds}")
        assert [level.reached for level in placed.levels[:4]] == list(reached), case


def measure(problem: Problem, placed: Placed) -> exhaustive.Optimum:
    """Count the four levels from the rows alone."""
    ids = [broker.id for broker in problem.brokers]
    topics = [count_load([wish.existing, placed.rows[wish.topic]]) for wish in problem.wishes]
    leaders, replicas = Counter(problem.leaders), Counter(problem.replicas)
    for wish in problem.wishes:
        led, held = count_load([placed.rows[wish.topic]])
        leaders.update({broker: wish.leader_weight * n for broker, n in led.items()})
        replicas.update({broker: wish.weight * n for broker, n in held.items()})
    prices = exhaustive.price_of_loads(problem)
    return exhaustive.Optimum(
        sum(exhaustive.squares(led[b] for b in ids) for led, _ in topics),
        sum(exhaustive.squares(held[b] for b in ids) for _, held in topics),
        exhaustive.scaled([leaders[b] for b in ids], prices),
        exhaustive.scaled([replicas[b] for b in ids], prices),
    )


def agree(seed: int, instances: int, topics: tuple[int, ...], **size: int) -> Agreement:
    rng = Random(seed)
    agreement = Agreement()
    for _ in range(instances):
        agreement.compare(draw_problem(rng, rng.choice(topics), **size))
    print(  # noqa: T201 (what pytest -s shows of a run of the proof)
        f"seed {seed}: {instances} instances of {topics} topics, {size}: "
        f"levels 1-3 differ in {len(agreement.first_three)}, level 4 in {len(agreement.fourth)}"
    )
    assert not agreement.first_three
    assert not agreement.better_than_best
    assert not agreement.false_bounds
    return agreement


def test_one_topic_is_optimal_on_all_four_levels() -> None:
    assert agree(SEED, choose(500, 3000), (1,), partitions=4).fourth == []


def test_several_topics_are_jointly_optimal_on_three_levels_and_nearly_always_on_the_fourth() -> (
    None
):
    agreement = agree(SEED + 1, choose(400, 2500), (2, 2, 3), partitions=2)
    assert len(agreement.fourth) <= 0.005 * agreement.instances


def test_the_bulk_way_holds_the_same_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimal, "_pays_in_bulk", lambda _: True)
    assert agree(SEED + 4, choose(100, 600), (1,), partitions=4).fourth == []
    several = agree(SEED + 5, choose(100, 600), (2, 3), partitions=2)
    assert len(several.fourth) <= 0.005 * several.instances


@pytest.mark.slow
def test_one_topic_is_optimal_on_larger_problems_too() -> None:
    assert agree(SEED + 2, 6000, (1,), brokers=6, partitions=4).fourth == []


@pytest.mark.slow
def test_several_topics_agree_on_larger_problems_too() -> None:
    agreement = agree(SEED + 3, 6000, (2, 2, 3, 4), brokers=6, partitions=3)
    assert len(agreement.fourth) <= 0.005 * agreement.instances


@pytest.mark.slow
def test_the_fourth_level_of_up_to_eight_topics_is_rarely_missed() -> None:
    """What is proven needs no search: its bound is met, and bounds are compared elsewhere."""
    rng = Random(SEED + 6)
    problems = [draw_problem(rng, rng.randint(2, 8), partitions=2) for _ in range(1500)]
    missed = []
    for problem in problems:
        level = place_replicas(problem).levels[3]
        if not level.proven and level.reached != exhaustive.search(problem)[3]:
            missed.append(problem)
    assert len(missed) <= 0.002 * len(problems), missed


def test_merging_equal_sums_changes_nothing_in_the_exhaustive_search() -> None:
    rng = Random(SEED)
    for _ in range(choose(30, 150)):
        problem = draw_problem(rng, rng.choice((1, 2)), brokers=4, partitions=2)
        assert exhaustive.search(problem) == exhaustive.search_partitions(problem), problem


def test_cp_sat_agrees_with_the_exhaustive_search_and_with_the_strategy() -> None:
    rng = Random(SEED)
    for _ in range(choose(10, 40)):
        problem = draw_problem(rng, rng.choice((1, 2)), partitions=2)
        best = cp_sat.solve(problem)
        assert best == exhaustive.search(problem), problem
        assert measure(problem, place_replicas(problem))[:3] == best[:3], problem


def test_loads_are_weighed_by_capacity_as_exactly() -> None:
    rng = Random(SEED)
    for _ in range(choose(100, 500)):
        problem = draw_problem(rng, rng.choice((1, 1, 2)), partitions=2)
        capacity = {broker.id: rng.choice((1, 2, 4)) for broker in problem.brokers}
        problem = replace(problem, capacity=capacity)
        levels = 4 if len(problem.wishes) == 1 else 3
        reached = measure(problem, place_replicas(problem))
        assert reached[:levels] == exhaustive.search(problem)[:levels], problem


def test_leaders_and_replicas_of_one_topic_are_weighed_apart_as_exactly() -> None:
    rng = Random(SEED)
    for _ in range(choose(100, 500)):
        problem = draw_problem(rng, 1, partitions=3)
        (wish,) = problem.wishes
        wish = replace(wish, weight=rng.choice((1, 7)), leader_weight=rng.choice((1, 5)))
        problem = replace(
            problem,
            wishes=(wish,),
            leaders={
                b: n * wish.leader_weight + rng.choice((0, 2)) for b, n in problem.leaders.items()
            },
            replicas={b: n * wish.weight + rng.choice((0, 3)) for b, n in problem.replicas.items()},
        )
        placed = place_replicas(problem)
        assert measure(problem, placed) == exhaustive.search(problem), problem
        assert all(level.proven for level in placed.levels[:4])


def test_leaders_of_one_weight_are_exact_where_replicas_weigh_differently() -> None:
    rng = Random(SEED)
    for _ in range(choose(20, 300)):
        problem = draw_problem(rng, 2, partitions=2)
        wishes = tuple(replace(wish, weight=rng.choice((1, 7))) for wish in problem.wishes)
        problem = replace(problem, wishes=wishes)
        placed = place_replicas(problem)
        best = exhaustive.search(problem)
        assert measure(problem, placed)[:3] == best[:3], problem
        assert all(a.bound <= b for a, b in zip(placed.levels[:4], best, strict=True)), problem


def test_the_comparison_notices_a_strategy_that_is_not_optimal() -> None:
    rng = Random(SEED)
    problems = [draw_problem(rng, 1) for _ in range(50)]
    worse = [
        problem
        for problem in problems
        if measure(problem, Placed(place_striped(problem))) > exhaustive.search(problem)
    ]
    assert worse
