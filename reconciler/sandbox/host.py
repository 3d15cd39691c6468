"""The program that hosts brokers: a JVM inside this process, controlled over a socket.

It is run by path as `python -P host.py FD` and imports nothing of the package, so that it starts at
once. One JSON object a line in both directions: first the launch, then commands, each with a line
for every step of a node and one answer. When the other end closes, for any reason, this process
ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

PR_SET_PDEATHSIG = 1


class HostedBrokers:
    """The nodes in this JVM, by the paths of their property files. Reflection on Kafka's classes.

    Works from 3.9 on: the classes used have kept their names, wherever their modules moved.
    """

    def __init__(self) -> None:
        from jpype import JClass, JString

        self._string = JString
        self._storage_tool = JClass("kafka.tools.StorageTool")
        self._server = JClass("kafka.server.KafkaRaftServer")
        self._config = JClass("kafka.server.KafkaConfig")
        self._utils = JClass("org.apache.kafka.common.utils.Utils")
        self._time = JClass("org.apache.kafka.common.utils.Time").SYSTEM
        self._out = JClass("java.lang.System").out
        self._running: dict[str, Any] = {}

    def format(self, node: str, *, cluster_id: str, users: list[str]) -> None:
        """Prepare a node's log directories for the cluster."""
        command = ["format", "--cluster-id", cluster_id, "--config", node]
        for user in users:
            command += ["--add-scram", user]
        if self._storage_tool.execute(self._string[:](command), self._out) != 0:
            raise RuntimeError(f"formatting the log directories of {node} failed")

    def start(self, node: str) -> None:
        """Start a node; returns once it is registered and unfenced."""
        config = self._config.fromProps(self._utils.loadProps(node))
        server = self._server(config, self._time)
        self._running[node] = server
        server.startup()

    def stop(self, node: str) -> None:
        """Shut a node down as an operator would."""
        server = self._running.pop(node)
        server.shutdown()
        server.awaitShutdown()


def start_jvm(launch: dict[str, Any]) -> None:
    """Start the JVM of a launch in this process."""
    import jpype

    jpype.startJVM(
        launch["jvm"], *launch["options"], classpath=launch["class_path"], convertStrings=False
    )


def run_on_nodes(brokers: HostedBrokers, command: dict[str, Any], tell: Callable[[], None]) -> None:
    """Execute one command for all of its nodes at the same time, and report each step."""

    def act(node: str) -> None:
        match command["do"]:
            case "format-and-start":
                brokers.format(node, cluster_id=command["cluster_id"], users=command["users"])
                tell()
                brokers.start(node)
            case "start":
                brokers.start(node)
            case "stop":
                brokers.stop(node)
        tell()

    # A thread for each: a broker's start ends only when a controller has unfenced it, and with one
    # thread it would wait for a controller that is next in line.
    with ThreadPoolExecutor(len(command["nodes"])) as pool:
        for task in [pool.submit(act, node) for node in command["nodes"]]:
            task.result()


def read_commands(control: socket.socket, commands: queue.SimpleQueue[dict[str, Any]]) -> None:
    """Queue commands. At end-of-file the parent process has died, and nothing has to be saved."""
    with control.makefile("r") as lines:
        for line in lines:
            commands.put(json.loads(line))
    os._exit(0)


def die_with_parent() -> None:
    """Let the kernel end this process with its parent, even while it is frozen (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def send(control: socket.socket, **line: Any) -> None:
    """Send a complete line: several threads write."""
    with _sending:
        control.sendall(json.dumps(line).encode() + b"\n")


_sending = threading.Lock()


def find_cause(error: BaseException) -> str:
    """Return the innermost cause of a Java exception, with what those around it add to its words.

    A broker that cannot bind says only 'received a fatal error'; the address, and that it is in
    use, are three causes further in.
    """
    told, cause = str(error), error
    while (inner := getattr(cause, "getCause", lambda: None)()) is not None:
        if str(inner.getMessage()).rstrip(".") not in told:
            told = str(inner.toString())
        cause = inner
    return told


def main(descriptor: int) -> None:
    """Launch, then execute commands until the command to finish."""
    control = socket.socket(fileno=descriptor)
    commands: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=read_commands, args=(control, commands), daemon=True).start()
    launch = commands.get()
    if launch["die_with_parent"]:
        die_with_parent()
    start_jvm(launch)
    brokers = HostedBrokers()
    while (command := commands.get())["do"] != "finish":
        number = command["number"]
        try:
            run_on_nodes(
                brokers, command, partial(send, control, number=number, step=command["do"])
            )
        except Exception as error:  # noqa: BLE001 - a Java exception of any kind is the answer
            send(control, number=number, error=find_cause(error))
        else:
            send(control, number=number, error=None)
    finish()
    send(control, number=command["number"], error=None)


def finish() -> None:
    """End the JVM in good order, so that it writes the class archive it was asked for."""
    import jpype

    jpype.shutdownJVM()


if __name__ == "__main__":
    main(int(sys.argv[1]))
