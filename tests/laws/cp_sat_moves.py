"""CP-SAT's opinion on the best moves: a variable for each replica, one solve for each level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from cp_sat import least, square
from ortools.sat.python import cp_model

from reconciler.model.cluster import Assignment, Replicas
from reconciler.placement.moving.problem import MoveGoal, MoveProblem, MoveWish

Chosen = dict[tuple[str, int, int], cp_model.IntVar]
"""Whether a partition of a topic has a replica, or its preferred leader, on a broker."""


def least_replicas(problem: MoveProblem) -> tuple[int, ...]:
    """Return the least of each level of replicas, in the order of the goal."""
    model = cp_model.CpModel()
    chosen: Chosen = {}
    moved, lagging, dropped = [], [], []
    for wish in problem.wishes:
        for p, row in enumerate(wish.rows):
            touched, wanted = _is_touched(problem, wish, p), _wanted(wish, row)
            mine = {b: model.new_bool_var("") for b in _candidates(problem, wish, p)}
            chosen |= {(wish.topic, p, b): take for b, take in mine.items()}
            model.add(sum(mine.values()) == wanted)
            if not touched:
                continue
            moved += [take for b, take in mine.items() if b not in row]
            lagging += [v for b, v in mine.items() if b in row and b not in _in_sync(wish, p)]
            if (leader := _find_leader(problem, wish, p)) is not None:
                dropped.append(1 - mine[leader])
            if wish.rack_aware:
                _spread(model, problem, mine)
    for broker, most in problem.most.items():
        held = problem.replicas.get(broker, 0)
        before = sum(broker in row for wish in problem.wishes for row in wish.rows)
        now = sum(take for (*_, b), take in chosen.items() if b == broker)
        model.add(held - before + now <= max(most, held))
    levels = _squares(model, problem, chosen, problem.replicas, [*range(10)])
    if problem.goal is MoveGoal.BALANCE:
        return tuple(least(model, sum(level)) for level in (*levels, moved))
    return tuple(least(model, sum(level)) for level in (moved, lagging, dropped, *levels))


def least_leaders(problem: MoveProblem, rows: Mapping[str, Assignment]) -> tuple[int, ...]:
    """Return the least of each level of leaders, of these replicas: topics, cluster, changed."""
    model = cp_model.CpModel()
    chosen: Chosen = {}
    changed = []
    alive = {broker.id for broker in problem.brokers if broker.alive}
    for wish in problem.wishes:
        for p, (old, new) in enumerate(zip(wish.rows, rows[wish.topic], strict=True)):
            leading = problem.eligible | problem.givers | {old[0]}
            able = [b for b in new if b in leading] or [*new]
            able = [b for b in able if b in alive] or able
            offline = wish.offline[p] if wish.offline else ()
            able = [b for b in able if b not in offline] or able
            if problem.goal is not MoveGoal.BALANCE and _find_leader(problem, wish, p) == old[0]:
                able = [old[0]] if old[0] in new else able
            for b in able:
                chosen[wish.topic, p, b] = model.new_bool_var("")
                changed += [chosen[wish.topic, p, b]] if b != old[0] else []
            model.add(sum(chosen[wish.topic, p, b] for b in able) == 1)
    levels = _squares(model, problem, chosen, problem.leaders, [0])
    return tuple(least(model, sum(level)) for level in (*levels, changed))


def measure(
    problem: MoveProblem, rows: Mapping[str, Assignment]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what rows reach: the levels of replicas, and those of leaders.

    Replicas: moved, not in sync, leaders dropped from rows that shrink, of topics, of the cluster;
    to balance: of topics, of the cluster, moved.
    """
    moved = lagging = dropped = changed = 0
    replicas, leaders = Counter(problem.replicas), Counter(problem.leaders)
    topics = [0, 0]
    for wish in problem.wishes:
        all_rows = (*rows[wish.topic], *wish.fixed)
        for p, (old, new) in enumerate(zip(wish.rows, rows[wish.topic], strict=True)):
            changed += old[0] != new[0]
            replicas.subtract(old)
            replicas.update(new)
            leaders[old[0]] -= 1
            leaders[new[0]] += 1
            if _is_touched(problem, wish, p):
                moved += len(set(new) - set(old))
                lagging += len((set(new) & set(old)) - set(_in_sync(wish, p)))
            if problem.goal is not MoveGoal.BALANCE and _is_touched(problem, wish, p):
                leader = _find_leader(problem, wish, p)
                dropped += leader is not None and leader not in new
        topics[0] += sum(n * n for n in Counter(b for row in all_rows for b in row).values())
        topics[1] += sum(n * n for n in Counter(row[0] for row in all_rows).values())
    scale = scales(problem)
    cluster = [sum(scale[b] * n * n for b, n in load.items()) for load in (replicas, leaders)]
    leads = topics[1], cluster[1], changed
    if problem.goal is MoveGoal.BALANCE:
        return (topics[0], cluster[0], moved), leads
    return (moved, lagging, dropped, topics[0], cluster[0]), leads


