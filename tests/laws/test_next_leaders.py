"""Levels five and six against trying everything, and what holds of them whatever the problem.

Both are searched for, not solved. So the laws are: bounds are never above the best placement, the
answer is never below it, and it is the best one as often as was measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from exhaustive_next_leaders import Space, TooMany
from instances import draw_problem
from sizes import choose
from takeovers import count_takeovers

import reconciler
from reconciler.model.cluster import Assignment, Broker
from reconciler.placement import optimal
from reconciler.placement.check import check_placement
from reconciler.placement.next_leaders import NextLeaders, arrange
from reconciler.placement.problem import Placed, Problem, Wish, count_load
from reconciler.placement.strategies import place_replicas

HERE = Path(__file__).parent
SEED = int(os.environ.get("RECONCILER_SEED", "20261122"))


@dataclass
class Agreement:
    """What comparing the strategy with all placements found."""

    instances: int = 0
    fourth: int = 0
    fifth: int = 0
    sixth: int = 0
    better_than_best: list[str] = field(default_factory=list)
    false_bounds: list[str] = field(default_factory=list)
    false_proofs: list[str] = field(default_factory=list)

    @property
    def best(self) -> float:
        """The share of answers that are the best placement on all six levels."""
        return 1 - (self.fourth + self.fifth + self.sixth) / self.instances

    def compare(self, problem: Problem) -> None:
        """Errors: TooMany."""
        space = Space(problem)
        best = space.search()
        placed = place_replicas(problem)
        reached, mosts = space.measure(placed.rows)
        case = f"{problem}: levels {placed.levels}, best {best}"
        assert check_placement(problem, placed.rows) == (), case
        assert tuple(level.reached for level in placed.levels) == reached, case
        assert tuple(level.skew for level in placed.levels[4:]) == mosts, case
        self.instances += 1
        wrong = [one != other for one, other in zip(reached, best.levels, strict=True)]
        if any(wrong[:4]):
            self.fourth += 1
        elif any(wrong):
            self.fifth += wrong[4]
            self.sixth += not wrong[4]
        if reached < best.levels:
            self.better_than_best.append(case)
        bounds = zip(placed.levels[4:], best.least, best.least_most, strict=True)
        for level, least, least_most in bounds:
            assert level.skew_bound is not None
            if level.bound > least or level.skew_bound > least_most:
                self.false_bounds.append(case)
        if all(level.proven for level in placed.levels) and any(wrong):
            self.false_proofs.append(case)


def agree(seed: int, instances: int, topics: tuple[int, ...], **size: int) -> Agreement:
    """Compare so many problems with a next leader in them."""
    rng = Random(seed)
    agreement = Agreement()
    while agreement.instances < instances:
        problem = draw_problem(rng, rng.choice(topics), **size)
        if max(wish.replication for wish in problem.wishes) > 1:
            try:
                agreement.compare(problem)
            except TooMany:
                continue
    print(  # noqa: T201 (what pytest -s shows of a run of the proof)
        f"seed {seed}: {instances} instances of {topics} topics, {size}: best {agreement.best:.3f},"
        f" levels 1-4 differ in {agreement.fourth}, 5 in {agreement.fifth}, 6 in {agreement.sixth}"
    )
    assert not agreement.better_than_best
    assert not agreement.false_bounds
    assert not agreement.false_proofs
    return agreement


@pytest.mark.parametrize(
    ("topics", "size", "share"),
    [
        ((1,), {"brokers": 5, "partitions": 4}, 0.95),
        ((1,), {"brokers": 6, "partitions": 2}, 0.95),
        ((2, 2, 3), {"brokers": 4, "partitions": 2}, 0.92),
    ],
    ids=["one topic", "one small topic", "several topics"],
)
def test_the_answer_is_the_best_placement_as_often_as_measured(
    topics: tuple[int, ...], size: dict[str, int], share: float
) -> None:
    agreement = agree(SEED + sum(topics), choose(150, 2000), topics, **size)
    assert agreement.fourth <= 0.005 * agreement.instances
    assert agreement.best >= share


def test_the_bulk_way_is_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimal, "_pays_in_bulk", lambda _: True)
    assert agree(SEED, choose(80, 1000), (1, 2), brokers=4, partitions=3).best >= 0.90


def test_the_comparison_notices_an_answer_that_is_not_the_best() -> None:
    """Followers in ascending order: the fifth level differs in many problems."""
    rng, worse = Random(SEED), 0
    for _ in range(40):
        problem = draw_problem(rng, 1, brokers=4, partitions=3)
        space, rows = Space(problem), place_replicas(problem).rows
        ascending = {t: tuple((r[0], *sorted(r[1:])) for r in a) for t, a in rows.items()}
        reached = space.measure(ascending)[0]
        assert reached[:4] == space.search().levels[:4]
        worse += reached > space.search().levels
    assert worse > 0


@pytest.mark.parametrize("bulk", [False, True])
def test_levels_five_and_six_are_those_of_all_rows(
    bulk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On clusters that are too large to try everything."""
    monkeypatch.setattr(optimal, "_pays_in_bulk", lambda _: bulk)
    rng = Random(SEED)
    for _ in range(choose(15, 200)):
        problem = draw_problem(rng, rng.randint(1, 6), brokers=9, partitions=14)
        placed = place_replicas(problem)
        assert check_placement(problem, placed.rows) == ()
        reached, mosts = Space(problem).measure(placed.rows)
        assert tuple(level.reached for level in placed.levels) == reached
        assert tuple(level.skew for level in placed.levels[4:]) == mosts
        for level in placed.levels[4:]:
            assert level.bound <= level.reached
            assert level.skew_bound is not None
            assert level.skew_bound <= level.skew


