"""What the brokers say, each asked by itself over a socket of ours: nothing stands in between."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from confluent_kafka.admin import NewTopic

TIMEOUT_S = 10
PATIENCE_S = 120
MARKER, MARK = "marker", "flush.ms"
METADATA_VERSION = 12
CONFIGS_VERSION = 4
TOPIC_RESOURCE = 2
TOPIC_OVERRIDE = 1


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as a broker shows it: its id, a row of brokers for each partition, its overrides."""

    id: str
    rows: tuple[tuple[int, ...], ...]
    config: Mapping[str, str]


Reading = dict[str, Topic]
UNMARKED = Topic("", (), {})


class UnsettledError(Exception):
    """The brokers do not come to agree, though all of them run."""


class Truth:
    """A cluster, read broker by broker, up to a mark that is set in the moment of asking.

    Brokers replay what controllers decided in one order: one that shows the mark shows all that was
    decided before it. Without a mark, all of them may lag behind, and agree.
    """

    def __init__(self, servers: str, addresses: Mapping[int, str]) -> None:
        self._servers = servers
        self._addresses = addresses
        self._mark = 0

    def create(self, topics: Sequence[NewTopic]) -> None:
        """Create topics, past the network that fails. Errors: KafkaException."""
        admin = self._open_admin()
        for answer in admin.create_topics(list(topics), request_timeout=60).values():
            answer.result(70)

    def delete(self, names: Collection[str]) -> None:
        """Delete topics. Errors: KafkaException."""
        admin = self._open_admin()  # it lives as long as its futures, or they fail
        for answer in (
            admin.delete_topics(list(names), request_timeout=60) if names else {}
        ).values():
            answer.result(70)

    def read(self) -> Reading:
        """Set the mark, and read until every broker shows it. Errors: UnsettledError."""
        deadline = time.monotonic() + PATIENCE_S
        self._set_mark(deadline)
        while True:
            found = [_try(address, self._addresses) for address in self._addresses.values()]
            marks = [(reading or {}).get(MARKER, UNMARKED).config.get(MARK) for reading in found]
            first = found[0]
            if first and marks == [str(self._mark)] * len(found) and found == [first] * len(found):
                return {name: topic for name, topic in first.items() if name != MARKER}
            if time.monotonic() > deadline:
                raise UnsettledError([_show(reading) for reading in found])
            time.sleep(0.1)

    def _set_mark(self, deadline: float) -> None:
        """Set the next mark; a cluster that is healed may need some tries."""
        self._mark += 1
        entry = ConfigEntry(MARK, str(self._mark), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, MARKER, incremental_configs=[entry])
        while True:
            admin = self._open_admin()
            try:
                admin.incremental_alter_configs([resource], request_timeout=10)[resource].result(15)
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def _open_admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._servers, "log_level": 0})


def read_broker(address: str, brokers: Collection[int]) -> Reading | None:
    """Read all topics but Kafka's own from one broker; None while it misses some broker."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), TIMEOUT_S) as stream:
        asked = MetadataRequest[METADATA_VERSION](topics=None, allow_auto_topic_creation=False)
        metadata = _ask(stream, asked, MetadataResponse, METADATA_VERSION)
        if {broker.node_id for broker in metadata.brokers} != set(brokers):
            return None
        topics = [topic for topic in metadata.topics if not topic.is_internal]
        configs = _read_configs(stream, [topic.name for topic in topics])
    found: Reading = {}
    for topic in topics:
        partitions = sorted(topic.partitions, key=lambda each: each.partition_index)
        if [each.partition_index for each in partitions] != list(range(len(partitions))):
            return None
        rows = tuple(tuple(each.replica_nodes) for each in partitions)
        found[topic.name] = Topic(str(topic.topic_id), rows, configs.get(topic.name, {}))
    return found


def _read_configs(stream: socket.socket, names: Collection[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    resource = DescribeConfigsRequest.DescribeConfigsResource
    asked = DescribeConfigsRequest[CONFIGS_VERSION](
        resources=[
            resource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None)
            for name in names
        ],
        include_synonyms=False,
        include_documentation=False,
    )
    answer = _ask(stream, asked, DescribeConfigsResponse, CONFIGS_VERSION)
    return {
        result.resource_name: {
            config.name: config.value
            for config in result.configs
            if config.config_source == TOPIC_OVERRIDE
        }
        for result in answer.results
        if result.error_code == 0
    }


def _ask(stream: socket.socket, request: Any, answer: Any, version: int) -> Any:
    request.with_header(correlation_id=1, client_id="campaign")
    stream.sendall(request.encode(header=True, framed=True))
    (length,) = struct.unpack(">i", _receive(stream, 4))
    return answer.decode(_receive(stream, length), version=version, header=True)


def _receive(stream: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        part = stream.recv(length - len(found))
        if not part:
            raise ConnectionError("the broker hung up")
        found += part
    return found


def _try(address: str, brokers: Collection[int]) -> Reading | None:
    try:
        return read_broker(address, brokers)
    except OSError:
        return None


def _show(reading: Reading | None) -> object:
    return None if reading is None else {name: asdict(topic) for name, topic in reading.items()}
