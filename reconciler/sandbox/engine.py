"""What the engines have in common: brokers by id, their states, and when they agree."""

from __future__ import annotations

import base64
import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from reconciler.errors import SandboxError
from reconciler.sandbox.readiness import await_metadata
from reconciler.sandbox.settings import PLAINTEXT, Listener, Node
from reconciler.sandbox.shape import choose_controller_id
from reconciler.sandbox.status import BrokerState, BrokerStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from reconciler.sandbox.request import ClusterRequest
    from reconciler.sandbox.reserve import PortReservation


class StartedCluster(ABC):
    """A cluster of either engine, from its first process to its last."""

    def __init__(self, request: ClusterRequest, directory: Path) -> None:
        self.cluster_id = make_cluster_id()
        self.kafka_version = request.kafka_version
        self.directory = directory
        self._request = request
        self._brokers: dict[int, Node] = {}
        self._controller = Node(choose_controller_id(request.brokers))
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
        """Look after every broker."""
        return tuple(self._status(node) for node in self._brokers.values())

    def controller_failure(self) -> str:
        """Return why the controller died, or nothing while it lives."""
        return self._look_at(self._controller)[1]

    def _status(self, node: Node) -> BrokerStatus:
        state, reason = BrokerState.STOPPED, ""
        if node.id not in self._stopped:
            state, reason = self._look_at(node)
        return BrokerStatus(node.id, node.rack, node.listeners[0].address, state, reason)

    def _find_broker(self, broker_id: int, *allowed: BrokerState) -> Node:
        """Return a broker in one of the allowed states. Errors: SandboxError otherwise."""
        if broker_id not in self._brokers:
            known = ", ".join(map(str, self._brokers))
            raise SandboxError(f"the sandbox has no broker {broker_id}; it has {known}")
        status = self._status(self._brokers[broker_id])
        if status.state not in allowed:
            reason = f" ({status.reason})" if status.reason else ""
            raise SandboxError(f"broker {broker_id} is {status.state} already{reason}")
        return self._brokers[broker_id]

    def _await_agreement(self) -> None:
        """Wait until the brokers that run know of each other and of nobody else."""
        running = {
            status.id: status.address
            for status in self.statuses()
            if status.state is BrokerState.RUNNING
        }
        await_metadata(running, self._request.timeout_s, lambda: self._refuse_death(running))

    def _refuse_death(self, expected: Mapping[int, str]) -> None:
        """Errors: SandboxError when a node that is waited for has died."""
        for node in (self._controller, *(self._brokers[broker_id] for broker_id in expected)):
            state, reason = self._look_at(node)
            if state is BrokerState.DEAD:
                raise SandboxError(reason)


def make_cluster_id() -> str:
    """Return a random id as Kafka writes them: 22 characters, the first never a dash."""
    while (cluster_id := base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22]).startswith(b"-"):
        pass
    return cluster_id.decode()


def name_node(node: Node) -> str:
    """Name a node for people, files and networks."""
    return "controller" if node.is_controller else f"broker-{node.id}"


def reserve_listeners(
    further: Mapping[str, str], ports: PortReservation, *, bind_host: str
) -> Sequence[Listener]:
    """Return a broker's listeners for clients, the plaintext one first, on free ports."""
    protocols = {PLAINTEXT: PLAINTEXT, **further}
    return [
        Listener(name, protocol, ports.take(), bind_host=bind_host)
        for name, protocol in protocols.items()
    ]
