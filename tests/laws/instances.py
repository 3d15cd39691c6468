"""Random small problems of placement, hard on purpose: unequal racks, brokers without one, brokers
that hold something and take nothing new, dead or alive, skewed existing rows, expansions and new
topics."""

from __future__ import annotations

from random import Random

from reconciler.model.cluster import Assignment, Broker, Replicas
from reconciler.placement.problem import Problem, Wish, count_load


def draw_problem(rng: Random, topics: int, brokers: int = 5, partitions: int = 3) -> Problem:
    """Draw a problem of up to so many brokers, and new partitions for each topic."""
    size = rng.randint(2, brokers)
    racks = rng.choice([None, 2, 3, 4])
    eligible = tuple(Broker(b, _rack(rng, racks)) for b in range(1, size + 1))
    holders = [*range(1, size + 1), *range(size + 1, size + 1 + rng.randrange(3))]
    favour = {b: rng.random() ** 2 + 0.02 for b in holders}
    wishes = tuple(_wish(rng, t, favour, size, partitions) for t in range(topics))
    others = _rows(rng, favour, rng.randint(1, 3), rng.choice([0, 0, rng.randrange(12)]))
    leaders, replicas = count_load([others, *(wish.existing for wish in wishes)])
    also_alive = tuple(Broker(b, _rack(rng, racks)) for b in holders[size:] if b % 2)
    return Problem(eligible, leaders, replicas, wishes, others=(others,), also_alive=also_alive)


def _rack(rng: Random, racks: int | None) -> str | None:
    """Draw a rack; low numbers are likelier, so that racks differ in size."""
    if racks is None or rng.random() < 0.05:
        return None
    return f"r{min(rng.randrange(racks), rng.randrange(racks))}"


def _wish(rng: Random, number: int, favour: dict[int, float], size: int, partitions: int) -> Wish:
    replication = rng.randint(1, min(3, size))
    existing = _rows(rng, favour, replication, rng.choice([0, 0, 0, 1, 2, 3, 5, 8]))
    name = f"topic-{number}-{rng.randrange(10**6)}"
    return Wish(name, existing, rng.randint(1, partitions), replication, rng.random() < 0.95)


def _rows(rng: Random, favour: dict[int, float], replication: int, count: int) -> Assignment:
    return tuple(_row(rng, favour, replication) for _ in range(count))


def _row(rng: Random, favour: dict[int, float], replication: int) -> Replicas:
    left = dict(favour)
    row = []
    for _ in range(min(replication, len(left))):
        broker = rng.choices(list(left), list(left.values()))[0]
        del left[broker]
        row.append(broker)
    return tuple(row)
