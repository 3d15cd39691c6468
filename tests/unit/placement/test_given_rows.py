"""Given rows next to those of the strategy: as good, worse on one level, or invalid."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shorthand import brokers, rows

from reconciler.model.cluster import Broker
from reconciler.model.plan import Level
from reconciler.placement.given_rows import Judged
from reconciler.placement.given_rows import prefer_rows as prefer
from reconciler.placement.problem import Placed, Problem, Wish, count_load
from reconciler.placement.strategies import place_replicas

PLAIN = brokers(None, None, None)
RACKS = brokers("a", "a", "b", "b")


def state(
    wish: Wish, others: str = "", nodes: tuple[Broker, ...] = PLAIN, **more: object
) -> Problem:
    load = count_load([rows(others), wish.existing])
    return Problem(nodes, *load, (wish,), others=(rows(others),), **more)  # type: ignore[arg-type]


def judge(problem: Problem, given: str, strategy: str = "optimal") -> Judged:
    (wish,) = problem.wishes
    return prefer(problem, place_replicas(problem, strategy), {wish.topic: rows(given)})


def new(count: int, replication: int, existing: str = "") -> Wish:
    return Wish("t", rows(existing), count, replication)


def test_rows_that_only_share_next_leaders_less_evenly_are_used() -> None:
    problem = state(new(3, 2), others="1,2 2,3 3,1")
    fresh = place_replicas(problem)
    assert fresh.rows["t"] != rows("1,2 2,3 3,1")
    placed, objections = judge(problem, "1,2 2,3 3,1")
    assert objections == ()
    assert placed.rows == {"t": rows("1,2 2,3 3,1")}
    assert placed.levels[:4] == fresh.levels[:4]
    after, best = placed.levels[4], fresh.levels[4]
    assert (after.level, after.reached, after.skew) == (Level.NEXT_LEADERS, 12, 2)
    assert (best.reached, best.skew) == (6, 1)
    assert (after.bound, after.skew_bound) == (best.bound, best.skew_bound)


@pytest.mark.parametrize(
    ("wish", "others", "given", "said"),
    [
        pytest.param(
            new(1, 1, "1 2"),
            "",
            "1",
            "new rows spread the leaders of the topics more evenly (max − min 0 instead of 2, "
            "sum of squares 40 % lower)",
            id="leaders of the topic",
        ),
        pytest.param(
            new(2, 2, "1,2"),
            "",
            "2,1 3,1",
            "new rows spread the replicas of the topics more evenly (max − min 0 instead of 2, "
            "sum of squares 14 % lower)",
            id="replicas of the topic",
        ),
        pytest.param(
            new(1, 1),
            "1 2",
            "1",
            "new rows spread the leaders of the cluster more evenly (max − min 0 instead of 2, "
            "sum of squares 40 % lower)",
            id="leaders of the cluster",
        ),
        pytest.param(
            new(1, 2),
            "3,1",
            "1,3",
            "new rows spread the replicas of the cluster more evenly (max − min 1 instead of 2, "
            "sum of squares 25 % lower)",
            id="replicas of the cluster",
        ),
    ],
)
def test_the_first_worse_level_is_named(wish: Wish, others: str, given: str, said: str) -> None:
    problem = state(wish, others)
    placed, objections = judge(problem, given)
    assert objections == (said,)
    assert placed == place_replicas(problem)


def test_max_minus_min_is_left_out_if_it_is_the_same() -> None:
    nodes = brokers(None, None, None, None)
    problem = state(new(1, 1), others="1 1 1 1 1 1 1 1 1 4 4 4", nodes=nodes)
    (said,) = judge(problem, "4").objections
    assert said == (
        "new rows spread the leaders of the cluster more evenly (sum of squares 6.2 % lower)"
    )


def test_capacities_count() -> None:
    """A broker of twice the capacity is to lead twice as much."""
    problem = state(new(1, 1), others="1 2 3", capacity={1: 2})
    assert judge(problem, "1").objections == ()
    (said,) = judge(problem, "2").objections
    assert said.startswith("new rows spread the leaders of the cluster more evenly (")


def test_rows_that_are_better_than_those_of_the_strategy_are_used() -> None:
    """The fourth level of several topics is searched: an earlier plan may have found more."""
    problem = state(new(1, 2), others="3,1")
    good = place_replicas(problem)
    bad = rows("1,3")
    worse = Placed({"t": bad}, (*good.levels[:3], replace(good.levels[3], reached=8, bound=6)))
    worse = replace(worse, levels=(*worse.levels, *good.levels[4:]))
    assert prefer(problem, worse, good.rows).placed.rows == good.rows


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("1,3", "t: 1 rows for 2 new partitions"),
        ("1,3 2,4 3,1", "t: 3 rows for 2 new partitions"),
        ("1,3 2", "t partition 1: 1 replicas instead of 2"),
        ("1,3 2,4,1", "t partition 1: 3 replicas instead of 2"),
        ("1,3 2,2", "t partition 1: a broker twice in [2, 2]"),
        ("1,3 2,9", "t partition 1: brokers [9] may take nothing new"),
        ("1,3 2,1", "t partition 1: [2, 1] is not spread over the racks as evenly as they allow"),
    ],
)
def test_invalid_rows_are_not_used(given: str, said: str) -> None:
    problem = state(new(2, 2), nodes=RACKS)
    placed, objections = judge(problem, given)
    assert objections[0] == said
    assert placed == place_replicas(problem)


def test_rows_cover_exactly_the_topics_that_get_partitions() -> None:
    problem = state(new(1, 1))
    fresh = place_replicas(problem)
    both = prefer(problem, fresh, {"t": rows("1"), "u": rows("1")})
    assert both == Judged(fresh, ("u: rows without new partitions",))
    other = prefer(problem, fresh, {"u": rows("1")})
    assert other.objections == ("t: new partitions without rows", "u: rows without new partitions")
    assert prefer(problem, fresh, {}).objections == ("t: new partitions without rows",)


def test_the_same_rows_are_no_matter() -> None:
    problem = state(new(3, 2))
    fresh = place_replicas(problem)
    assert prefer(problem, fresh, fresh.rows) == Judged(fresh)


def test_a_strategy_that_follows_a_pattern_keeps_to_it() -> None:
    problem = state(new(3, 2))
    striped = place_replicas(problem, "striped")
    other = tuple(reversed(striped.rows["t"]))
    judged = prefer(problem, striped, {"t": other})
    assert judged == Judged(striped, ("the strategy of the cluster gives other rows now",))


def test_nothing_to_place_takes_no_rows() -> None:
    problem = Problem(PLAIN, {}, {}, ())
    assert prefer(problem, Placed({}), {}) == Judged(Placed({}))
    assert prefer(problem, Placed({}), {"u": rows("1")}).objections


def judge_amounts(loads: dict[int, int], given: str) -> Judged:
    """Judge one new replica of 100 units next to these loads, where replicas bear amounts."""
    wish = Wish("t", (), 1, 1, weight=100)
    problem = Problem(PLAIN, {1: 0, 2: 0, 3: 0}, loads, (wish,))
    placed = place_replicas(problem)
    return prefer(problem, placed, {"t": rows(given)}, {Level.CLUSTER_REPLICAS})


def test_what_growth_explains_is_no_objection() -> None:
    """Broker 1 was the emptiest before it grew by a tenth."""
    placed, objections = judge_amounts({1: 1100, 2: 1010, 3: 2000}, "1")
    assert (placed.rows, objections) == ({"t": rows("1")}, ())


def test_what_growth_does_not_explain_is_an_objection() -> None:
    placed, (objection,) = judge_amounts({1: 1400, 2: 1010, 3: 2000}, "1")
    assert placed.rows == {"t": rows("2")}
    assert "replicas of the cluster more evenly" in objection


def test_counts_do_not_grow_by_themselves() -> None:
    wish = Wish("t", (), 1, 1)
    problem = Problem(PLAIN, {1: 0, 2: 0, 3: 0}, {1: 110, 2: 101, 3: 200}, (wish,))
    assert prefer(problem, place_replicas(problem), {"t": rows("1")}).objections
