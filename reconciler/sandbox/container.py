"""The container engine: the official image, one container per broker, on their own network.

Brokers reach each other by name on that network. Clients reach them on fixed ports of loopback, so
a restarted broker keeps its address.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from reconciler.errors import SandboxError
from reconciler.sandbox.docker_engine import (
    find_docker,
    label_run,
    speaking_docker,
    sweep_containers,
    watch_over,
)
from reconciler.sandbox.engine import PortReservation, StartedCluster, name_node, reserve_listeners
from reconciler.sandbox.process import describe_exit
from reconciler.sandbox.request import BrokerState, ClusterRequest
from reconciler.sandbox.settings import (
    CONTROLLER,
    MOST_COPIES,
    PLAINTEXT,
    ClusterSettings,
    ListenerSettings,
    Node,
    node_properties,
)

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

OFFICIAL_IMAGE = "apache/kafka"
STORAGE = PurePosixPath("/var/lib/kafka/data")
INTERNAL = "INTERNAL"
INTERNAL_PORT, CONTROLLER_PORT = 9092, 9093
JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
HEAP = "-Xmx256m"
STOP_TIMEOUT_S = 30


class ContainerCluster(StartedCluster):
    """A cluster of this engine."""

    def __init__(self, request: ClusterRequest, directory: Path) -> None:
        super().__init__(request, directory)
        if request.scram_users:
            raise SandboxError(
                "the image cannot add SCRAM users while formatting; use the embedded engine"
            )
        if request.controllers > 1:
            raise SandboxError(
                "the container engine runs one controller; use the embedded engine for more"
            )
        self._client = find_docker()
        self._image = request.image or f"{OFFICIAL_IMAGE}:{request.kafka_version}"
        self._ports = PortReservation()
        self._settings = ClusterSettings(
            controllers={
                node.id: ListenerSettings(
                    CONTROLLER, PLAINTEXT, CONTROLLER_PORT, name_node(node), bind_host=""
                )
                for node in self._controllers.values()
            },
            copies=min(MOST_COPIES, len(request.brokers)),
            inter_broker=INTERNAL,
            properties=request.properties,
        )
        for broker in request.brokers:
            listeners = reserve_listeners(request.listeners, self._ports, bind_host="")
            name = name_node(Node(broker.id, tuple(listeners)))
            internal = ListenerSettings(INTERNAL, PLAINTEXT, INTERNAL_PORT, name, bind_host="")
            self._brokers[broker.id] = Node(broker.id, (*listeners, internal), broker.rack)
        self._containers: dict[int, DockerContainer] = {}
        self._cleanup = ExitStack()

    @property
    def process_ids(self) -> Mapping[int, int]:
        """The process of each node that runs, as the Docker engine's machine knows it."""
        states = {node_id: self._inspect(node_id) for node_id in self._containers}
        return {node_id: state["Pid"] for node_id, state in states.items() if state["Running"]}

    def start(self) -> None:
        """Start every node and wait until all brokers know each other."""
        from testcontainers.core.network import Network

        with speaking_docker("start the containers"):
            sweep_containers(self._client)
            self._cleanup.callback(self._ports.release)
            self._cleanup.enter_context(watch_over(self.directory))
            labels = {"labels": label_run(self.directory)}
            network = self._cleanup.enter_context(Network(docker_network_kw=labels))
            for node in (*self._controllers.values(), *self._brokers.values()):
                container = self._describe_container(node).with_network(network)
                # Registered first: a start that fails half-way is cleaned up like the others.
                self._cleanup.callback(self._remove, node)
                self._containers[node.id] = container
                container.start()
        self._await_agreement()

    def close(self) -> None:
        """Remove the containers, then their network, keeping their logs."""
        with speaking_docker("remove the containers"):
            self._cleanup.close()
        self._client.close()

    def _describe_container(self, node: Node) -> DockerContainer:
        """Return a node's container, not started: environment, name, and ports on loopback."""
        from testcontainers.core.container import DockerContainer

        name = name_node(node)
        container = DockerContainer(self._image).with_network_aliases(name)
        # Once any KAFKA_ variable is set, the image ignores its own server.properties: the
        # configuration has to be complete.
        numbers = range(self._request.log_directories)
        properties = {
            **node_properties(node, self._settings, [STORAGE / f"log-{n}" for n in numbers]),
            **self._request.broker_properties.get(node.id, {}),
        }
        environment = {name_variable(key): value for key, value in properties.items()} | {
            "CLUSTER_ID": self.cluster_id,
            "KAFKA_HEAP_OPTS": HEAP,  # 1 GB otherwise
            "KAFKA_JVM_PERFORMANCE_OPTS": JVM,
            "KAFKA_OPTS": " ".join(self._request.jvm_options),
        }
        container.with_envs(**environment)
        container.with_kwargs(labels=label_run(self.directory), hostname=name)
        for listener in node.listeners:
            if listener.name != INTERNAL:
                # with_bind_ports knows no host address and would open the port to the network.
                container.ports[str(listener.port)] = (listener.host, listener.port)  # type: ignore[assignment]
        return container

    def _look_at(self, node: Node) -> tuple[BrokerState, str]:
        state = self._inspect(node.id)
        if state["Paused"]:
            return BrokerState.FROZEN, ""
        if state["Running"]:
            return BrokerState.RUNNING, ""
        code = state["ExitCode"]
        ended = 128 - code if code > 128 else code  # as in shells, 128 and the signal's number
        return BrokerState.DEAD, describe_exit(name_node(node), ended, self._save_log(node))

    def _find_active_controller(self) -> int | None:
        """Return the only controller, if it runs."""
        (node,) = self._controllers.values()
        return node.id if self._state(node)[0] is BrokerState.RUNNING else None

    def _stop(self, node: Node) -> None:
        with speaking_docker(f"stop {name_node(node)}"):
            self.find_container(node.id).stop(timeout=STOP_TIMEOUT_S)

    def _start(self, node: Node) -> None:
        with speaking_docker(f"start {name_node(node)}"):
            self.find_container(node.id).start()

    def find_container(self, node_id: int) -> Any:
        """Return a node's container, as the Docker client knows it."""
        return self._containers[node_id].get_wrapped_container()

    def _inspect(self, node_id: int) -> Mapping[str, Any]:
        """Return a container's state from the Docker engine."""
        with speaking_docker("look at the containers"):
            container = self.find_container(node_id)
            container.reload()
        state: Mapping[str, Any] = container.attrs["State"]
        return state

    def _save_log(self, node: Node) -> Path:
        """Save the log of a container so far."""
        log = self.directory / f"{name_node(node)}.log"
        log.write_bytes(self.find_container(node.id).logs())
        return log

    def _remove(self, node: Node) -> None:
        """Remove a node's container, if it was created, and keep its log."""
        from testcontainers.core.exceptions import ContainerStartException

        with suppress(ContainerStartException):
            self._save_log(node)
            self._containers[node.id].stop()


def name_variable(key: str) -> str:
    """Return the environment variable that the image turns into a property."""
    escaped = key.replace("_", "__").replace("-", "___").replace(".", "_")
    return f"KAFKA_{escaped.upper()}"
