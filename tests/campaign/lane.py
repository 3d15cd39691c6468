"""A lane: one cluster, and the rounds that are driven over it one after the other."""

from __future__ import annotations

import json
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from confluent_kafka.admin import NewTopic

from campaign.faults import Kind, draw_fault, heal_cluster
from campaign.network import Network
from campaign.records import AuditTrail
from campaign.rounds import AUDIT, Result, Round
from campaign.truth import MARKER, Truth
from campaign.world import draw_world
from reconciler.errors import SandboxError
from reconciler.sandbox.cluster import Cluster, start_cluster

PROPERTIES = {
    # A broker waits as long for a controller that is frozen, before it asks the next one.
    "controller.socket.timeout.ms": "4000",
    # Clusters that wait cost half a processor together: fewer questions when nothing is new.
    "replica.fetch.wait.max.ms": "2000",
    "broker.heartbeat.interval.ms": "1000",
    "metadata.max.idle.interval.ms": "5000",
}
START_S = 300.0
HEAP = ("-Xmx160m",)
MOST_FAILED_STARTS = 3
KINDS = tuple(Kind)


@contextmanager
def open_lane(number: int, results: Path) -> Iterator[Lane]:
    """Start a cluster of three brokers and three controllers, a process each."""
    with start_cluster(
        brokers=3,
        controllers=3,
        properties=PROPERTIES,
        jvm_options=HEAP,
        timeout_s=START_S,
    ) as cluster:
        network = Network([int(a.rpartition(":")[2]) for a in cluster.addresses().values()])
        network.start()
        lane = Lane(number, cluster, network, results)
        lane.truth.create([NewTopic(AUDIT, 1, 3), NewTopic(MARKER, 1, 3)])
        yield lane


class Lane:
    """A cluster with a network before it. Errors of a round are the harness's own trouble."""

    def __init__(self, number: int, cluster: Cluster, network: Network, results: Path) -> None:
        self.number = number
        self.cluster = cluster
        self.network = network
        self.results = results
        self.trail = AuditTrail(cluster.bootstrap_servers, AUDIT)
        self.truth = Truth(cluster.bootstrap_servers, cluster.addresses())

    def drive(self, seed: int, number: int) -> Result:
        """Drive one round. What it is depends on seed and number alone, but for the moment."""
        kind = KINDS[number % len(KINDS)]
        result = Result(seed, number, kind.value, self.number)
        began = time.monotonic()
        directory = self.results / f"{number:05}"
        directory.mkdir(parents=True, exist_ok=True)
        try:
            self._drive(Round(self, result, directory, random.Random(f"{seed}/{number}")), kind)
        except Exception:  # noqa: BLE001 - a trouble of ours is told, and the next round begins
            result.trouble = traceback.format_exc()
        result.seconds = round(time.monotonic() - began, 1)
        (directory / "result.json").write_text(json.dumps(asdict(result), indent=1))
        return result

    def _drive(self, turn: Round, kind: Kind) -> None:
        heal_cluster(self.cluster)
        seed, number = turn.result.seed, turn.result.round
        world = draw_world(turn.rng, f"s{seed}k{number}-")
        fault = draw_fault(turn.rng, kind, world.writes)
        turn.begin(world)
        try:
            turn.strike(fault)
            turn.finish()
        finally:
            heal_cluster(self.cluster)
            turn.clean_up()


def run_lane(
    number: int,
    results: Path,
    seed: int,
    take: Callable[[], int | None],
    put: Callable[[Result], None],
) -> None:
    """Drive rounds until there are no more; a cluster that is in trouble is replaced."""
    turn, failures = take(), 0
    while turn is not None and failures < MOST_FAILED_STARTS:
        try:
            with open_lane(number, results) as lane:
                failures = 0
                while turn is not None:
                    result = lane.drive(seed, turn)
                    put(result)
                    turn = take()
                    if result.trouble:
                        break
        except SandboxError as error:  # a machine that is busy: the same round on another cluster
            print(f"      lane {number}: {error}", file=sys.stderr)
            failures += 1
