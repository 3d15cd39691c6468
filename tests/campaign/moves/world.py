"""A cluster with data and traffic, an estate beside it, and what must be true when it is over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from campaign.moves.copies import describe_copies
from reconciler.errors import Location
from reconciler.kafka.connection import connect
from reconciler.kafka.moves import MovesReader
from reconciler.kafka.reader import KafkaReader
from reconciler.model.cluster import Assignment, TopicState
from reconciler.model.moves import MovesReading
from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from campaign.moves.traffic import Verdict

MIB = 1 << 20
RECORD = 100_000
HEAP = ("-Xmx512m",)
APPLY_S = 900.0
AGREE_S = 120.0

SIZES = {"big": (2, 50), "middle": (4, 15), "small": (8, 5)}
"""Partitions of a topic, and the MiB of each: 200 MiB in all."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


class World:
    """One cluster, its estate in a folder, and the command line."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.topics: dict[str, dict[str, Any]] = {}
        self.moves: dict[str, Any] = {
            "allow": ["replication", "assignment", "drain"],
            "rate": "4MiB",
            "at_once": {"cluster": 12, "broker": 4},
            "keep_free": "1%",
        }
        self.drained: list[int] = []
        self.connection = connect(
            ClusterEntry("lab", Location("clusters.yaml", 1)),
            bootstrap_servers=cluster.bootstrap_servers,
        )

    # The cluster.

    def create(self, name: str, rows: Sequence[Sequence[int]], **config: str) -> None:
        """Create a topic with these rows, and a spec that says the same."""
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0})
        spelled = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(
            name,
            num_partitions=len(rows),
            replica_assignment=[list(row) for row in rows],
            config=spelled,
        )
        for answer in admin.create_topics([new]).values():
            answer.result(30)
        self.topics[name] = {
            "partitions": len(rows),
            "replication_factor": len(rows[0]),
            "config": spelled,
        }

    def fill(self, name: str, mib: float) -> None:
        """Write ballast into every partition of a topic."""
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0})
        for _ in range(int(mib * MIB) // RECORD):
            for partition in range(self.topics[name]["partitions"]):
                producer.produce(name, os.urandom(RECORD), partition=partition)
            producer.poll(0.01)
        assert producer.flush(300) == 0

    def show(self) -> Mapping[str, TopicState]:
        """Read the topics of the estate, with their configs."""
        found = KafkaReader(self.connection).read_cluster(config_of=list(self.topics)).topics
        return {name: found[name] for name in self.topics}

    def read_moves(self) -> MovesReading:
        """Read what is in flight, and the throttles."""
        return MovesReader(self.connection).read_moves()

    # The estate and the command line.

    def write_estate(self) -> None:
        """Write the specs of all topics, the limits of moves, and the brokers to drain."""
        specs = self.folder / "topics"
        specs.mkdir(exist_ok=True)
        lab = {"moves": self.moves, "drain_brokers": self.drained}
        clusters = {"version": 1, "clusters": {"lab": lab}}
        (specs / "clusters.yaml").write_text(yaml.safe_dump(clusters))
        for name, spec in self.topics.items():
            (specs / f"{name}.yaml").write_text(yaml.safe_dump({"topic": name, **spec}))

    def plan(self) -> dict[str, Any]:
        """Save a plan of moves; return its document."""
        ran = self.run_plan("--moves", "--out", "moves.json")
        assert ran.code == 0, ran
        return self.read_plan()

    def read_plan(self) -> dict[str, Any]:
        """Return the document of the saved plan."""
        document: dict[str, Any] = json.loads((self.folder / "moves.json").read_text())
        return document

    def run_plan(self, *options: str) -> Ran:
        """Write the estate, and plan it."""
        self.write_estate()
        return self.run("plan", "topics", "--cluster", "lab", *options)

    def run(self, *arguments: str, timeout_s: float = APPLY_S) -> Ran:
        """Run the command line to its end."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=timeout_s)
        return Ran(process.returncode, out, err)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the command line."""
        command = [sys.executable, "-m", "reconciler", *arguments]
        return subprocess.Popen(
            [*command, "--bootstrap-servers", self.cluster.bootstrap_servers],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start_apply(self, *options: str) -> subprocess.Popen[str]:
        """Start the apply of the saved plan."""
        return self.start("apply", "moves.json", "--estate", "topics", "--auto-approve", *options)

    def apply(self, *options: str) -> Ran:
        """Apply the saved plan to its end."""
        return self.apply_file("moves.json", *options)

    def apply_file(self, name: str, *options: str) -> Ran:
        """Apply a saved plan to its end."""
        return self.run("apply", name, "--estate", "topics", "--auto-approve", *options)

    # What must be true at the end.

    def await_end(self, wanted: Mapping[str, Assignment]) -> None:
        """Wait until every broker shows these rows, and all of them in sync."""
        deadline = time.monotonic() + AGREE_S
        while wrong := self._list_wrong(wanted):
            assert time.monotonic() < deadline, wrong
            time.sleep(1)

    def _list_wrong(self, wanted: Mapping[str, Assignment]) -> list[str]:
        views = KafkaReader(self.connection).read_views(list(wanted))
        return [
            f"broker {broker} shows {name} on {view[name].assignment}, in sync {view[name].in_sync}"
            for broker, view in views.items()
            for name, rows in wanted.items()
            if view[name].assignment != rows
            or any(set(a) != set(b) for a, b in zip(rows, view[name].in_sync, strict=True))
        ]

    def explain(self, verdict: Verdict) -> list[str]:
        """Say who wrote the copies of the first records that are there twice."""
        directory = self.cluster.directory
        return [
            describe_copies(directory, partition, verdict.key, number)
            for partition, number in verdict.doubled[:10]
        ]

    def list_leftovers(self) -> list[str]:
        """Name everything that a finished run may not leave behind."""
        reading = self.read_moves()
        found = [f"in flight: {each}" for each in reading.reassignments]
        found += [f"list: {each}" for each in reading.lists]
        found += [f"rate: {each}" for each in reading.rates]
        for name, topic in self.show().items():
            written = self.topics[name]["config"].get("min.insync.replicas")
            if topic.config.get("min.insync.replicas") != written:
                found.append(f"min.insync.replicas of {name}: {topic.config}")
        return found

    def list_wrong_leaders(self) -> list[str]:
        """Name the partitions that their preferred leader does not lead."""
        return [
            f"{name}-{number} is led by {leader}, not {row[0]}"
            for name, topic in self.show().items()
            for number, (row, leader) in enumerate(
                zip(topic.assignment, topic.leaders, strict=True)
            )
            if leader != row[0]
        ]


def planned_rows(document: Mapping[str, Any]) -> dict[str, Assignment]:
    """Return the rows that a plan leads to, by topic."""
    return {
        each["name"]: tuple(map(tuple, each["change"]["after"]["assignment"]))
        for each in document["resource_changes"]
        if each["change"]["after"]
    }


@contextmanager
def open_world(folder: Path, version: str | None = None, brokers: int = 6) -> Iterator[World]:
    """Start brokers in three racks, each in a process of its own."""
    with start_cluster(
        brokers,
        racks=3,
        isolate=True,
        kafka_version=version,
        jvm_options=HEAP,
        properties={
            "auto.leader.rebalance.enable": "false",
            "log.retention.ms": "-1",
            # Kafka's default. The sandbox's 3 s fence a live broker if the machine is busy.
            "broker.session.timeout.ms": "9000",
        },
    ) as cluster:
        world = World(cluster, folder)
        with world.connection:
            yield world
