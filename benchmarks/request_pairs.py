"""How often a request that is merged makes the plan of another open request stale.

Two requests, A and B, are planned on the same cluster. B is applied, and A is planned again. Its
rows may differ: then the approved rows of the first plan are used if they are as good. The last
column measures by itself how often they are worse on levels one to four.
`python benchmarks/request_pairs.py [pairs of each kind]`
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from random import Random

from reconciler.model.cluster import Assignment, Broker
from reconciler.placement.given_rows import prefer_rows
from reconciler.placement.problem import Problem, Wish, count_load
from reconciler.placement.strategies import place_replicas

Rows = Mapping[str, Assignment]
Brokers = tuple[Broker, ...]

SHAPES = ((3, 1), (6, 1), (6, 3), (9, 3), (12, 3), (12, 4), (20, 5))
"""Brokers and racks."""

PAIRS_OF_A_CLUSTER = 5
KINDS = (("create", "create"), ("create", "expand"), ("expand", "create"), ("expand", "expand"))

LEGEND = """\
Pairs of requests, one topic each, on clusters of 3 to 20 brokers with 10 to 60 topics of 1 to 12
partitions. changed: A's rows are others after B was applied, if plans count next leaders over all
rows of the cluster, and (own only) if they count those of their own topic only. stale now: A's
first rows are then refused. worse: they are no longer optimal on levels 1 to 4."""
COLUMNS = ("changed", "own only", "stale now", "worse")


def main(pairs: int = 200, seed: int = 1) -> None:
    """Compare the pairs of each kind."""
    print(LEGEND)
    titles = "".join(f" {column:>9}" for column in COLUMNS)
    print(f"{'A, then B is applied':24} {'pairs':>6}{titles}")
    for kind in KINDS:
        rng = Random(f"{seed} {kind}")
        found: Counter[str] = Counter()
        while found["pairs"] < pairs:
            brokers, live = draw_cluster(rng)
            for _ in range(min(PAIRS_OF_A_CLUSTER, pairs - found["pairs"])):
                found.update(compare(rng, kind, brokers, live))
        shares = "".join(f" {found[column] / pairs:9.1%}" for column in COLUMNS)
        name = f"{kind[0]}, {kind[1]}"
        print(f"{name:24} {pairs:6}{shares}", flush=True)


def draw_cluster(rng: Random) -> tuple[Brokers, Rows]:
    """Draw a cluster whose topics were planned one by one."""
    count, racks = rng.choice(SHAPES)
    brokers = tuple(Broker(b, f"rack-{b % racks}" if racks > 1 else None) for b in range(count))
    live: dict[str, Assignment] = {}
    for t in range(rng.randint(10, 60)):
        wish = Wish(f"topic-{t:02}", (), rng.randint(1, 12), rng.choice((2, 3, 3, 3)))
        live |= plan(brokers, live, wish)
    return brokers, live


def compare(rng: Random, kind: tuple[str, str], brokers: Brokers, live: Rows) -> Counter[str]:
    """Draw two requests, and return which plans of the first one change with the second one."""
    topics = rng.sample(sorted(live), 2)
    a, b = (_draw_wish(rng, name, topic, live) for name, topic in zip(kind, topics, strict=True))
    found = Counter({"pairs": 1})
    for key, own_only in (("changed", False), ("own only", True)):
        before = plan(brokers, live, a, own_only=own_only)
        applied = apply(live, plan(brokers, live, b, own_only=own_only))
        after = plan(brokers, applied, a, own_only=own_only)
        found[key] = int(before != after)
        if not own_only:
            problem = state_problem(brokers, applied, a)
            judged = prefer_rows(problem, place_replicas(problem), before)
            found["stale now"] = int(bool(judged.objections))
            prices = [price(brokers, apply(applied, rows), a) for rows in (before, after)]
            found["worse"] = int(prices[0] > prices[1])
    return found


def _draw_wish(rng: Random, kind: str, topic: str, live: Rows) -> Wish:
    if kind == "create":
        return Wish(f"new-{rng.randrange(10**6)}", (), rng.randint(1, 12), 3)
    return Wish(topic, live[topic], rng.randint(1, 6), len(live[topic][0]))


def plan(brokers: Brokers, live: Rows, wish: Wish, *, own_only: bool = False) -> Rows:
    """Return the new rows of one wish."""
    return place_replicas(state_problem(brokers, live, wish, own_only=own_only)).rows


def state_problem(brokers: Brokers, live: Rows, wish: Wish, *, own_only: bool = False) -> Problem:
    others = tuple(rows for topic, rows in live.items() if topic != wish.topic)
    leaders, replicas = count_load(live.values())
    return Problem(brokers, leaders, replicas, (wish,), others=() if own_only else others)


def apply(live: Rows, new: Rows) -> Rows:
    return {**live, **{topic: (*live.get(topic, ()), *rows) for topic, rows in new.items()}}


def price(brokers: Brokers, live: Rows, wish: Wish) -> tuple[int, ...]:
    """Return levels one to four of a plan with one wish, after it was applied."""
    loads = chain(count_load([live[wish.topic]]), count_load(live.values()))
    return tuple(_squares(load[broker.id] for broker in brokers) for load in loads)


def _squares(loads: Iterable[int]) -> int:
    return sum(load * load for load in loads)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
