"""The property files of a throwaway cluster: small, quick to start, closed to the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType

HOST = "127.0.0.1"
CONTROLLER = "CONTROLLER"
PLAINTEXT = "PLAINTEXT"
MOST_COPIES = 3  # of internal topics: with the groups, the lock of an apply outlives one broker

SMALL = MappingProxyType(
    {
        # A client that asks for the metadata of a missing topic would create it.
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "3",
        "group.initial.rebalance.delay.ms": "0",  # 3 s by default, for members that come together
        # A broker that comes back waits until its former session has ended (9 s by default).
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # The defaults are for a server of its own.
        "num.network.threads": "1",
        "num.io.threads": "2",
        "num.replica.fetchers": "1",
        "background.threads": "2",
        "log.cleaner.dedupe.buffer.size": "2097152",
    }
)


INTERNAL_FACTORS = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """A node's listener: its protocol (PLAINTEXT, SSL, …), and where it is found and bound."""

    name: str
    protocol: str
    port: int
    host: str = HOST
    bind_host: str = HOST

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of Kafka: a broker with its listeners, or a controller with none."""

    id: int
    listeners: tuple[ListenerSettings, ...] = ()
    rack: str | None = None

    @property
    def is_controller(self) -> bool:
        """Whether this node keeps the metadata and serves no clients."""
        return not self.listeners


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """What all nodes of a cluster share. `properties` come last and win.

    `controllers`: where each of them listens, by node id; together they are the quorum.
    `copies`: how many replicas internal topics have. Consumer groups outlive a broker then, and no
    plan notes that internal topics have fewer replicas than the others.
    """

    controllers: Mapping[int, ListenerSettings]
    copies: int = 1
    inter_broker: str = PLAINTEXT
    properties: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def node_properties(
    node: Node, cluster: ClusterSettings, log_directories: Sequence[PurePath]
) -> dict[str, str]:
    """Return the entire configuration of a node."""
    controllers = cluster.controllers
    listeners = (controllers[node.id],) if node.is_controller else node.listeners
    properties = {
        **SMALL,
        **dict.fromkeys(INTERNAL_FACTORS, str(cluster.copies)),
        "process.roles": "controller" if node.is_controller else "broker",
        "node.id": str(node.id),
        # A static quorum: the official image cannot format the directories for a dynamic one.
        "controller.quorum.voters": ",".join(
            f"{voter}@{listener.address}" for voter, listener in controllers.items()
        ),
        "controller.listener.names": CONTROLLER,
        "listeners": ",".join(f"{each.name}://{each.bind_host}:{each.port}" for each in listeners),
        "listener.security.protocol.map": ",".join(
            (
                f"{CONTROLLER}:{PLAINTEXT}",
                *(f"{each.name}:{each.protocol}" for each in node.listeners),
            )
        ),
        "log.dirs": ",".join(str(directory) for directory in log_directories),
    }
    if not node.is_controller:
        properties["advertised.listeners"] = ",".join(
            f"{each.name}://{each.address}" for each in listeners
        )
        properties["inter.broker.listener.name"] = cluster.inter_broker
    if node.rack is not None:
        properties["broker.rack"] = node.rack
    return {**properties, **cluster.properties}


def render_properties(properties: Mapping[str, str]) -> str:
    """Render a Java property file. Values may hold anything, keys are Kafka's."""
    return "".join(f"{key}={_escape(value)}\n" for key, value in sorted(properties.items()))


def _escape(value: str) -> str:
    """Escape a value so that Java reads it back as it is.

    Java reads property files as ISO 8859-1, so other characters are written as UTF-16 units.
    """
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    escaped = escaped.replace("\t", "\\t")
    if escaped.startswith(" "):
        escaped = "\\" + escaped
    return "".join(c if c.isascii() else _escape_character(c) for c in escaped)


def _escape_character(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
