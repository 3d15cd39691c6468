"""What people do to a cluster past every review, and what it looks like to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, ResourceType
from lab import connect_to, reassign, set_config, wait_for

from reconciler.kafka.reader import KafkaReader
from reconciler.model.cluster import TopicState
from reconciler.sandbox.cluster import Cluster


class ByHand:
    """Somebody with the brokers' own tools; each call returns once every broker shows it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        self._reader = KafkaReader(connect_to(cluster))

    def create(self, topic: str, rows: list[list[int]], **config: str) -> None:
        spelt = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(topic, num_partitions=len(rows), replica_assignment=rows, config=spelt)
        _finish(self._admin.create_topics([new]))
        self._await(topic, lambda found: found is not None and len(found.assignment) == len(rows))

    def delete(self, topic: str) -> None:
        _finish(self._admin.delete_topics([topic]))
        self._await(topic, lambda found: found is None)

    def grow(self, topic: str, partitions: int) -> None:
        _finish(self._admin.create_partitions([NewPartitions(topic, partitions)]))
        self._await(topic, lambda found: found is not None and len(found.assignment) == partitions)

    def configure(self, topic: str, **config: str) -> None:
        """Set configs; `retention_ms` stands for retention.ms."""
        set_config(self.cluster, ResourceType.TOPIC, topic, **config)
        wanted = {key.replace("_", "."): value for key, value in config.items()}.items()
        self._await(topic, lambda found: found is not None and wanted <= found.config.items())

    def produce(self, topic: str) -> None:
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap_servers})
        producer.produce(topic, value=b"one record")
        assert producer.flush(20) == 0

    def reassign(self, topic: str, rows: dict[int, list[int] | None]) -> None:
        reassign(self.cluster, topic, rows)

    def look(self, topic: str) -> TopicState | None:
        """Return a topic as the cluster has it, or None."""
        return self._reader.read_cluster([topic]).topics.get(topic)

    def all(self) -> Mapping[str, TopicState]:
        """Return every topic with its overrides."""
        return self._reader.read_cluster().topics

    def _await(self, topic: str, shown: Callable[[TopicState | None], bool]) -> None:
        wait_for(
            lambda: all(
                shown(view.get(topic))
                for view in self._reader.read_views([topic], [topic]).values()
            )
        )


def _finish(asked: Mapping[str, Future[None]]) -> None:
    for answer in asked.values():
        answer.result(15)
