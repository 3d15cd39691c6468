"""The views of single brokers: their metadata and configs, as states of topics."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from confluent_kafka import KafkaException, Node

from reconciler.errors import ClusterError, keep_interrupts
from reconciler.kafka.configs import TopicConfigs, read_configs
from reconciler.kafka.connection import REQUEST_S, Connection
from reconciler.kafka.errors import TokenError, UntranslatableError
from reconciler.kafka.metadata import BrokerClient, ClientForAll, ClientPerBroker
from reconciler.model.cluster import Assignment, TopicState
from reconciler.side_by_side import run_side_by_side

View = Mapping[str, TopicState]

_THREADS = 16  # each waits for one broker


class Views:
    """Asks brokers one by one. Its connections are kept between polls."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client: BrokerClient | None = None
        self._lock = threading.Lock()

    def read(self, names: Collection[str], with_config: Collection[str]) -> Mapping[int, View]:
        """Ask all living brokers in parallel; one that does not answer is left out."""
        nodes = self.list_brokers()
        client = self._open(nodes)
        views = self._ask_all(client, nodes, names, with_config)
        if not views and isinstance(client, ClientForAll) and not client.has_answers:
            # It may lack a setting that librdkafka has.
            self._client = ClientPerBroker(self._connection.settings)
            views = self._ask_all(self._client, nodes, names, with_config)
        return views

    def list_brokers(self) -> list[Node]:
        """Return the living brokers with their addresses, by id."""
        what = f"asking for the brokers of {self._connection.entry.name}"
        answer = self._connection.ask(
            lambda client: client.describe_cluster(request_timeout=REQUEST_S).result(), what
        )
        return sorted(answer.nodes, key=lambda node: node.id)

    def read_topics(self, node: Node, names: Collection[str]) -> View:
        """Ask one broker for topics, without configs. Errors: KafkaException without an answer."""
        return self._open([node]).read_topics(node, names)

    @keep_interrupts()
    def _open(self, nodes: Sequence[Node]) -> BrokerClient:
        from reconciler.kafka.second_client import translate_settings

        with self._lock:
            if self._client is None:
                settings = self._connection.settings
                try:
                    self._client = ClientForAll(translate_settings(settings, nodes))
                except (UntranslatableError, TokenError):
                    self._client = ClientPerBroker(settings)
            return self._client

    def _ask_all(
        self,
        client: BrokerClient,
        nodes: Sequence[Node],
        names: Collection[str],
        with_config: Collection[str],
    ) -> Mapping[int, View]:
        views: dict[int, View] = {}

        def ask(node: Node) -> tuple[int, View | None]:
            try:
                shown = client.read_topics(node, names)
                configured = shown.keys() & set(with_config)
                configs = self._read_configs(node, configured)
            except (KafkaException, ClusterError):
                return node.id, None
            for name in configured:
                if name in configs.overrides:
                    shown[name] = replace(shown[name], config=configs.overrides[name])
                elif name not in configs.denied:  # deleted since the broker showed it
                    del shown[name]
            return node.id, MappingProxyType(shown)

        def take(told: tuple[int, View | None]) -> None:
            broker, view = told
            if view is not None:
                views[broker] = view

        run_side_by_side(ask, nodes, _THREADS, take)
        return dict(sorted(views.items()))

    def _read_configs(self, node: Node, names: Collection[str]) -> TopicConfigs:
        """Ask one broker, with a new client if the kept one may have lost its connection."""
        client = self._connection.client()
        try:
            return read_configs(client, names, (node.id,))
        except KafkaException:
            self._connection.forget(client)
        return read_configs(self._connection.client(), names, (node.id,))


def is_behind(topic: TopicState) -> bool:
    """Return whether some replica is out of sync."""
    pairs = zip(topic.in_sync, topic.assignment, strict=True)
    return any(len(synced) < len(row) for synced, row in pairs)


def is_uneven(assignment: Assignment) -> bool:
    """Return whether partitions differ in replicas: one may be under reassignment."""
    return len(set(map(len, assignment))) > 1
