"""A throttled and an unthrottled move under traffic: the rate kept, the forecast, produce latency.

Six brokers in three racks, a process each, 200 MiB in three topics. One producer with acks=all
writes all the time. Each round measures produce latency while nothing moves, while replicas are
copied at the rate of the plan, and while they are copied without a limit. `make bench-moves` runs
it. `PYTHONPATH=tests python benchmarks/moves.py [rounds]`
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.moves.scenarios import assign, clients, resize, spread
from campaign.moves.traffic import Traffic
from campaign.moves.world import MIB, SIZES, open_world

if TYPE_CHECKING:
    from campaign.moves.world import World

Copy = tuple[int, str, int]
"""The broker that fetches, and the topic and the partition that it fetches."""

RATE_MIB = 1
WINDOW_S = 30.0
QUIET_S = 30.0
ROUNDS = 3


@dataclass(slots=True)
class Phase:
    """A stretch of time by the monotonic clock, and the latencies in it."""

    name: str
    begin: float = field(default_factory=time.monotonic)
    end: float = 0.0

    def describe(self, latencies: list[tuple[float, float]]) -> str:
        own = sorted(took for at, took in latencies if self.begin <= at <= self.end)
        half, most = own[len(own) // 2], own[int(len(own) * 0.99)]
        return (
            f"  {self.name:12} {self.end - self.begin:5.0f} s · {len(own):6,} records · "
            f"p50 {half * 1000:6.1f} ms · p99 {most * 1000:7.1f} ms"
        )


class Meter:
    """Reads how many bytes each broker has of the replicas that are new to it."""

    def __init__(self, world: World, document: Mapping[str, Any]) -> None:
        self._world = world
        self._leaders: dict[Copy, int] = {}
        for each in document["resource_changes"]:
            rows = zip(
                each["change"]["before"]["assignment"],
                each["change"]["after"]["assignment"],
                strict=True,
            )
            for number, (old, new) in enumerate(rows):
                for broker in set(new) - set(old):
                    self._leaders[broker, each["name"], number] = old[0]
        self._readings: list[tuple[float, Counter[Copy]]] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        for client in clients(self._world):
            while not self._stopped.wait(1):
                found: Counter[Copy] = Counter()
                for broker in {broker for broker, _, _ in self._leaders}:
                    (answer,) = client.describe_log_dirs(brokers=[broker])
                    for directory in answer["log_dirs"]:
                        for topic in directory["topics"]:
                            for each in topic["partitions"]:
                                copy = (broker, topic["name"], each["partition_index"])
                                if copy in self._leaders and each["partition_size"]:
                                    found[copy] = each["partition_size"]
                self._readings.append((time.monotonic(), found))

    def stop(self) -> dict[int, list[tuple[float, float]]]:
        """Return, by broker, pairs of the rate received and the rate that was possible.

        Both are bytes per second over a window. A window counts if what the broker had left to
        fetch at its beginning would have filled it. Leaders are throttled too: a leader could give
        a broker no more than what it had left for it, and than its own rate less what it sent to
        others.
        """
        self._stopped.set()
        self._thread.join()
        last = self._readings[-1][1]
        rates: dict[int, list[tuple[float, float]]] = {}
        for first, (then, was) in enumerate(self._readings):
            later = next((r for r in self._readings[first:] if r[0] - then >= WINDOW_S), None)
            if later is None:
                continue
            at, has = later
            full = RATE_MIB * MIB * (at - then)
            sent: Counter[int] = Counter()
            pairs: Counter[tuple[int, int]] = Counter()
            left: Counter[tuple[int, int]] = Counter()
            for copy, leader in self._leaders.items():
                sent[leader] += has[copy] - was[copy]
                pairs[leader, copy[0]] += has[copy] - was[copy]
                left[leader, copy[0]] += last[copy] - was[copy]
            for broker in {broker for broker, _, _ in was}:
                if sum(left[pair] for pair in left if pair[1] == broker) < full:
                    continue
                received = sum(pairs[pair] for pair in pairs if pair[1] == broker)
                possible = sum(
                    min(left[pair], full - (sent[pair[0]] - pairs[pair]))
                    for pair in left
                    if pair[1] == broker
                )
                row = (received / (at - then), min(full, possible) / (at - then))
                rates.setdefault(broker, []).append(row)
        return rates


def play_round(world: World, number: int) -> None:
    """Grow all topics throttled, then shift them without a limit."""
    world.topics.clear()
    for topic, (partitions, mib) in SIZES.items():
        name = f"round-{number}.{topic}"
        world.create(name, spread(partitions, 2))
        world.fill(name, mib)
    traffic = Traffic(
        world.cluster.bootstrap_servers, {n: s["partitions"] for n, s in world.topics.items()}, 10
    )
    traffic.start()
    time.sleep(5)
    quiet = Phase("nothing")
    time.sleep(QUIET_S)
    quiet.end = time.monotonic()
    world.moves["rate"] = f"{RATE_MIB}MiB"
    resize(world, 3)
    document = world.plan()
    forecast = document["moves"]["forecast"]
    meter = Meter(world, document)
    throttled = Phase("throttled")
    ran = world.apply()
    throttled.end = time.monotonic()
    rates = meter.stop()
    assert ran.code == 0, ran
    world.moves["rate"] = "unlimited"
    assign(world, lambda row: [(broker + 1) % 6 + 1 for broker in row])
    unlimited = Phase("unthrottled")
    ran = world.apply()
    unlimited.end = time.monotonic()
    assert ran.code == 0, ran
    verdict = traffic.stop()
    print(f"round {number}: {len(verdict.faults)} faults, {verdict.written:,} records")
    for phase in (quiet, throttled, unlimited):
        print(phase.describe(verdict.latencies_s))
    took = throttled.end - throttled.begin
    print(f"  forecast {forecast['seconds']} s, took {took:.0f} s, with everything around it")
    for broker, windows in sorted(rates.items()):
        of_rate = [received / (RATE_MIB * MIB) for received, _ in windows]
        of_possible = [received / possible for received, possible in windows]
        print(
            f"  broker {broker}: {min(of_rate):.2f} to {max(of_rate):.2f} × rate, "
            f"{min(of_possible):.2f} to {max(of_possible):.2f} × what its leaders could give, "
            f"over {len(windows)} windows"
        )
    sys.stdout.flush()


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder, open_world(Path(folder)) as world:
        for number in range(1, rounds + 1):
            play_round(world, number)


if __name__ == "__main__":
    main()
