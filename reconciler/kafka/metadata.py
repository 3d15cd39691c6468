"""Metadata: of all topics from any broker, or of some topics from one named broker.

librdkafka chooses the broker of a metadata request itself, so one client can be pinned to one
broker only. Each client has a thread for every broker: N brokers take N² threads. kafka-python
sends a request to the broker that the caller names: one client and one thread serve all brokers.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Node
from confluent_kafka.admin import AdminClient, ClusterMetadata, TopicMetadata

from reconciler.kafka.configs import read_configs
from reconciler.kafka.connection import REQUEST_S
from reconciler.kafka.errors import DENIED
from reconciler.kafka.settings import ClientSettings
from reconciler.model.cluster import EMPTY, INTERNAL_TOPICS, TopicState

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


class BrokerClient(Protocol):
    """Asks one named broker. Safe to share between threads."""

    def read_topics(self, node: Node, names: Collection[str]) -> dict[str, TopicState]:
        """Ask a broker for topics, without their configs; those that it does not show are omitted.

        Errors: KafkaException if it does not answer, or as `read_metadata`.
        """
        ...


# The client's only thread decodes 1,000 topics of four partitions in 40 ms. Meanwhile the other
# requests wait, and their timeouts run.
BATCH = 1_000


class ClientForAll:
    """One client of kafka-python for all brokers; it ends with the last reference to it."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        from kafka.net.manager import KafkaConnectionManager
        from kafka.net.selector import NetworkSelector

        logging.getLogger("kafka").addHandler(logging.NullHandler())
        # The default is 1 MB. An answer has 150 bytes for each topic of four partitions.
        properties = {**properties, "receive_message_max_bytes": 1_000_000_000}
        net = NetworkSelector(**properties)
        self._manager = KafkaConnectionManager(net, **properties)
        self._failures: dict[str, int] = {}
        self._known: set[str] = set()
        net.start()
        # Not at the end of the program: it must not wait for a broker.
        weakref.finalize(self, _close, self._manager, net).atexit = False

    @property
    def has_answers(self) -> bool:
        """Return whether any broker has answered."""
        return bool(self._known)

    def read_topics(self, node: Node, names: Collection[str]) -> dict[str, TopicState]:
        """Ask a broker; see BrokerClient."""
        wanted = list(names)
        shown: dict[str, TopicState] = {}
        for start in range(0, max(1, len(wanted)), BATCH):
            answer = self._request(node, wanted[start : start + BATCH])
            shown |= _read_answer(answer)
        return shown

    def _request(self, node: Node, names: Sequence[str]) -> Any:
        """Send one request, with a new connection if the kept one is lost."""
        from kafka.errors import KafkaError as ClientError

        broker = f"{node.id} {node.host}:{node.port}"
        while True:
            # kafka-python tells connections apart by node id, and refuses an id after a failure:
            # for up to 30 s, or for ever if the broker refused to authenticate it. A new id gets a
            # new connection at once.
            node_id = f"{broker} {self._failures.get(broker, 0)}"
            try:
                answer = self._manager.run(self._ask, node_id, node, names)
            except (ClientError, OSError, RuntimeError, ValueError) as error:
                self._failures[broker] = self._failures.get(broker, 0) + 1
                if node_id in self._known:  # the connection may have been lost since then
                    continue
                what = f"broker {node.id} does not answer: {type(error).__name__}: {error}"
                raise KafkaException(KafkaError(KafkaError._FAIL, what)) from error
            self._known.add(node_id)
            return answer

    async def _ask(self, node_id: str, node: Node, names: Sequence[str]) -> Any:
        from kafka.protocol.metadata import CoordinatorType, MetadataRequest

        # The way to give the client an address under an id of our own.
        address = SimpleNamespace(error_code=0, node_id=node_id, host=node.host, port=node.port)
        self._manager.cluster.add_coordinator(
            address, CoordinatorType.GROUP, node_id, synthesize_node_id=False
        )
        connection = self._manager.get_connection(node_id, refresh_metadata_on_err=False)
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names],
            # By default a broker creates the topics that it is asked for, if it creates any.
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
            min_version=4,  # older ones do not know allow_auto_topic_creation
        )
        sent = connection.send_request(request, request_timeout_ms=_REQUEST_MS)
        return await self._manager.wait_for(sent, _REQUEST_MS)


_REQUEST_MS = int(REQUEST_S * 1000)


def _close(manager: Any, net: Any) -> None:
    # Closing waits for the client's thread, and garbage may be collected in that very thread.
    threading.Thread(target=lambda: (manager.close(), net.close()), daemon=True).start()


def _read_answer(answer: Any) -> Iterator[tuple[str, TopicState]]:
    for topic in answer.topics:
        if topic.error_code in _NOT_THERE:
            continue
        if topic.error_code:
            raise KafkaException(KafkaError(topic.error_code))
        partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
        yield (
            topic.name,
            TopicState(
                name=topic.name,
                topic_id=None,
                assignment=tuple(tuple(partition.replica_nodes) for partition in partitions),
                config=EMPTY,
                in_sync=tuple(tuple(partition.isr_nodes) for partition in partitions),
                internal=topic.name in INTERNAL_TOPICS,
                leaders=tuple(partition.leader_id for partition in partitions),
            ),
        )


_TRIES = 3
_ANY_TOPIC = "reconciler"  # a request for its configs connects to a broker; it need not exist


class ClientPerBroker:
    """A client of librdkafka for each broker, for settings that only librdkafka supports.

    Each has a thread for every broker of the cluster.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._clients: dict[int, AdminClient] = {}
        self._lock = threading.Lock()

    def read_topics(self, node: Node, names: Collection[str]) -> dict[str, TopicState]:
        """Ask a broker; see BrokerClient."""
        for _ in range(_TRIES):
            is_fresh = node.id not in self._clients
            client = self._client(node)
            try:
                # Metadata goes to any broker that the client is connected to, and the bootstrap
                # address alone does not pin it. A request for configs names its broker, so it comes
                # first: the client stays with that connection.
                read_configs(client, (_ANY_TOPIC,), (node.id,))
                metadata = read_metadata(client)
            except KafkaException:
                self._forget(node)
                if is_fresh:
                    raise  # the broker's fault; that of a kept client may be a lost connection
                continue
            if metadata.orig_broker_id == node.id:  # otherwise another broker answered after all
                shown = metadata.topics
                return {
                    name: read_topic(name, shown[name], EMPTY) for name in names if name in shown
                }
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
                client = self._settings.start_at(f"{host}:{node.port}").build_client()
                self._clients[node.id] = client
            return client
