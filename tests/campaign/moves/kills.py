"""Kills of apply at random moments, several for each plan, until the plan is done.

A plan grows or shrinks the topics, or assigns rows by hand; or each plan drains another broker.
Each run of it is killed after a random time; the last one is left alone. Now and then a killed run
is left to copy on for a while.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from campaign.moves.scenarios import (
    SAFE,
    add_unmanaged,
    assign,
    check_empty,
    find_holders,
    plan_drain,
    resize,
    spread,
    uncordon,
)
from campaign.moves.traffic import Traffic
from reconciler.model.cluster import Replicas

if TYPE_CHECKING:
    from campaign.moves.scenarios import Rows
    from campaign.moves.world import Ran, World

PARTITIONS, MIB = {"kills.one": 3, "kills.two": 5, "kills.three": 8}, 4
MOST_KILLS = 6
LONGEST_S = 15.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What one plan came to. `kills` met a live process; `in_flight` of these left copies."""

    kind: str
    kills: int
    in_flight: int
    runs: int
    faults: tuple[str, ...]


def play_kills(world: World, seed: int, kills: int, *, drains: bool = False) -> Iterator[Plan]:
    """Plan under traffic, and kill the runs of each plan, until `kills` runs were killed."""
    draw = random.Random(seed)
    world.moves["rate"] = "2MiB"
    factor, config = (3, SAFE) if drains else (2, {})
    for name, partitions in PARTITIONS.items():
        world.create(name, spread(partitions, factor), **config)
        world.fill(name, MIB)
    if drains:
        add_unmanaged(world, spread(6, 2), MIB)
    play_plan = _drain if drains else _change
    done = 0
    while done < kills:
        traffic = Traffic(world.cluster.bootstrap_servers, PARTITIONS, per_s=4)
        traffic.start()
        try:
            plan = play_plan(world, draw)
        finally:
            verdict = traffic.stop()
        done += plan.kills
        explained = world.explain(verdict)
        yield replace(plan, faults=(*plan.faults, *verdict.faults, *explained))


def _change(world: World, draw: random.Random) -> Plan:
    """Change the replication factor, or the rows by hand."""
    factors = {len(row) for topic in world.show().values() for row in topic.assignment}
    factor = factors.pop()
    for spec in world.topics.values():
        spec.pop("assignment", None)
        spec["replication_factor"] = factor
    if factor == 2:
        return _kill("2 to 3", world, draw, resize(world, 3))
    if draw.random() < 0.5:
        return _kill("3 to 2", world, draw, resize(world, 2))
    return _kill("by hand", world, draw, assign(world, _shift(draw)))


def _drain(world: World, draw: random.Random) -> Plan:
    """Drain another broker than the last time; afterwards it may take replicas again."""
    broker = draw.choice([each for each in find_holders(world) if each not in world.drained])
    rows = plan_drain(world, broker)
    plan = _kill(
        f"broker {broker} drained", world, draw, rows, lambda ran: check_empty(world, broker, ran)
    )
    uncordon(world, broker)
    return plan


def _kill(
    kind: str,
    world: World,
    draw: random.Random,
    rows: Rows,
    check: Callable[[Ran], None] = lambda _: None,
) -> Plan:
    """Kill runs of the saved plan, let the last one end, and check what is then true."""
    killed, in_flight, runs, faults = 0, 0, 0, []
    for _ in range(draw.randint(2, MOST_KILLS)):
        process = world.start_apply()
        runs += 1
        time.sleep(draw.uniform(0.5, LONGEST_S))
        if process.poll() is None:
            process.kill()
            killed += 1
            in_flight += bool(world.read_moves().reassignments)
        process.communicate()
        time.sleep(draw.choice([0, 0, 0, 2, 6]))
    ran = world.apply()
    runs += 1
    if ran.code:
        faults.append(f"the last run ended with {ran.code}: {ran.out[-500:]} {ran.err[-500:]}")
    try:
        world.await_end(rows)
        check(ran)
    except AssertionError as error:
        faults.append(str(error))
    faults += world.list_leftovers() + world.list_wrong_leaders()
    return Plan(kind, killed, in_flight, runs, tuple(faults))


def _shift(draw: random.Random) -> Callable[[Replicas], list[int]]:
    """Return a change that puts every replica some brokers further on."""
    by = draw.randint(1, 5)
    return lambda row: [(broker - 1 + by) % 6 + 1 for broker in row]