def scales(problem: MoveProblem) -> dict[int, int]:
    """Return what a squared load costs on each broker: the inverse of its capacity."""
    ids = {broker.id for broker in problem.brokers}
    capacity = {b: problem.capacity.get(b, 1) for b in ids}
    if len(set(capacity.values())) == 1:
        return dict.fromkeys(ids, 1)
    return {b: round(2**20 * max(capacity.values()) / c) for b, c in capacity.items()}


def _candidates(problem: MoveProblem, wish: MoveWish, p: int) -> list[int]:
    row = wish.rows[p]
    if not _is_touched(problem, wish, p):
        return list(row)
    leaving = _leaving(problem, wish, p)
    stays = [b for b in row if b not in leaving]
    wanted = _wanted(wish, row)
    if len(stays) < wanted or problem.goal is MoveGoal.BALANCE:
        return sorted({*stays, *problem.eligible} - leaving)
    living = [b for b in stays if any(b == one.id and one.alive for one in problem.brokers)]
    safe = len(living) >= wanted and set(living) & set(_in_sync(wish, p))
    return living if safe else stays


def _find_leader(problem: MoveProblem, wish: MoveWish, p: int) -> int | None:
    """Return the replica that keeps the lead; None for none, as in a row that is not to keep it."""
    row = wish.rows[p]
    if len(row) <= _wanted(wish, row) and problem.goal is not MoveGoal.OFFLINE_REPLICAS:
        return None
    able = set(_candidates(problem, wish, p)) & set(_in_sync(wish, p))
    able &= {broker.id for broker in problem.brokers if broker.alive}
    return next((b for b in row if b in able), None)


def _wanted(wish: MoveWish, row: Replicas) -> int:
    return wish.replication or len(row)


def _is_touched(problem: MoveProblem, wish: MoveWish, p: int) -> bool:
    if problem.goal is MoveGoal.BALANCE:
        return True
    row, leaving = wish.rows[p], _leaving(problem, wish, p)
    return len(row) != _wanted(wish, row) or any(b in leaving for b in row)


def _leaving(problem: MoveProblem, wish: MoveWish, p: int) -> set[int]:
    offline = wish.offline[p] if wish.offline else ()
    return {*problem.drained, *(offline if problem.goal is MoveGoal.OFFLINE_REPLICAS else ())}


def _in_sync(wish: MoveWish, p: int) -> Replicas:
    return wish.in_sync[p] if wish.in_sync else wish.rows[p]


def _spread(
    model: cp_model.CpModel, problem: MoveProblem, mine: dict[int, cp_model.IntVar]
) -> None:
    racks: dict[str, list[cp_model.IntVar]] = {}
    rack_of = {broker.id: broker.rack or "" for broker in problem.brokers}
    for b, take in mine.items():
        racks.setdefault(rack_of[b], []).append(take)
    for here in racks.values():
        full = model.new_bool_var("")
        model.add(sum(here) == len(here)).only_enforce_if(full)
        for there in racks.values():
            model.add(sum(there) <= sum(here) + 1).only_enforce_if(~full)


def _squares(
    model: cp_model.CpModel,
    problem: MoveProblem,
    chosen: Chosen,
    loads: Mapping[int, int],
    places: list[int],
) -> tuple[list[cp_model.LinearExpr], list[cp_model.LinearExpr]]:
    """Return the squares of topics and of the cluster; `places` are those of a row that count."""
    topics, cluster = [], []
    scale = scales(problem)
    for b in scale:
        for wish in problem.wishes:
            mine = [v for (t, _, c), v in chosen.items() if (t, c) == (wish.topic, b)]
            fixed = sum(row[i] == b for row in wish.fixed for i in places if i < len(row))
            topics.append(square(model, sum(mine) + fixed))
        before = sum(
            row[i] == b
            for wish in problem.wishes
            for row in wish.rows
            for i in places
            if i < len(row)
        )
        now = sum(v for (_, _, c), v in chosen.items() if c == b)
        cluster.append(scale[b] * square(model, now + loads.get(b, 0) - before))
    return topics, cluster
