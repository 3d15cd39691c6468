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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from under_traffic.scenarios import assign, clients, resize, spread
from under_traffic.traffic import Traffic
from under_traffic.world import MIB, SIZES, open_world

if TYPE_CHECKING:
    from collections.abc import Mapping

    from under_traffic.world import World

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
        self._new: dict[int, set[tuple[str, int]]] = {}
        for each in document["resource_changes"]:
            rows = zip(
                each["change"]["before"]["assignment"],
                each["change"]["after"]["assignment"],
                strict=True,
            )
            for number, (old, new) in enumerate(rows):
                for broker in set(new) - set(old):
                    self._new.setdefault(broker, set()).add((each["name"], number))
        self._readings: list[tuple[float, Counter[int]]] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        for client in clients(self._world):
            while not self._stopped.wait(1):
                found: Counter[int] = Counter()
                for broker, wanted in self._new.items():
                    (answer,) = client.describe_log_dirs(brokers=[broker])
                    for directory in answer["log_dirs"]:
                        for topic in directory["topics"]:
                            for each in topic["partitions"]:
                                if (topic["name"], each["partition_index"]) in wanted:
                                    found[broker] += each["partition_size"]
                self._readings.append((time.monotonic(), found))

    def stop(self) -> dict[int, list[float]]:
        """Return bytes per second of each broker, over every window in which it had enough to copy.

        At the rate of the plan, what was left at its beginning would have filled the window.
        """
        self._stopped.set()
        self._thread.join()
        rates: dict[int, list[float]] = {}
        for broker in self._new:
            last = self._readings[-1][1][broker]
            busy = [(at, sizes[broker]) for at, sizes in self._readings if sizes[broker] < last]
            for at, size in busy:
                ago = [(t, s) for t, s in busy if at - t >= WINDOW_S and s > 0]
                if ago and last - ago[-1][1] >= WINDOW_S * RATE_MIB * MIB:
                    then, was = ago[-1]
                    rates.setdefault(broker, []).append((size - was) / (at - then))
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
    for broker, each in sorted(rates.items()):
        least, most = (of(each) / (RATE_MIB * MIB) for of in (min, max))
        print(f"  broker {broker}: {least:.2f} to {most:.2f} × rate over {len(each)} windows")
    sys.stdout.flush()


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder, open_world(Path(folder)) as world:
        for number in range(1, rounds + 1):
            play_round(world, number)


if __name__ == "__main__":
    main()
