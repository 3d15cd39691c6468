"""The same moves by three tools, each on a real cluster of its own. `make compare-moves` runs it.

Every cluster has six brokers in three racks, the same rows and the same data. Each tool moves,
does the same once more, and is killed in the middle. What was copied and what was left behind is
read from the brokers.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.moves.world import World
from movers import MOVERS, Mover, Work
from moves_figures import list_left, list_undone, tell_balance, tell_copied
from moves_look import Watcher
from table import write_between_markers, write_row
from tool import Missing, Place

from reconciler.sandbox.cluster import start_cluster

if TYPE_CHECKING:
    from moves_figures import Look

TOPICS = {
    "__consumer_offsets": (3, 0, 3),
    "orders": (4, 5, 3),
    "payments": (12, 1.5, 3),
    "clicks": (24, 0.5, 2),
}
"""Partitions, MiB of each, and replicas: 50 MiB in all, without the copies."""

# Kafka's own election would hide which leaders a tool leaves.
PROPERTIES = {"auto.leader.rebalance.enable": "false", "log.retention.ms": "-1"}
KILL_AFTER_S = 3.0
COMMAND_S = 900.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """Work on a cluster. `joined` brokers are down while the topics are created.

    `topics` are those that differ from TOPICS.
    """

    title: str
    work: Work
    joined: tuple[int, ...] = ()
    topics: Mapping[str, tuple[int, float, int]] = field(default_factory=dict)
    killed: bool = False


SCENARIOS = {
    "drain": Scenario("Drain broker 6", Work(drained=6)),
    "join": Scenario("Brokers 5 and 6 joined", Work(), joined=(5, 6)),
    "replication": Scenario(
        "2 → 3 replicas",
        Work(replication=3),
        topics={"orders": (4, 5, 2), "payments": (12, 1.5, 2)},
    ),
    "killed": Scenario("Drain broker 6, kill -9 in the middle", Work(drained=6), killed=True),
}


@dataclass(slots=True)
class Runner:
    """Runs the commands of one tool in its directory, and kills them where the scenario says."""

    place: Place
    watcher: Watcher
    kill: bool
    ran: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, *command: str) -> str:
        """Return what a command said. Errors: Killed."""
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(
                command,
                cwd=self.place.directory,
                env={**os.environ, "NO_COLOR": "1"},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                text=True,
            )
            until = time.monotonic() + COMMAND_S
            while process.poll() is None and not self._is_time() and time.monotonic() < until:
                time.sleep(0.05)
            if process.poll() is None:
                process.kill()
            code = process.wait()
            said.seek(0)
            text = said.read()
        words = " ".join([Path(command[0]).name, *command[1:]])
        self.ran.append({"command": words, "exit": code, "said": text})
        if self._is_time() or code < 0:
            raise Killed
        return text

    def _is_time(self) -> bool:
        began = self.watcher.began
        return self.kill and began is not None and time.monotonic() - began > KILL_AFTER_S


class Killed(Exception):  # noqa: N818 - it is what the scenario asks for
    """A command was killed, so no other one follows."""


def main() -> None:
    """Run what was asked for, keep the record, and show the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [mover.name for mover in MOVERS]
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--tools", nargs="+", choices=names, default=names)
    parser.add_argument("--record", type=Path, required=True, help="JSON, added to if it exists")
    parser.add_argument("--table", type=Path, help="Markdown with the markers; else print it")
    asked = parser.parse_args()
    record: dict[str, Any] = {"versions": {}, "cells": {}}
    if asked.record.exists():
        record = json.loads(asked.record.read_text())
    movers = [mover for mover in MOVERS if mover.name in asked.tools and _find(mover, record)]
    for name, mover in itertools.product(asked.scenarios, movers):
        print(f"{name} {mover.name} …", file=sys.stderr)
        record["cells"][f"{name} {mover.name}"] = _play(SCENARIOS[name], mover)
        asked.record.parent.mkdir(parents=True, exist_ok=True)
        asked.record.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    table = render(record)
    if asked.table:
        write_between_markers(asked.table, "compare-moves", table)
    else:
        print(table)


def _find(mover: Mover, record: dict[str, Any]) -> bool:
    """Record the version of a tool. Returns False where it is not installed."""
    try:
        record["versions"][mover.name] = mover.version()
    except Missing as missing:
        print(f"{mover.name}: not run, {missing}", file=sys.stderr)
        return False
    return True


