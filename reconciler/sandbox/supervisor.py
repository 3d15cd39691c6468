"""The process behind `reconciler sandbox up`: it holds a cluster until it is told to stop.

Run as `python -m reconciler.sandbox.supervisor`. It reads the request from standard input and
reports progress on standard output. When the client confirms that it has read the result, it
detaches and serves a socket. If the client exits before that, everything ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socketserver
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

from reconciler.errors import ReconcilerError
from reconciler.model.cluster import Broker
from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.sandbox.record import SandboxRecord, own_sandbox, write_record


class Reporter:
    """Reports progress to the client, as JSON lines."""

    def enter(self, stage: str) -> None:
        """Report the stage that begins."""
        self.send({"stage": stage})

    def count(self, done: int, total: int) -> None:
        """Report the progress of the stage."""
        self.send({"done": done, "total": total})

    def send(self, report: Mapping[str, Any]) -> None:
        """Write one line. The exit of the client is detected elsewhere."""
        with contextlib.suppress(BrokenPipeError):
            os.write(1, json.dumps(report).encode() + b"\n")


def main() -> None:
    """Start, report, detach, serve; end in good order at SIGTERM."""
    signal.signal(signal.SIGTERM, end_in_order)
    reporter = Reporter()
    asker = sys.stdin.buffer
    request = json.loads(asker.readline())
    agreed = threading.Event()
    threading.Thread(target=await_agreement, args=(asker, agreed), daemon=True).start()
    try:
        with own_sandbox(), start_requested(request, reporter) as cluster, serve(cluster) as server:
            write_record(describe_sandbox(cluster, request["engine"], server.path))
            reporter.send({"ready": True})
            agreed.wait()
            detach()
            server.serve_forever()
    except ReconcilerError as error:
        reporter.send({"error": str(error)})
        sys.exit(error.exit_code)


def end_in_order(_signal: int, _frame: FrameType | None) -> None:
    """Exit through every open block, so that brokers, data and record are removed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


def await_agreement(asker: Any, agreed: threading.Event) -> None:
    """Wait until the client has read the result, or has exited: then end."""
    if asker.readline():
        agreed.set()
    else:
        os.kill(os.getpid(), signal.SIGTERM)


def start_requested(
    request: Mapping[str, Any], reporter: Reporter
) -> contextlib.AbstractContextManager[Cluster]:
    """Start the requested cluster."""
    return start_cluster(
        shape=[Broker(broker["id"], broker["rack"]) for broker in request["brokers"]],
        engine=request["engine"],
        isolate=request["isolate"],
        controllers=request["controllers"],
        kafka_version=request["kafka_version"],
        image=request["image"],
        log_directories=request["log_directories"],
        progress=reporter,
    )


def describe_sandbox(cluster: Cluster, engine: str, control: str) -> SandboxRecord:
    """Return the record of the cluster of this process."""
    return SandboxRecord(
        bootstrap_servers=cluster.bootstrap_servers,
        cluster_id=cluster.cluster_id,
        kafka_version=cluster.kafka_version,
        engine=engine,
        pid=os.getpid(),
        brokers=tuple(Broker(status.id, status.rack) for status in cluster.statuses()),
        directory=str(cluster.directory),
        control=control,
        controllers=len(cluster.controller_statuses()),
    )


def detach() -> None:
    """Close the pipes to the client."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)


class ControlServer(socketserver.UnixStreamServer):
    """Executes one command at a time on its cluster."""

    def __init__(self, path: str, cluster: Cluster) -> None:
        self.path = path
        self.cluster = cluster
        super().__init__(path, ControlHandler)


class ControlHandler(socketserver.StreamRequestHandler):
    """One command: a JSON line in, a JSON line out."""

    server: ControlServer
    timeout = 10  # for one who connects and then says nothing

    def handle(self) -> None:
        """Execute the command, and send the result."""
        command = json.loads(self.rfile.readline())
        try:
            answer = run_on_cluster(self.server.cluster, command)
        except ReconcilerError as error:
            answer = {"error": str(error)}
        # The client may have timed out.
        with contextlib.suppress(BrokenPipeError):
            self.wfile.write(json.dumps(answer).encode() + b"\n")


def run_on_cluster(cluster: Cluster, command: Mapping[str, Any]) -> dict[str, Any]:
    """Execute a command and return the state of every node."""
    match command["do"]:
        case "stop-broker":
            cluster.stop_broker(command["broker"])
        case "start-broker":
            cluster.start_broker(command["broker"])
    return {
        "brokers": [asdict(status) for status in cluster.statuses()],
        "controllers": [asdict(status) for status in cluster.controller_statuses()],
    }


@contextlib.contextmanager
def serve(cluster: Cluster) -> Iterator[ControlServer]:
    """Open the socket, in a directory of this user's own: socket paths must be short."""
    directory = tempfile.mkdtemp(prefix="reconciler-")
    try:
        with ControlServer(str(Path(directory) / "control"), cluster) as server:
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
