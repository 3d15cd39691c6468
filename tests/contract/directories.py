"""Brokers with several log directories, as kafka-python alone sees and changes them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import DescribeLogDirsRequest
from lab import set_config, wait_for

from reconciler.model.cluster import Place
from reconciler.sandbox.cluster import Cluster

RATE_KEY = "replica.alter.log.dirs.io.max.bytes.per.second"
RECORD = 50_000


class Found(NamedTuple):
    """A replica in a log directory. `is_future`: it is a copy that is not complete."""

    path: str
    size: int
    is_future: bool = False


@contextmanager
def ask(cluster: Cluster) -> Iterator[Any]:
    alive = [each.id for each in cluster.statuses() if each.state == "running"]
    client = KafkaAdminClient(bootstrap_servers=cluster.addresses()[alive[0]])
    try:
        yield client
    finally:
        client.close()


def list_replicas(cluster: Cluster, broker: int) -> list[tuple[Place, Found]]:
    """List every replica of a broker, copies that are not complete among them."""
    with ask(cluster) as client:
        request = DescribeLogDirsRequest(topics=None)
        answer = client._manager.run(client._manager.send, request, broker)
    return [
        ((topic.name, part.partition_index), Found(each.log_dir, part.partition_size, bool(future)))
        for each in answer.results
        for topic in each.topics
        for part in topic.partitions
        for future in [part.is_future_key]
    ]


def find_paths(cluster: Cluster, broker: int) -> dict[Place, str]:
    """Return where each replica of a broker is."""
    return {
        place: found.path for place, found in list_replicas(cluster, broker) if not found.is_future
    }


def list_paths(cluster: Cluster, broker: int) -> list[str]:
    """List the log directories of a broker, in order."""
    with ask(cluster) as client:
        (told,) = client.describe_log_dirs(brokers=[broker])
    return sorted(each["log_dir"] for each in told["log_dirs"])


def add_up(cluster: Cluster, broker: int) -> dict[str, int]:
    """Return the bytes in each log directory of a broker."""
    sums = dict.fromkeys(list_paths(cluster, broker), 0)
    for _, found in list_replicas(cluster, broker):
        sums[found.path] += found.size
    return sums


def put(cluster: Cluster, broker: int, paths: Mapping[Place, str]) -> None:
    """Move replicas into directories, and wait until they are there."""
    ask_for(cluster, broker, paths)
    wait_for(lambda: paths.items() <= find_paths(cluster, broker).items(), 60)


def ask_for(cluster: Cluster, broker: int, paths: Mapping[Place, str]) -> None:
    with ask(cluster) as client:
        wanted = {(topic, number, broker): path for (topic, number), path in paths.items()}
        answers = client.alter_replica_log_dirs(wanted)
    assert {answer.errno for answer in answers.values()} == {0}, answers


def slow_down(cluster: Cluster, rate: int) -> None:
    """Throttle moves between directories on every broker, as somebody else would."""
    for broker in cluster.addresses():
        set_config(
            cluster, ResourceType.BROKER, str(broker), **{RATE_KEY.replace(".", "_"): str(rate)}
        )


def read_rate(cluster: Cluster, broker: int) -> str | None:
    """Return the rate that is set for a broker or for all, None if there is none."""
    admin = AdminClient({"bootstrap.servers": cluster.addresses()[broker]})
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    config = admin.describe_configs([resource])[resource].result(15).get(RATE_KEY)
    return None if config is None else config.value


def fill(cluster: Cluster, topic: str, sizes: Mapping[int, int]) -> None:
    """Write bytes into partitions of a topic, to all of its replicas."""
    servers = cluster.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "log_level": 0})
    for partition, size in sizes.items():
        for _ in range(size // RECORD):
            producer.produce(topic, os.urandom(RECORD), partition=partition)
            producer.poll(0)
    assert producer.flush(60) == 0
