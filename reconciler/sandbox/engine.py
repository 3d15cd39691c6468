"""What the engines share: brokers by id, their states, their ports, and when a cluster is ready.

A cluster is ready when every broker, asked on its own, names all the others.

A reserved port stays bound, without listening, so that the system gives it to no other process,
also while its broker is stopped. Brokers may bind it all the same: they, too, allow reuse.
"""

from __future__ import annotations

import base64
import socket
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from reconciler.errors import SandboxError
from reconciler.sandbox.request import (
    BrokerState,
    BrokerStatus,
    ClusterRequest,
    ControllerStatus,
    choose_controller_ids,
)
from reconciler.sandbox.settings import HOST, PLAINTEXT, ClusterSettings, ListenerSettings, Node


class StartedCluster(ABC):
    """A cluster of either engine, from its first process to its last."""

    _settings: ClusterSettings

    def __init__(self, request: ClusterRequest, directory: Path) -> None:
        self.cluster_id = make_cluster_id()
        self.kafka_version = request.kafka_version
        self.directory = directory
        self._request = request
        self._brokers: dict[int, Node] = {}
        ids = choose_controller_ids(request.brokers, request.controllers)
        self._controllers = {controller_id: Node(controller_id) for controller_id in ids}
        self._stopped: set[int] = set()

    @abstractmethod
    def start(self) -> None:
        """Start every node and wait until all brokers know each other."""

    @abstractmethod
    def close(self) -> None:
        """End everything and remove it, also after half a start."""

    @abstractmethod
    def _look_at(self, node: Node) -> tuple[BrokerState, str]:
        """Return the state of a node that was not stopped, and the reason if it is dead."""

    @abstractmethod
    def _stop(self, node: Node) -> None:
        """Shut a node down in good order."""

    @abstractmethod
    def _start(self, node: Node) -> None:
        """Start a node that does not run."""

    @abstractmethod
    def _find_active_controller(self) -> int | None:
        """Return the id of the controller that leads, or None while there is none."""

    @property
    def bootstrap_servers(self) -> str:
        """Every broker's plaintext address, for a client's bootstrap.servers."""
        return ",".join(self.addresses().values())

    def addresses(self, listener: str = PLAINTEXT) -> Mapping[int, str]:
        """Return host:port of a listener, by broker id."""
        return {
            node.id: each.address
            for node in self._brokers.values()
            for each in node.listeners
            if each.name == listener
        }

    def statuses(self) -> tuple[BrokerStatus, ...]:
        """Return the state of every broker."""
        return tuple(
            BrokerStatus(node.id, node.rack, node.listeners[0].address, *self._state(node))
            for node in self._brokers.values()
        )

    def controller_statuses(self) -> tuple[ControllerStatus, ...]:
        """Return the state of every controller, and which one is active."""
        active = self._find_active_controller()
        return tuple(
            ControllerStatus(
                node.id,
                self._settings.controllers[node.id].address,
                *self._state(node),
                node.id == active,
            )
            for node in self._controllers.values()
        )

    def stop_broker(self, broker_id: int) -> None:
        """Shut a broker down as an operator would."""
        self._stop_node(self._find_broker(broker_id, BrokerState.RUNNING))

    def start_broker(self, broker_id: int) -> None:
        """Start a broker that is stopped or dead."""
        self._start_node(self._find_broker(broker_id, BrokerState.STOPPED, BrokerState.DEAD))

    def stop_controller(self, controller_id: int) -> None:
        """Shut a controller down as an operator would."""
        self._stop_node(self._find_controller(controller_id, BrokerState.RUNNING))

    def start_controller(self, controller_id: int) -> None:
        """Start a controller that is stopped or dead."""
        allowed = (BrokerState.STOPPED, BrokerState.DEAD)
        self._start_node(self._find_controller(controller_id, *allowed))

    def _stop_node(self, node: Node) -> None:
        self._stop(node)
        self._stopped.add(node.id)
        self._await_agreement()

    def _start_node(self, node: Node) -> None:
        self._start(node)
        self._stopped.discard(node.id)
        self._await_agreement()

    def _state(self, node: Node) -> tuple[BrokerState, str]:
        return (BrokerState.STOPPED, "") if node.id in self._stopped else self._look_at(node)

    def _find_broker(self, broker_id: int, *allowed: BrokerState) -> Node:
        """Return a broker in one of the allowed states. Errors: SandboxError otherwise."""
        return self._find_node("broker", self._brokers, broker_id, allowed)

    def _find_controller(self, controller_id: int, *allowed: BrokerState) -> Node:
        """Return a controller in one of the allowed states. Errors: SandboxError otherwise."""
        return self._find_node("controller", self._controllers, controller_id, allowed)

    def _find_node(
        self, role: str, nodes: Mapping[int, Node], node_id: int, allowed: Sequence[BrokerState]
    ) -> Node:
        if node_id not in nodes:
            known = ", ".join(map(str, nodes))
            raise SandboxError(f"the sandbox has no {role} {node_id}; it has {known}")
        state, reason = self._state(nodes[node_id])
        if state not in allowed:
            why = f" ({reason})" if reason else ""
            raise SandboxError(f"{role} {node_id} is {state} already{why}")
        return nodes[node_id]

    def _await_agreement(self) -> None:
        """Wait until the brokers that run know of each other and of no one else."""
        running = {
            status.id: status.address
            for status in self.statuses()
            if status.state is BrokerState.RUNNING
        }
        await_metadata(running, self._request.timeout_s, lambda: self._refuse_death(running))

    def _refuse_death(self, expected: Mapping[int, str]) -> None:
        """Errors: SandboxError when a broker that is waited for, or the quorum, has died."""
        lost = self._find_deaths(self._brokers[broker_id] for broker_id in expected)
        voters = self._find_deaths(self._controllers.values())
        # A quorum needs more than half of its voters (KIP-595); one that is frozen may come back.
        if 2 * len(voters) >= len(self._controllers):
            lost += voters
        if lost:
            raise SandboxError(lost[0])

    def _find_deaths(self, nodes: Iterable[Node]) -> list[str]:
        looks = (self._state(node) for node in nodes)
        return [reason for state, reason in looks if state is BrokerState.DEAD]