def place_thousands(
    sizes: tuple[int, ...], counts: tuple[int, ...], replications: tuple[int, ...]
) -> Placed:
    """Place 2,000 topics of many kinds on racks of these sizes, and check it."""
    rng = Random(SEED)
    racks = [f"r{j}" for j, size in enumerate(sizes) for _ in range(size)]
    brokers = tuple(Broker(b, rack) for b, rack in enumerate(racks))
    wishes = tuple(
        Wish(f"topic-{t}", (), rng.choice(counts), rng.choice(replications)) for t in range(2000)
    )
    problem = Problem(brokers, {}, {}, wishes)
    placed = place_replicas(problem)
    assert check_placement(problem, placed.rows) == ()
    reached, _ = Space(problem).measure(placed.rows)
    assert tuple(level.reached for level in placed.levels) == reached
    return placed


@pytest.mark.parametrize(
    ("sizes", "counts", "replications"),
    [
        ((25, 20, 15, 12, 10, 8), (1, 2, 3, 4, 6, 8, 10, 12), (1, 2, 3, 4)),
        pytest.param((45, 45), (3, 6, 9), (3,), marks=pytest.mark.slow),
    ],
)
def test_thousands_of_topics_of_many_kinds_meet_the_bound_of_level_five(
    sizes: tuple[int, ...], counts: tuple[int, ...], replications: tuple[int, ...]
) -> None:
    assert place_thousands(sizes, counts, replications).levels[4].proven


def test_unequal_racks_of_one_replica_each_are_near_the_least_of_even_leaders() -> None:
    """The bound lets brokers of small racks lead more, which level 3 forbids: it is 3 % too low.

    With even leaders, who is next after each is spread over the brokers of the other two racks.
    """
    sizes = (50, 40, 30)
    placed = place_thousands(sizes, (6, 12), (3,))
    rows = sum(map(len, placed.rows.values()))
    led, more = divmod(rows, sum(sizes))
    least, prices = 0, list[int]()
    for size in sizes:
        level, rest = divmod(led, sum(sizes) - size)
        least += size * (rest * (level + 1) ** 2 + (sum(sizes) - size - rest) * level**2)
        prices += [2 * level + 1] * size
    least += sum(sorted(prices)[:more])
    assert 0 <= placed.levels[4].reached - least <= least // 1000
    assert placed.levels[4].bound < least


def test_ties_between_rows_leave_the_levels_above_as_they_are_shown() -> None:
    """Also between brokers whose capacities differ: there a tie of squares may change max − min."""
    rng = Random(SEED)
    for _ in range(choose(150, 1500)):
        problem = draw_problem(rng, rng.choice((1, 2)), partitions=6)
        capacity = {broker.id: rng.choice((1, 2, 3, 6)) for broker in problem.brokers}
        placed = place_replicas(replace(problem, capacity=capacity))
        shown = [level.skew for level in placed.levels[2:4]]
        for old, new, skew in zip(
            (problem.leaders, problem.replicas),
            count_load(placed.rows.values()),
            shown,
            strict=True,
        ):
            loads = [old.get(broker.id, 0) + new[broker.id] for broker in problem.brokers]
            assert max(loads) - min(loads) == skew, problem


