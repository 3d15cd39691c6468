"""Kills of apply at random moments, several for each plan, until the plan is done.

A plan grows or shrinks the topics, or assigns rows by hand. Each run of it is killed after a random
time; the last one is left alone. Now and then an operator looks, or the killed run is left to copy
on for a while.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from under_traffic.scenarios import assign, resize, spread
from under_traffic.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reconciler.model import Replicas
    from under_traffic.world import World

PARTITIONS, MIB = {"kills.one": 3, "kills.two": 5, "kills.three": 8}, 4
MOST_KILLS = 6
LONGEST_S = 9.0
ALIVE_S = 900.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What one plan came to: kills that met a live process, runs, and every fault."""

    kind: str
    kills: int
    runs: int
    faults: tuple[str, ...]


def play_kills(world: World, seed: int, kills: int) -> Iterator[Plan]:
    """Plan under traffic, and kill the runs of each plan, until `kills` runs were killed."""
    draw = random.Random(seed)
    world.moves["rate"] = "2MiB"
    for name, partitions in PARTITIONS.items():
        world.create(name, spread(partitions, 2))
        world.fill(name, MIB)
    done = 0
    while done < kills:
        traffic = Traffic(world.cluster.bootstrap_servers, PARTITIONS, per_s=10)
        traffic.start()
        try:
            plan = _play_plan(world, draw)
        finally:
            verdict = traffic.stop()
        done += plan.kills
        yield replace(plan, faults=(*plan.faults, *verdict.faults))


def _play_plan(world: World, draw: random.Random) -> Plan:
    factors = {len(row) for topic in world.show().values() for row in topic.assignment}
    factor = factors.pop()
    for spec in world.topics.values():
        spec.pop("assignment", None)
        spec["replication_factor"] = factor
    if factor == 2:
        kind, rows = "2 to 3", resize(world, 3)
    elif draw.random() < 0.5:
        kind, rows = "3 to 2", resize(world, 2)
    else:
        kind, rows = "by hand", assign(world, _shift(draw))
    killed, runs, faults = 0, 0, []
    for _ in range(draw.randint(2, MOST_KILLS)):
        process = world.start_apply()
        runs += 1
        time.sleep(draw.uniform(0.5, LONGEST_S))
        if process.poll() is None:
            process.kill()
            killed += 1
        process.communicate()
        time.sleep(draw.choice([0, 0, 0, 2, 6]))
    ran = world.apply()
    runs += 1
    if ran.code:
        faults.append(f"the last run ended with {ran.code}: {ran.out[-500:]} {ran.err[-500:]}")
    try:
        world.await_end(rows)
    except AssertionError as error:
        faults.append(str(error))
    faults += world.list_leftovers() + world.list_wrong_leaders()
    return Plan(kind, killed, runs, tuple(faults))


def _shift(draw: random.Random) -> Callable[[Replicas], list[int]]:
    """Return a change that puts every replica some brokers further on."""
    by = draw.randint(1, 5)
    return lambda row: [(broker - 1 + by) % 6 + 1 for broker in row]