def _play(scenario: Scenario, mover: Mover) -> dict[str, Any]:
    """Return two runs of a tool on a new cluster: the work, and the work or its rest once more."""
    with (
        start_cluster(brokers=6, racks=3, properties=PROPERTIES) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        world = World(cluster, Path(folder))
        place = Place(world.folder, cluster.bootstrap_servers, cluster.cluster_id)
        with world.connection:
            _fill(world, scenario)
            with Watcher(cluster) as watcher:
                start = watcher.look()
                act = _Act(scenario, place, world, watcher, start)
                first = act.run(mover.move, kill=scenario.killed)
                second = act.run(mover.resume if scenario.killed else mover.move)
    return {"start": tell_balance(start), "first": first, "second": second}


@dataclass(slots=True)
class _Act:
    """A tool at work. `seen` is the cluster as it was after the last run, or at the start."""

    scenario: Scenario
    place: Place
    world: World
    watcher: Watcher
    start: Look
    seen: Look = field(init=False)

    def __post_init__(self) -> None:
        self.seen = self.start

    def run(self, move: Callable[..., None], *, kill: bool = False) -> dict[str, Any]:
        """Run a tool to its end, or to its kill, and say what it came to."""
        self.watcher.restart()
        run = Runner(self.place, self.watcher, kill)
        began = time.monotonic()
        with suppress(Killed):
            move(self.scenario.work, self.place, self.world, run)
        took = time.monotonic() - began
        before, self.seen = self.seen, self.watcher.look()
        copied = self.watcher.added | (self.seen.replicas - before.replicas)
        work = self.scenario.work
        return {
            "ran": run.ran,
            "seconds": took,
            "copied": tell_copied(copied, before),
            "balance": tell_balance(self.seen, without=work.drained),
            "undone": list_undone(self.seen, work.drained, work.replication),
            "left": list_left(self.start, self.seen),
        }


def _fill(world: World, scenario: Scenario) -> None:
    """Create topics whose replicas are even over the brokers that run, each in another rack."""
    for broker in scenario.joined:
        world.cluster.stop_broker(broker)
    racks: dict[str, list[int]] = {}
    for status in world.cluster.statuses():
        if status.id not in scenario.joined:
            racks.setdefault(status.rack or "", []).append(status.id)
    around = sorted(racks.values())
    for name, (partitions, mib, replicas) in {**TOPICS, **scenario.topics}.items():
        rows = [
            [each[number // len(around) % len(each)] for each in _turned(around, number)]
            for number in range(partitions)
        ]
        world.create(name, [row[:replicas] for row in rows])
        world.fill(name, mib)
    world.topics.pop("__consumer_offsets")  # internal to Kafka, and unmanaged
    for broker in scenario.joined:
        world.cluster.start_broker(broker)


def _turned(around: list[list[int]], by: int) -> list[list[int]]:
    first = by % len(around)
    return around[first:] + around[:first]


def render(record: Mapping[str, Any]) -> str:
    """Return the table of what was recorded. Durations are multiples of the shortest one."""
    names = [mover.name for mover in MOVERS]
    heads = [f"{name}<br>{record['versions'].get(name, 'not run')}" for name in names]
    lines = [write_row(["", *heads]), write_row(["---"] * (len(names) + 1))]
    for key, scenario in SCENARIOS.items():
        cells = [record["cells"].get(f"{key} {name}") for name in names]
        found = [cell for cell in cells if cell is not None]
        shortest = min(
            (c["first"]["seconds"] for c in found if not c["first"]["undone"]), default=1.0
        )
        rows = [_tell(scenario, cell, shortest) if cell else {} for cell in cells]
        nouns = list(next(filter(None, rows), {}))
        for noun in nouns:
            title = f"**{scenario.title}**<br>{noun}" if noun == nouns[0] else noun
            lines.append(write_row([title, *(row.get(noun, "not run") for row in rows)]))
    return "\n".join(lines)


def _tell(scenario: Scenario, cell: Mapping[str, Any], shortest: float) -> dict[str, str]:
    first, second = cell["first"], cell["second"]
    if scenario.killed:
        return {
            "after the kill": _list(first),
            "the next run copies": second["copied"],
            "after the next run": _list(second),
        }
    ratio = "–" if first["undone"] else f"{first['seconds'] / shortest:.1f} ×"
    return {
        "copied": first["copied"],
        "duration": ratio,
        "reached": first["balance"],
        "not done, left behind": _list(first),
        "the same again copies": second["copied"],
    }


def _list(run: Mapping[str, Any]) -> str:
    return "<br>".join([*(f"**{each}**" for each in run["undone"]), *run["left"]]) or "nothing"


if __name__ == "__main__":
    main()
