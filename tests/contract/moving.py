"""Moves of replicas on a real cluster, as another tool makes them: data, throttles, a target."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Producer
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import DescribeLogDirsRequest, IncrementalAlterConfigsRequest
from lab import connect_to, create, reassign, wait_for

from reconciler.api.moves import read_moves
from reconciler.model.cluster import Assignment, ThrottleSide
from reconciler.model.steps import CreateTopic
from reconciler.moves.progress import MovesReport
from reconciler.sandbox.cluster import Cluster

RATE = 300_000
"""Bytes per second: a copy of SIZE takes more than a minute."""

SIZE = 20_000_000
RECORD = 100_000
TOPIC, BROKER = 2, 4  # types of resources


class Moving:
    """A cluster, and a topic on it whose partition 0 holds SIZE bytes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @contextmanager
    def move(self, topic: str) -> Iterator[str]:
        """Move partition 0 of a new topic from broker 1 to 4, throttled by name."""
        self.fill(topic, ((1, 2, 3), (2, 3, 1)))
        self.throttle(topic, "0:1,0:2,0:3", "0:4")
        self.reassign(topic, [4, 2, 3])
        yield topic
        self.clear(topic)

    def fill(self, topic: str, rows: Assignment) -> None:
        """Create a topic, and write SIZE bytes into its partition 0."""
        with connect_to(self.cluster) as connection:
            create(connection, CreateTopic(topic, rows, {}))
        self.write(topic, SIZE)

    def write(self, topic: str, size: int) -> None:
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0})
        for _ in range(size // RECORD):
            producer.produce(topic, os.urandom(RECORD), partition=0)
            producer.poll(0)
        assert producer.flush(60) == 0

    def throttle(self, topic: str, sources: str, targets: str, rate: int = RATE) -> None:
        """List the replicas of partition 0 by name, and set the rate of the cluster default."""
        self.set(TOPIC, topic, ThrottleSide.LEADER.list_key, sources)
        self.set(TOPIC, topic, ThrottleSide.FOLLOWER.list_key, targets)
        self.set_rate(rate)

    def set_rate(self, rate: int | None) -> None:
        """Set the rates of the cluster default as a run of moves does, None to remove them."""
        more = {ThrottleSide.LEADER: 0, ThrottleSide.FOLLOWER: 1 if rate else 0}
        for side in ThrottleSide:
            value = None if rate is None else str(rate + more[side])
            self.set(BROKER, "", side.rate_key, value)

    def set(self, kind: int, name: str, key: str, value: str | None) -> None:
        """Set or remove a config; librdkafka refuses the empty name of the cluster default."""
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        config = resource.AlterableConfig(
            name=key, config_operation=int(value is None), value=value
        )
        changed = resource(resource_type=kind, resource_name=name, configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[changed], validate_only=False)
        with self.admin() as client:
            # A broker takes only its own configs.
            broker = int(name) if kind == BROKER and name else None
            answer = client._manager.run(client._manager.send, request, broker)
        assert [each.error_code for each in answer.responses] == [0], answer

    def reassign(self, topic: str, target: list[int] | None) -> None:
        """Reassign partition 0, None to cancel that."""
        reassign(self.cluster, topic, {0: target})

    def clear(self, topic: str) -> None:
        """End what is in flight at full speed, and remove every throttle."""
        self.set_rate(None)
        for side in ThrottleSide:
            self.set(TOPIC, topic, side.list_key, None)
        wait_for(lambda: not self.read().moves, 60)

    def read(self) -> MovesReport:
        with connect_to(self.cluster) as connection:
            return read_moves(connection)

    def await_bytes(self, topic: str) -> MovesReport:
        """Wait until the first bytes of a topic are copied, and return the report of that."""
        while True:
            report = self.read()
            assert topic in {move.reassignment.topic for move in report.moves}
            if report.bytes_done:
                return report
            time.sleep(0.2)

    def list_reassignments(self, topic: str) -> dict[str, list[int]]:
        with self.admin() as client:
            listed = client.list_partition_reassignments({topic: [0]}, timeout_ms=10_000)
        return dict(listed[TopicPartition(topic, 0)])

    def describe_log_dirs(self, topic: str, broker: int) -> Any:
        """Return one broker's raw answer about partition 0."""
        named = DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=[0])
        with self.admin() as client:
            request = DescribeLogDirsRequest(topics=[named])
            return client._manager.run(client._manager.send, request, broker)

    @contextmanager
    def admin(self) -> Iterator[Any]:
        alive = [each.id for each in self.cluster.statuses() if each.state == "running"]
        client = KafkaAdminClient(bootstrap_servers=self.cluster.addresses()[alive[0]])
        try:
            yield client
        finally:
            client.close()