def test_who_is_next_is_chosen_as_if_all_orders_were_tried() -> None:
    rng = Random(SEED)
    for _ in range(choose(150, 1500)):
        problem = draw_problem(rng, 1, brokers=6)
        table = NextLeaders.count(problem)
        row = rng.sample(range(len(table.rack_of)), rng.randint(1, min(4, len(table.rack_of))))
        ranks = rng.sample(range(9), 9)
        before = table.price()
        price, one = table.choose(row[0], row[1:], ranks)
        arranged = arrange(one, row[1:], ranks)
        assert sorted(arranged) == sorted(row)
        assert table.find(arranged) == one
        table.add(one)
        assert table.price() - before == price == table.refund(one)
        table.add(one, -1)
        for order in permutations(row[1:]):
            other = table.find([row[0], *order])
            table.add(other)
            assert table.price() - before >= price
            table.add(other, -1)


def shuffle(rng: Random, problem: Problem) -> Problem:
    wishes, brokers = list(problem.wishes), list(problem.brokers)
    others = list(problem.others)
    rng.shuffle(wishes)
    rng.shuffle(brokers)
    rng.shuffle(others)
    return replace(problem, wishes=tuple(wishes), brokers=tuple(brokers), others=tuple(others))


def occupied_problem(seed: int, topics: int) -> Problem:
    """Draw expansions and new topics on a cluster with three topics that are not wished."""
    rng = Random(seed)
    problem = draw_problem(rng, topics, brokers=9, partitions=8)
    ids = [broker.id for broker in problem.brokers]
    width = min(3, len(ids))
    others = [tuple(tuple(rng.sample(ids, width)) for _ in range(9)) for _ in range(3)]
    return replace(problem, others=(*problem.others, *others))


@pytest.mark.parametrize("bulk", [False, True])
def test_the_order_of_wishes_brokers_and_others_changes_nothing(
    bulk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optimal, "_pays_in_bulk", lambda _: bulk)
    rng = Random(SEED)
    for seed in range(choose(3, 30)):
        problem = occupied_problem(seed, 6)
        placed = place_replicas(problem)
        for _ in range(2):
            again = place_replicas(shuffle(rng, problem))
            assert dict(again.rows) == dict(placed.rows)
            assert again.levels == placed.levels


DIGEST = """
import hashlib, sys
sys.path[:0] = {here!r}
from test_next_leaders import occupied_problem
from reconciler.placement import optimal
from reconciler.placement.strategies import place_replicas
for bulk in (True, False):
    optimal._pays_in_bulk = lambda _: bulk
    placed = [place_replicas(occupied_problem(seed, 6)) for seed in range(3)]
    shown = [(sorted(one.rows.items()), one.levels) for one in placed]
    print(hashlib.sha256(repr(shown).encode()).hexdigest())
"""


def test_the_hash_seed_changes_nothing() -> None:
    root = str(Path(reconciler.__file__).parents[1])
    code = DIGEST.format(here=[str(HERE), str(HERE.parent)])
    answers = set()
    for seed in ("0", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert len(done.stdout.split()) == 2
        answers.add(done.stdout)
    assert len(answers) == 1


def test_topics_planned_one_by_one_are_near_one_joint_plan() -> None:
    rng = Random(SEED)
    for _ in range(choose(5, 40)):
        racks, size = rng.choice([(3, 2), (3, 3), (4, 2), (5, 2), (1, 5)])
        nodes = tuple(Broker(b, f"r{b % racks}") for b in range(racks * size))
        wishes = tuple(Wish(f"topic-{t}", (), rng.randint(1, 12), 3) for t in range(40))
        live: list[Assignment] = []
        for wish in wishes:
            problem = Problem(nodes, *count_load(live), (wish,), others=tuple(live))
            live.append(place_replicas(problem).rows[wish.topic])
        together = place_replicas(Problem(nodes, {}, {}, wishes)).rows
        apart = count_takeovers(nodes, live).squares
        for one, other in zip(
            apart, count_takeovers(nodes, together.values()).squares, strict=True
        ):
            assert one <= 1.05 * other