def make_cluster_id() -> str:
    """Return a random id as Kafka writes them: 22 characters, the first never a dash.

    Command lines would take such an id for an option.
    """
    while (cluster_id := base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22]).startswith(b"-"):
        pass
    return cluster_id.decode()


def name_node(node: Node) -> str:
    """Name a node for people, files and networks."""
    return f"{'controller' if node.is_controller else 'broker'}-{node.id}"


def reserve_listeners(
    further: Mapping[str, str], ports: PortReservation, *, bind_host: str
) -> Sequence[ListenerSettings]:
    """Return a broker's listeners for clients, the plaintext one first, on free ports."""
    protocols = {PLAINTEXT: PLAINTEXT, **further}
    return [
        ListenerSettings(name, protocol, ports.take(), bind_host=bind_host)
        for name, protocol in protocols.items()
    ]


PAUSE_S = 0.05
REQUEST_TIMEOUT_S = 2


def await_metadata(
    addresses: Mapping[int, str], timeout_s: float, refuse_death: Callable[[], None]
) -> None:
    """Wait until each broker's metadata shows exactly these brokers.

    In: `timeout_s`, the longest time in which no broker sees a change.
    Errors: SandboxError naming the brokers that still see others, or what `refuse_death` raises.
    """
    deadline = time.monotonic() + timeout_s
    views: dict[int, set[int]] = {}
    lagging = set(addresses)
    while True:
        before, views = views, {i: _ask_brokers(addresses[i]) for i in lagging}
        lagging = {i for i, view in views.items() if view != set(addresses)}
        if not lagging:
            return
        refuse_death()
        if views != before:  # progress: a slow machine is not a failure
            deadline = time.monotonic() + timeout_s
        if time.monotonic() > deadline:
            names = ", ".join(map(str, sorted(lagging)))
            raise SandboxError(
                f"the metadata of these brokers does not show the cluster as it is, and has not"
                f" changed for {timeout_s:g} s: {names}; the machine may be short of memory or"
                " processor time"
            )
        time.sleep(PAUSE_S)


def _ask_brokers(address: str) -> set[int]:
    """Return the ids that one broker knows, or nothing while it does not answer."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    # A client goes on to any broker it has heard of: a fresh one asks the one it is given.
    client = AdminClient({"bootstrap.servers": address, "log_level": 0})
    try:
        return set(client.list_topics(timeout=REQUEST_TIMEOUT_S).brokers)
    except KafkaException:
        return set()


class PortReservation:
    """Ports that this process holds until `release`."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def take(self) -> int:
        """Reserve one more port."""
        held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._sockets.append(held)
        held.bind((HOST, 0))
        # After the bind: the system may give two sockets that allow reuse the same free port.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port: int = held.getsockname()[1]
        return port

    def release(self) -> None:
        """Give all ports back."""
        while self._sockets:
            self._sockets.pop().close()
