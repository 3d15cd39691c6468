"""The embedded engine: real brokers in a JVM, in a child process.

All nodes share one process, which starts fast and needs little memory. With `isolate` each node has
its own, so a single one can be killed or frozen. Controllers are separate nodes, so any broker can
be stopped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from reconciler.errors import SandboxError
from reconciler.sandbox.engine import PortReservation, StartedCluster, name_node, reserve_listeners
from reconciler.sandbox.launch import Launch
from reconciler.sandbox.paths import DATA
from reconciler.sandbox.process import HostProcess, wait_for_answers
from reconciler.sandbox.request import BrokerState, ClusterRequest
from reconciler.sandbox.settings import (
    CONTROLLER,
    HOST,
    MOST_COPIES,
    PLAINTEXT,
    ClusterSettings,
    ListenerSettings,
    Node,
    node_properties,
    render_properties,
)


class EmbeddedCluster(StartedCluster):
    """A cluster of this engine: one host for all nodes, or one for each."""

    def __init__(self, request: ClusterRequest, launch: Launch, directory: Path) -> None:
        super().__init__(request, directory)
        self._launch = launch
        self._ports = PortReservation()
        self._settings = ClusterSettings(
            controllers={
                node: ListenerSettings(CONTROLLER, PLAINTEXT, self._ports.take())
                for node in self._controllers
            },
            copies=min(MOST_COPIES, len(request.brokers)),
            properties=request.properties,
        )
        for broker in request.brokers:
            listeners = reserve_listeners(request.listeners, self._ports, bind_host=HOST)
            self._brokers[broker.id] = Node(broker.id, tuple(listeners), broker.rack)
        self._hosts: dict[int, HostProcess] = {}

    def start(self) -> None:
        """Start every node and wait until all brokers know each other."""
        nodes = [*self._controllers.values(), *self._brokers.values()]
        for node in nodes:
            properties = {
                **node_properties(node, self._settings, self._log_directories(node)),
                **self._request.broker_properties.get(node.id, {}),
            }
            self._properties_file(node).write_text(render_properties(properties))
        # All are asked before any is waited for: a broker has started when a controller has
        # unfenced it, and a controller when it knows the leader of the quorum.
        for group in [[node] for node in nodes] if self._request.isolate else [nodes]:
            host = self._spawn_host(group)
            self._hosts.update((node.id, host) for node in group)
            self._order(host, "format-and-start", group)
        wait_for_answers(self._all_hosts(), self._request.timeout_s)
        self._await_agreement()

    @property
    def process_ids(self) -> Mapping[int, int]:
        """The process of each node that runs, by the node's id."""
        return {node_id: host.pid for node_id, host in self._hosts.items() if host.alive}

    def _look_at(self, node: Node) -> tuple[BrokerState, str]:
        host = self._hosts[node.id]
        if not host.alive:
            return BrokerState.DEAD, host.describe_death()
        return BrokerState.FROZEN if host.frozen else BrokerState.RUNNING, ""

    def _stop(self, node: Node) -> None:
        host = self._hosts[node.id]
        self._order(host, "stop", [node])
        wait_for_answers([host], self._request.timeout_s)
        if self._request.isolate:
            host.kill()

    def _start(self, node: Node) -> None:
        host = self._hosts[node.id]
        if not host.alive:
            if not self._request.isolate:
                raise SandboxError(f"{host.describe_death()}; start the whole cluster again")
            host.kill()  # to close what is left of it
            host = self._hosts[node.id] = self._spawn_host([node])
        self._order(host, "start", [node])
        wait_for_answers([host], self._request.timeout_s)

    def finish(self) -> None:
        """Shut all down in good order, controllers last, and let the JVM end by itself.

        A broker that shuts down asks the controller to move its leaders.
        """
        for nodes in (list(self._brokers.values()), list(self._controllers.values())):
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

    def _find_active_controller(self) -> int | None:
        """Ask no broker, since none may answer: each voter stores whom it follows (KIP-595)."""
        # The highest epoch counts: a controller that was stopped still stores an earlier leader.
        known = [(0, -1)]
        for node in self._controllers.values():
            log = self._log_directories(node)[0]
            with suppress(OSError, ValueError):  # a new one, or one that is just written
                state = json.loads((log / "__cluster_metadata-0" / "quorum-state").read_bytes())
                known.append((state["leaderEpoch"], state["leaderId"]))
        leader = self._controllers.get(max(known)[1])
        if leader is None or self._state(leader)[0] is not BrokerState.RUNNING:
            return None
        return leader.id

    def _all_hosts(self) -> list[HostProcess]:
        return list(dict.fromkeys(self._hosts.values()))

    def _spawn_host(self, nodes: Sequence[Node]) -> HostProcess:
        """Start a process for some nodes. Its log goes on if a former one ended."""
        name = name_node(nodes[0]) if self._request.isolate else "brokers"
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

    def _properties_file(self, node: Node) -> Path:
        return self.directory / f"{name_node(node)}.properties"

    def _log_directories(self, node: Node) -> tuple[Path, ...]:
        base = self.directory / DATA / name_node(node)
        return tuple(base / f"log-{n}" for n in range(self._request.log_directories))
