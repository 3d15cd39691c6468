"""Kills of `moves cancel`, `settle` and `rate` at random moments, and the same command again.

A run of apply is killed while it copies. Then one of the three is started and killed after a random
time, several times, and the last one is left alone. What it says must be true, and what it is for
must be done. Meanwhile traffic goes on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from campaign.moves.kills import MIB, PARTITIONS, Plan
from campaign.moves.scenarios import SAFE, assign, await_copying, resize, spread
from campaign.moves.traffic import Traffic
from reconciler.model.cluster import Assignment
from reconciler.model.moves import DefaultRate

if TYPE_CHECKING:
    from campaign.moves.scenarios import Rows
    from campaign.moves.world import Ran, World

VERBS = ("cancel", "settle", "rate")
MOST_KILLS = 3
LONGEST_S = 8.0
RATE = 3 << 20


def play_interventions(world: World, seed: int, kills: int) -> Iterator[Plan]:
    """Plan under traffic, and kill the interventions in each plan, until `kills` were killed.

    The first plans add replicas to topics of one, with min.insync.replicas lowered meanwhile; those
    after them move rows by hand.
    """
    draw = random.Random(seed)
    world.moves["rate"] = "200KiB"
    for name, partitions in PARTITIONS.items():
        world.create(name, spread(partitions, 1), **SAFE)
        world.fill(name, MIB)
    done = number = 0
    while done < kills:
        traffic = Traffic(world.cluster.bootstrap_servers, PARTITIONS, per_s=4)
        traffic.start()
        try:
            plan = _intervene(world, draw, VERBS[number % len(VERBS)])
        finally:
            verdict = traffic.stop()
        number, done = number + 1, done + plan.kills
        yield Plan(
            plan.kind,
            plan.kills,
            plan.in_flight,
            plan.runs,
            (*plan.faults, *verdict.faults, *world.explain(verdict)),
        )


def _intervene(world: World, draw: random.Random, verb: str) -> Plan:
    """Leave a killed run behind, kill interventions in it, and check what is then true."""
    before = {name: topic.assignment for name, topic in world.show().items()}
    factor = len(before["kills.one"][0])
    for spec in world.topics.values():
        spec.pop("assignment", None)
        spec["replication_factor"] = factor
    by = draw.randint(1, 5)
    grows = factor == 1
    rows = (
        resize(world, 3)
        if grows
        else assign(world, lambda row: [(broker - 1 + by) % 6 + 1 for broker in row])
    )
    apply = world.start_apply()
    await_copying(world, apply)
    time.sleep(draw.uniform(0, 3))
    apply.kill()
    apply.communicate()
    arguments = {
        "cancel": ("cancel", "topics", "--plan", "moves.json"),
        "settle": ("settle", "topics", "--cluster", "lab"),
        "rate": ("rate", str(RATE) + "B", "topics", "--cluster", "lab"),
    }[verb]
    command = ("moves", *arguments, "--auto-approve")
    killed = in_flight = 0
    for _ in range(draw.randint(1, MOST_KILLS)):
        process = world.start(*command)
        time.sleep(draw.uniform(0.5, LONGEST_S))
        if process.poll() is None:
            process.kill()
            killed += 1
            in_flight += bool(world.read_moves().reassignments)
        process.communicate()
        time.sleep(draw.choice([0, 0, 2]))
    if verb == "settle":
        world.run("moves", "rate", "50MiB", "topics", "--cluster", "lab", "--auto-approve")
    ran = world.run(*command)
    check = {"cancel": _check_cancel, "settle": _check_settle, "rate": _check_rate}[verb]
    faults = []
    try:
        check(world, ran, before, rows)
        if verb != "cancel":
            _finish(world, rows)
    except AssertionError as error:
        faults.append(f"{error}"[-900:])
    kind = f"{verb} of {'1 to 3' if grows else 'by hand'}"
    return Plan(kind, killed, in_flight, killed + 1, tuple(faults))


def _check_cancel(world: World, ran: Ran, before: dict[str, Assignment], rows: Rows) -> None:
    """Every row is as before or as planned, in sync and led by its first; settle ends the rest."""
    assert ran.code == 0, ran
    shown = {name: topic.assignment for name, topic in world.show().items()}
    for name, topic in shown.items():
        for number, row in enumerate(topic):
            allowed = before[name][number], rows.get(name, before[name])[number]
            assert row in allowed, f"{name}-{number} is on {row}, not on one of {allowed}"
    again = world.run("moves", "cancel", "topics", "--plan", "moves.json", "--auto-approve")
    assert again.out.splitlines()[-1:] == ["Nothing to cancel."], again
    settled = world.run("moves", "settle", "topics", "--cluster", "lab", "--auto-approve")
    assert settled.code in (0, 2), settled
    world.await_end(shown)
    left = world.list_leftovers() + _list_misled(world, before)
    assert not left, f"{left} after {ran}"


def _check_settle(world: World, ran: Ran, before: object, rows: object) -> None:
    """Nothing is in flight, and no throttle is left. Rows that were not begun are named."""
    assert ran.code in (0, 2), ran
    reading = world.read_moves()
    left = (*reading.reassignments, *reading.lists, *reading.rates)
    assert not left, (left, ran)


def _check_rate(world: World, ran: Ran, before: object, rows: object) -> None:
    """The rate is in force, and is one of moves."""
    assert ran.code == 0, ran
    reading = world.read_moves()
    assert reading.default_rate == DefaultRate.of_moves(RATE), (reading.rates, ran)
    settled = world.run("moves", "settle", "topics", "--cluster", "lab", "--auto-approve")
    assert settled.code in (0, 2), settled


def _finish(world: World, rows: Rows) -> None:
    """The same plan still leads to its end, and leaves nothing."""
    ran = world.apply()
    assert ran.code == 0, ran
    world.await_end(rows)
    left = world.list_leftovers() + world.list_wrong_leaders()
    assert not left, f"{left} after {ran}"


def _list_misled(world: World, before: dict[str, Assignment]) -> list[str]:
    """Name the rows that are back, and that their preferred leader does not lead."""
    shown = world.show()
    return [
        each
        for each in world.list_wrong_leaders()
        if any(
            each.startswith(f"{name}-{number} ") and topic.assignment[number] == row
            for name, topic in shown.items()
            for number, row in enumerate(before[name])
        )
    ]
