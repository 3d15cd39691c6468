"""The embedded engine: real brokers in a JVM that a child process of ours holds.

All of them share one process, which is quick and small; `isolate` gives each its own, so that a
single one can be killed or frozen. The controller is a node of its own: any broker may stop.
"""

from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING

from reconciler.errors import SandboxError
from reconciler.sandbox.process import HostProcess, wait_for_answers
from reconciler.sandbox.readiness import await_metadata
from reconciler.sandbox.reserve import PortReservation
from reconciler.sandbox.runs import DATA
from reconciler.sandbox.settings import (
    CONTROLLER,
    PLAINTEXT,
    ClusterSettings,
    Listener,
    Node,
    node_properties,
    render_properties,
)
from reconciler.sandbox.shape import choose_controller_id
from reconciler.sandbox.status import BrokerState, BrokerStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from reconciler.model import Broker
    from reconciler.sandbox.launch import Launch
    from reconciler.sandbox.request import ClusterRequest


class EmbeddedCluster:
    """A cluster of this engine: one host for all nodes, or one for each."""

    def __init__(self, request: ClusterRequest, launch: Launch, directory: Path) -> None:
        self.cluster_id = make_cluster_id()
        self.kafka_version = request.kafka_version
        self.directory = directory
        self._request = request
        self._launch = launch
        self._ports = PortReservation()
        self._settings = ClusterSettings(
            controller=Listener(CONTROLLER, PLAINTEXT, self._ports.take()),
            controller_id=choose_controller_id(request.brokers),
            properties=request.properties,
        )
        self._controller = Node(self._settings.controller_id)
        self._brokers = {broker.id: self._make_node(broker) for broker in request.brokers}
        self._hosts: dict[int, HostProcess] = {}
        self._stopped: set[int] = set()

    def _make_node(self, broker: Broker) -> Node:
        protocols = {PLAINTEXT: PLAINTEXT, **self._request.listeners}
        listeners = [Listener(name, p, self._ports.take()) for name, p in protocols.items()]
        return Node(broker.id, tuple(listeners), broker.rack)

    def start(self) -> None:
        """Start every node and wait until all brokers know each other."""
        nodes = [self._controller, *self._brokers.values()]
        for node in nodes:
            self._write_properties(node)
        for group in [[node] for node in nodes] if self._request.isolate else [nodes]:
            host = self._spawn_host(group)
            self._hosts.update((node.id, host) for node in group)
            self._order(host, "format-and-start", group)
        wait_for_answers(self._all_hosts(), self._request.timeout_s)
        self._await_metadata()

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

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The processes that make up the cluster."""
        return tuple(host.pid for host in self._all_hosts() if host.alive)

    def statuses(self) -> tuple[BrokerStatus, ...]:
        """Look after every broker's process."""
        return tuple(self._status(node) for node in self._brokers.values())

    def _status(self, node: Node) -> BrokerStatus:
        host = self._hosts[node.id]
        state, reason = BrokerState.RUNNING, ""
        if node.id in self._stopped:
            state = BrokerState.STOPPED
        elif not host.alive:
            state, reason = BrokerState.DEAD, host.describe_death()
        elif host.frozen:
            state = BrokerState.FROZEN
        return BrokerStatus(node.id, node.rack, node.listeners[0].address, state, reason)

    def stop_broker(self, broker_id: int) -> None:
        """Shut a broker down as an operator would."""
        node = self._find_broker(broker_id, BrokerState.RUNNING)
        host = self._hosts[broker_id]
        self._order(host, "stop", [node])
        wait_for_answers([host], self._request.timeout_s)
        self._stopped.add(broker_id)
        if self._request.isolate:
            host.kill()
        self._await_metadata()

    def start_broker(self, broker_id: int) -> None:
        """Start a broker that is stopped or dead."""
        node = self._find_broker(broker_id, BrokerState.STOPPED, BrokerState.DEAD)
        host = self._hosts[broker_id]
        if not host.alive:
            if not self._request.isolate:
                raise SandboxError(f"{host.describe_death()}; start the whole cluster again")
            host = self._hosts[broker_id] = self._spawn_host([node])
        self._order(host, "start", [node])
        wait_for_answers([host], self._request.timeout_s)
        self._stopped.discard(broker_id)
        self._await_metadata()

    def kill_broker(self, broker_id: int) -> None:
        """End a broker without warning (SIGKILL); the others notice after some seconds."""
        self._find_own_host(broker_id, BrokerState.RUNNING, BrokerState.FROZEN).kill()

    def freeze_broker(self, broker_id: int) -> None:
        """Let a broker hang: connected, but without an answer (SIGSTOP)."""
        self._find_own_host(broker_id, BrokerState.RUNNING).freeze()

    def thaw_broker(self, broker_id: int) -> None:
        """Let a frozen broker go on."""
        self._find_own_host(broker_id, BrokerState.FROZEN).thaw()

    def finish(self) -> None:
        """Shut all down in good order, the controller last, and let the JVM end by itself."""
        for nodes in (list(self._brokers.values()), [self._controller]):
            host = self._hosts[nodes[0].id]
            self._order(host, "stop", nodes)
            wait_for_answers([host], self._request.timeout_s)
        for host in self._all_hosts():
            host.finish(self._request.timeout_s)

    def close(self) -> None:
        """End every process. What they leave behind is thrown away, so nothing is shut down."""
        for host in self._all_hosts():
            host.kill()
        self._ports.release()

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

    def _find_own_host(self, broker_id: int, *allowed: BrokerState) -> HostProcess:
        """Return the process that is one broker and nothing else."""
        self._find_broker(broker_id, *allowed)
        if not self._request.isolate:
            raise SandboxError("these brokers share a process; start the cluster with isolate")
        return self._hosts[broker_id]

    def _all_hosts(self) -> list[HostProcess]:
        return list(dict.fromkeys(self._hosts.values()))

    def _spawn_host(self, nodes: Sequence[Node]) -> HostProcess:
        """Start a process for some nodes. Its log goes on where a former one ended."""
        name = self._name(nodes[0]) if self._request.isolate else "brokers"
        return HostProcess(name, self._launch.as_command(), self.directory / f"{name}.log")

    def _order(self, host: HostProcess, what: str, nodes: Sequence[Node]) -> None:
        """Ask a host to do something with nodes of its own; it may take long to answer."""
        host.send(
            {
                "do": what,
                "nodes": [str(self._properties_file(node)) for node in nodes],
                "cluster_id": self.cluster_id,
                "users": list(self._request.scram_users),
            }
        )

    def _name(self, node: Node) -> str:
        return "controller" if node.is_controller else f"broker-{node.id}"

    def _properties_file(self, node: Node) -> Path:
        return self.directory / f"{self._name(node)}.properties"

    def _write_properties(self, node: Node) -> None:
        base = self.directory / DATA / self._name(node)
        directories = tuple(base / f"log-{n}" for n in range(self._request.log_directories))
        properties = {
            **node_properties(node, self._settings, directories),
            **self._request.broker_properties.get(node.id, {}),
        }
        self._properties_file(node).write_text(render_properties(properties))

    def _await_metadata(self) -> None:
        running = {
            status.id: status.address
            for status in self.statuses()
            if status.state is BrokerState.RUNNING
        }
        await_metadata(running, self._request.timeout_s)


def make_cluster_id() -> str:
    """Return a random id as Kafka writes them: 22 characters, the first never a dash."""
    while (cluster_id := base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22]).startswith(b"-"):
        pass
    return cluster_id.decode()
