"""What the cluster looks like, asked of the brokers and of no tool under comparison."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    ResourceType,
)

from reconciler.sandbox.cluster import Cluster

TWO_HOURS_MS = 2 * 60 * 60 * 1000
CALM_S = 3.0  # a cluster that looks the same for so long has done what it was asked
DEADLINE_S = 60.0
QUIET = {"log_level": 0}  # of a cluster that has stopped, librdkafka would complain each second


@dataclass(frozen=True, slots=True)
class TopicPicture:
    """A topic as the brokers show it.

    `partitions` holds the broker ids of each, preferred leader first; `config` what is set on
    the topic itself; `records` how many are stored.
    """

    partitions: tuple[tuple[int, ...], ...]
    config: Mapping[str, str]
    records: int


@dataclass(frozen=True, slots=True)
class Picture:
    """All topics of a cluster by name, and the rack of each broker."""

    topics: Mapping[str, TopicPicture]
    racks: Mapping[int, str]


class Observer:
    """Looks at one cluster, and does by hand what an edit says somebody did."""

    def __init__(self, cluster: Cluster) -> None:
        self._servers = cluster.bootstrap_servers
        self._addresses = tuple(cluster.addresses().values())
        self._racks = {status.id: status.rack or "" for status in cluster.statuses()}
        self._admin = AdminClient({"bootstrap.servers": self._servers, **QUIET})

    def look(self) -> Picture:
        """Return the cluster once it is calm: two looks, some seconds apart, that agree."""
        deadline = time.monotonic() + DEADLINE_S
        seen = self._glance()
        while time.monotonic() < deadline:
            time.sleep(CALM_S)
            again = self._glance()
            if again == seen:
                break
            seen = again
        return seen

    def _glance(self) -> Picture:
        topics = self._admin.list_topics(timeout=30).topics
        names = sorted(name for name in topics if not name.startswith("__"))
        rows = {
            name: tuple(tuple(p.replicas) for _, p in sorted(topics[name].partitions.items()))
            for name in names
        }
        configs = self._configs(names)
        pictures = {
            name: TopicPicture(rows[name], configs[name], self._records(name, len(rows[name])))
            for name in names
        }
        return Picture(pictures, self._racks)

    def _configs(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        if not resources:
            return {}
        answers = self._admin.describe_configs(resources)
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {
            resource.name: {k: e.value for k, e in future.result().items() if e.source == own}
            for resource, future in answers.items()
        }

    def _records(self, name: str, count: int) -> int:
        partitions = [TopicPartition(name, partition) for partition in range(count)]
        first = self._offsets(partitions, OffsetSpec.earliest())
        return self._offsets(partitions, OffsetSpec.latest()) - first

    def _offsets(self, partitions: list[TopicPartition], spec: OffsetSpec) -> int:
        answers = self._admin.list_offsets(dict.fromkeys(partitions, spec))
        return sum(future.result().offset for future in answers.values())

    def store_records(self, name: str, count: int) -> None:
        """Write records that are two hours old."""
        producer = Producer({"bootstrap.servers": self._servers, **QUIET})
        then = int(time.time() * 1000) - TWO_HOURS_MS
        for n in range(count):
            producer.produce(name, key=str(n), value=b"x" * 100, timestamp=then)
        producer.flush(30)

    def set_config(self, name: str, key: str, value: str) -> None:
        """Set a config of a topic as a person with other tools would."""
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        for future in self._admin.incremental_alter_configs([resource]).values():
            future.result()

    def delete_all(self) -> None:
        """Empty the cluster, and wait until every broker has forgotten the topics."""
        names = list(self._glance().topics)
        if names:
            for future in self._admin.delete_topics(names).values():
                future.result()
        for address in self._addresses:
            while set(names) & _known_to(address):
                time.sleep(0.2)


def _known_to(address: str) -> set[str]:
    """Return the topics that one broker knows."""
    client = AdminClient({"bootstrap.servers": address, **QUIET})
    return set(client.list_topics(timeout=30).topics)
