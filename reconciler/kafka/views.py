"""The views of single brokers: their metadata, as states of topics."""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from reconciler.kafka.configs import TopicConfigs, read_configs
from reconciler.kafka.connection import REQUEST_S
from reconciler.kafka.errors import DENIED
from reconciler.model import INTERNAL_TOPICS, TopicState
from reconciler.side_by_side import run_side_by_side

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from confluent_kafka import Node
    from confluent_kafka.admin import AdminClient, ClusterMetadata, TopicMetadata

    from reconciler.kafka.connection import Connection
    from reconciler.model import Assignment

_TRIES = 3
_THREADS = 16  # each client has a thread for every broker: 60 clients of 60 had 3,700, and 1 GB
_ANY_TOPIC = "reconciler"  # a request for its configs connects to a broker; it need not exist


class Views:
    """Clients that ask one broker each, kept between polls.

    Each has a thread for every broker of the cluster; `most` bounds how many brokers are asked.
    """

    def __init__(self, connection: Connection, most: int | None = None) -> None:
        self._connection = connection
        self._most = most
        self._clients: dict[int, AdminClient] = {}
        self._lock = threading.Lock()

    def read(
        self, names: Collection[str], with_config: Collection[str]
    ) -> Mapping[int, Mapping[str, TopicState]]:
        """Ask all living brokers in parallel; one that does not answer is left out."""
        views: dict[int, Mapping[str, TopicState]] = {}

        def ask(node: Node) -> tuple[int, Mapping[str, TopicState] | None]:
            try:
                metadata, configs = self._ask(node, with_config)
            except KafkaException:
                return node.id, None
            shown = metadata.topics
            view = {
                name: read_topic(name, shown[name], configs.overrides.get(name, {}))
                for name in names
                if name in shown
            }
            return node.id, MappingProxyType(view)

        def take(told: tuple[int, Mapping[str, TopicState] | None]) -> None:
            broker, view = told
            if view is not None:
                views[broker] = view

        run_side_by_side(ask, self.list_brokers()[: self._most], _THREADS, take)
        return dict(sorted(views.items()))

    def list_brokers(self) -> list[Node]:
        """Return the living brokers with their addresses, by id."""
        what = f"asking for the brokers of {self._connection.entry.name}"
        answer = self._connection.ask(
            lambda client: client.describe_cluster(request_timeout=REQUEST_S).result(), what
        )
        return sorted(answer.nodes, key=lambda node: node.id)

    def read_metadata(self, node: Node) -> ClusterMetadata:
        """Return one broker's metadata. Errors: KafkaException if it does not answer."""
        return self._ask(node, ())[0]

    def _ask(
        self, node: Node, with_config: Collection[str]
    ) -> tuple[ClusterMetadata, TopicConfigs]:
        """Ask one broker, with a fresh client if a kept one is lost or another one answered."""
        for _ in range(_TRIES):
            is_fresh = node.id not in self._clients
            client = self._client(node)
            try:
                # Metadata goes to any broker that the client is connected to, and the bootstrap
                # address alone does not pin it. A request for configs names its broker, so it
                # comes first: the client stays with that connection.
                configs = read_configs(client, with_config or (_ANY_TOPIC,), (node.id,))
                metadata = read_metadata(client)
            except KafkaException:
                self._forget(node)
                if is_fresh:
                    raise  # the broker's fault; that of a kept client may be a lost connection
                continue
            if metadata.orig_broker_id == node.id:  # otherwise another broker answered after all
                return metadata, configs
            self._forget(node)
        raise KafkaException(KafkaError(KafkaError._FAIL, f"broker {node.id} does not answer"))

    def _forget(self, node: Node) -> None:
        with self._lock:
            self._clients.pop(node.id, None)

    def _client(self, node: Node) -> AdminClient:
        with self._lock:
            client = self._clients.get(node.id)
            if client is None:
                # Metadata has IPv6 addresses without brackets, bootstrap.servers needs them.
                host = f"[{node.host}]" if ":" in node.host else node.host
                settings = self._connection.settings.start_at(f"{host}:{node.port}")
                client = settings.build_client()
                self._clients[node.id] = client
            return client


_NOT_THERE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, *DENIED})


def read_metadata(client: AdminClient) -> ClusterMetadata:
    """Ask any broker for all topics; those that it reports as missing are omitted.

    Errors: KafkaException if no answer comes, or if the broker does not know a topic's partitions
    yet: the topic would seem to have none.
    """
    metadata = client.list_topics(timeout=REQUEST_S)
    troubled = {name: topic.error for name, topic in metadata.topics.items() if topic.error}
    for name, error in troubled.items():
        if error.code() not in _NOT_THERE:
            raise KafkaException(error)
        del metadata.topics[name]
    return metadata


def read_topic(name: str, metadata: TopicMetadata, config: Mapping[str, str | None]) -> TopicState:
    """Build a topic's state as one broker shows it."""
    partitions = [metadata.partitions[number] for number in sorted(metadata.partitions)]
    return TopicState(
        name=name,
        topic_id=None,
        assignment=tuple(tuple(partition.replicas) for partition in partitions),
        config=config,
        in_sync=tuple(tuple(partition.isrs) for partition in partitions),
        internal=name in INTERNAL_TOPICS,
        leaders=tuple(partition.leader for partition in partitions),
    )


def is_behind(topic: TopicState) -> bool:
    """Return whether some replica is out of sync."""
    pairs = zip(topic.in_sync, topic.assignment, strict=True)
    return any(len(synced) < len(row) for synced, row in pairs)


def is_uneven(assignment: Assignment) -> bool:
    """Return whether partitions differ in replicas: one may be under reassignment."""
    return len(set(map(len, assignment))) > 1
