"""CP-SAT's opinion on the best placement: counts as variables, one solve for each level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from exhaustive import Optimum, squares
from ortools.sat.python import cp_model

from reconciler.placement.problem import Problem, Wish

Terms = Sequence[cp_model.LinearExpr]


def solve(problem: Problem) -> Optimum:
    """Return the lexicographically least levels."""
    model = cp_model.CpModel()
    ids = [broker.id for broker in problem.brokers]
    led = {b: [] for b in ids}
    held = {b: [] for b in ids}
    own: tuple[list[cp_model.IntVar], list[cp_model.IntVar]] = ([], [])
    for wish in problem.wishes:
        leaders = {b: model.new_int_var(0, wish.count, "") for b in ids}
        replicas = {b: model.new_int_var(0, wish.count, "") for b in ids}
        _constrain(model, problem, wish, leaders, replicas)
        for b in ids:
            led[b].append(leaders[b])
            held[b].append(replicas[b])
            own[0].append(square(model, leaders[b] + sum(r[0] == b for r in wish.existing)))
            own[1].append(square(model, replicas[b] + sum(b in r for r in wish.existing)))
    cluster = [
        [square(model, sum(new[b]) + now.get(b, 0)) for b in ids]
        for new, now in ((led, problem.leaders), (held, problem.replicas))
    ]
    return Optimum(*(least(model, sum(level)) for level in (*own, *cluster)))


def _constrain(
    model: cp_model.CpModel,
    problem: Problem,
    wish: Wish,
    leaders: dict[int, cp_model.IntVar],
    replicas: dict[int, cp_model.IntVar],
) -> None:
    model.add(sum(leaders.values()) == wish.count)
    model.add(sum(replicas.values()) == wish.count * wish.replication)
    for broker, leads in leaders.items():
        model.add(leads <= replicas[broker])
    for members, low, high in rack_bounds(problem, wish):
        held = sum(replicas[b] for b in members)
        model.add(held >= low * wish.count)
        model.add(held <= high * wish.count)


def rack_bounds(problem: Problem, wish: Wish) -> list[tuple[list[int], int, int]]:
    """Return brokers of each rack, with the fewest and most replicas of one row, by trying."""
    rack = {b.id: (b.rack or "") if wish.rack_aware else "" for b in problem.brokers}
    counts = [Counter(rack[b] for b in s) for s in combinations(rack, wish.replication)]
    least = min(squares(c.values()) for c in counts)
    even = [c for c in counts if squares(c.values()) == least]
    return [
        (
            [b for b in rack if rack[b] == name],
            min(c[name] for c in even),
            max(c[name] for c in even),
        )
        for name in set(rack.values())
    ]


def square(model: cp_model.CpModel, expression: cp_model.LinearExprT) -> cp_model.IntVar:
    value = model.new_int_var(0, 1000, "")
    squared = model.new_int_var(0, 1_000_000, "")
    model.add(value == expression)
    model.add_multiplication_equality(squared, [value, value])
    return squared


def least(model: cp_model.CpModel, level: cp_model.LinearExprT) -> int:
    """Minimise a level and hold it there for those that follow."""
    model.minimize(level)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.cp_model_probing_level = 0  # it takes longer than to solve what is so small
    assert solver.solve(model) == cp_model.OPTIMAL
    found = round(solver.objective_value)
    model.add(level == found)
    return found
