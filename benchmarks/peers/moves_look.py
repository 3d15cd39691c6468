"""What replicas a cluster has and what a move left behind, asked of no tool under comparison."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, ResourceType
from kafka.admin import KafkaAdminClient
from moves_figures import Look, Replica

from reconciler.sandbox.cluster import Cluster

SET_BY_SOMEBODY = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
    ConfigSource.DYNAMIC_BROKER_CONFIG.value,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value,
}
POLL_S = 0.2
CALM_S = 3.0
DEADLINE_S = 180.0


class Watcher:
    """Looks at a cluster, and notes all the time which replicas are being added.

    `began` is when it first saw one.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        self._addresses = list(cluster.addresses().values())
        self._client = KafkaAdminClient(bootstrap_servers=self._addresses)
        self._racks = {status.id: status.rack or "" for status in cluster.statuses()}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.began: float | None = None
        self.added: set[Replica] = set()

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()
        self._client.close()

    def restart(self) -> None:
        """Forget what was added."""
        self.began, self.added = None, set()

    def _watch(self) -> None:
        client = KafkaAdminClient(bootstrap_servers=self._addresses)
        while not self._stopped.wait(POLL_S):
            for partition, row in client.list_partition_reassignments().items():
                self.began = self.began or time.monotonic()
                for broker in row["adding_replicas"]:
                    self.added.add((partition.topic, partition.partition, broker))
        client.close()

    def look(self) -> Look:
        """Return the cluster once nothing is in flight and two looks agree.

        Errors: AssertionError where the thread that notes additions has failed.
        """
        assert self._thread.is_alive()
        deadline = time.monotonic() + DEADLINE_S
        seen = self._glance()
        while time.monotonic() < deadline:
            time.sleep(CALM_S)
            again = self._glance()
            if again == seen and not again.in_flight:
                return again
            seen = again
        return seen

    def _glance(self) -> Look:
        topics = self._admin.list_topics(timeout=30).topics
        partitions = {
            name: [each for _, each in sorted(topics[name].partitions.items())]
            for name in sorted(topics)
        }
        return Look(
            rows={name: [list(p.replicas) for p in each] for name, each in partitions.items()},
            leaders={name: [p.leader for p in each] for name, each in partitions.items()},
            sizes=self._sizes({name: len(each) for name, each in partitions.items()}),
            racks=self._racks,
            configs=self._configs(list(topics)),
            in_flight=len(self._client.list_partition_reassignments()),
        )

    def _sizes(self, counts: Mapping[str, int]) -> dict[str, list[int]]:
        sizes = {name: [0] * count for name, count in counts.items()}
        for answer in self._client.describe_log_dirs(brokers=list(self._racks)):
            for directory in answer["log_dirs"]:
                for topic in directory["topics"]:
                    own = sizes.get(topic["name"], [])
                    for each in topic["partitions"]:
                        if each["partition_index"] < len(own):
                            largest = max(own[each["partition_index"]], each["partition_size"])
                            own[each["partition_index"]] = largest
        return sizes

    def _configs(self, topics: Sequence[str]) -> list[tuple[str, str]]:
        brokers = [[ConfigResource(ResourceType.BROKER, str(broker))] for broker in self._racks]
        found = set()
        # librdkafka asks one broker in a request.
        for asked in ([ConfigResource(ResourceType.TOPIC, name) for name in topics], *brokers):
            for resource, answer in self._admin.describe_configs(asked).items():
                kind = "broker " if resource.restype is ResourceType.BROKER else ""
                for key, entry in answer.result(30).items():
                    if entry.source in SET_BY_SOMEBODY:
                        found.add((f"{kind}{resource.name}", key))
        return sorted(found)
