"""The sandbox operations of the command line: start, status, stop."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reconciler.errors import SandboxError
from reconciler.model.cluster import Broker
from reconciler.sandbox.paths import isolated_python, state_directory
from reconciler.sandbox.process import last_trouble
from reconciler.sandbox.record import (
    SandboxRecord,
    find_lost_sandbox,
    forget_lost_sandbox,
    is_sandbox_starting,
    remove_socket,
    running_sandbox,
)
from reconciler.sandbox.request import (
    BrokerState,
    BrokerStatus,
    ControllerStatus,
    SandboxHealth,
    StartObserver,
    describe_shape,
)

ANSWER_TIMEOUT_S = 180
END_TIMEOUT_S = 20


def bring_up_sandbox(
    brokers: Sequence[Broker],
    *,
    engine: str,
    isolate: bool,
    controllers: int,
    kafka_version: str,
    image: str | None,
    log_directories: int,
    progress: StartObserver,
) -> SandboxRecord:
    """Start the sandbox and leave it running. An interrupted start leaves nothing behind.

    Errors: SandboxError, also if a sandbox runs already.
    """
    refuse_second_sandbox()
    request = {
        "brokers": [{"id": broker.id, "rack": broker.rack} for broker in brokers],
        "engine": engine,
        "isolate": isolate,
        "controllers": controllers,
        "kafka_version": kafka_version,
        "image": image,
        "log_directories": log_directories,
    }
    supervisor = _Supervisor(state_directory("sandbox") / "supervisor.log")
    try:
        supervisor.say(request)
        supervisor.await_ready(progress)
        record = require_sandbox()
        supervisor.say({"agreed": True})
    except BaseException:
        supervisor.end()
        raise
    supervisor.let_go()
    return record


def refuse_second_sandbox() -> None:
    """Errors: SandboxError when a sandbox runs or is starting."""
    if (record := running_sandbox()) is not None:
        raise SandboxError(
            f"a sandbox of {describe_shape(record.brokers, record.controllers)} runs already;"
            " `reconciler sandbox status` shows it, `reconciler sandbox down` ends it"
        )
    if is_sandbox_starting():
        raise SandboxError("a sandbox is starting; `reconciler sandbox status` shows it soon")


def require_sandbox() -> SandboxRecord:
    """Return the sandbox that runs. Errors: SandboxError when there is none."""
    record = running_sandbox()
    if record is not None:
        return record
    if (lost := find_lost_sandbox()) is not None:
        raise SandboxError(
            f"the sandbox of {describe_shape(lost.brokers)} was lost: its supervisor, process"
            f" {lost.pid}, was killed or the machine restarted, and its brokers ended with it;"
            f" its logs: {lost.directory}; `reconciler sandbox up` starts another"
        )
    raise SandboxError("no sandbox runs; `reconciler sandbox up` starts one")


def look_after(record: SandboxRecord) -> SandboxHealth:
    """Return the status of a sandbox."""
    return _ask(record, {"do": "status"})


def stop_broker(record: SandboxRecord, broker_id: int) -> SandboxHealth:
    """Shut one broker down and return the status. Errors: SandboxError."""
    return _ask(record, {"do": "stop-broker", "broker": broker_id})


def start_broker(record: SandboxRecord, broker_id: int) -> SandboxHealth:
    """Start one broker again and return the status. Errors: SandboxError."""
    return _ask(record, {"do": "start-broker", "broker": broker_id})


def take_down_sandbox() -> bool:
    """End the sandbox completely; return whether there was one."""
    record = running_sandbox()
    if record is None:
        if is_sandbox_starting():
            raise SandboxError("a sandbox is starting; press Ctrl-C in its terminal")
        forget_lost_sandbox()
        return False
    for ending in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, ending)
        # Its lock shows its end, not its process id, which another process may have by now.
        deadline = time.monotonic() + END_TIMEOUT_S
        while running_sandbox() is not None:
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        else:
            remove_socket(Path(record.control))  # which a killed supervisor leaves
            return True
    raise SandboxError(f"the sandbox does not stop; check process {record.pid}")


def _ask(record: SandboxRecord, command: Mapping[str, Any]) -> SandboxHealth:
    """Send a command to the supervisor. Errors: SandboxError with its reason, or for silence."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_TIMEOUT_S)
            connection.connect(record.control)
            connection.sendall(json.dumps(command).encode() + b"\n")
            with connection.makefile("rb") as answers:
                answer = json.loads(answers.readline() or b"null")
    except OSError as error:
        raise SandboxError(
            f"the sandbox does not answer ({error}); `reconciler sandbox down` ends it"
        ) from error
    if answer is None:
        raise SandboxError("the sandbox ended before it answered")
    if "error" in answer:
        raise SandboxError(answer["error"])
    for status in (*answer["brokers"], *answer["controllers"]):
        status["state"] = BrokerState(status["state"])
    return SandboxHealth(
        tuple(BrokerStatus(**broker) for broker in answer["brokers"]),
        tuple(ControllerStatus(**controller) for controller in answer["controllers"]),
    )


class _Supervisor:
    """The supervisor while it is starting: its end of the pipes, and how to end it."""

    def __init__(self, log: Path) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - this very Python, our own program
                [*isolated_python(), "-m", "reconciler.sandbox.supervisor"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # it outlives this command and its terminal
            )

    def say(self, line: Mapping[str, Any]) -> None:
        """Send it a message. Reading the answer detects its death."""
        assert self._process.stdin is not None  # noqa: S101 - as asked for
        with contextlib.suppress(BrokenPipeError):
            os.write(self._process.stdin.fileno(), json.dumps(line).encode() + b"\n")

    def await_ready(self, progress: StartObserver) -> None:
        """Pass its progress on until the cluster is ready. Errors: SandboxError if it never is."""
        assert self._process.stdout is not None  # noqa: S101 - as asked for
        for line in self._process.stdout:
            match json.loads(line):
                case {"stage": stage}:
                    progress.enter(stage)
                case {"done": done, "total": total}:
                    progress.count(done, total)
                case {"error": error}:
                    raise SandboxError(error)
                case {"ready": True}:
                    return
        reason = last_trouble(self._log) or "without a reason in its log"
        raise SandboxError(f"the sandbox ended while starting: {reason}; its log: {self._log}")

    def end(self) -> None:
        """End it and its child processes: it exits when its pipes are closed."""
        self._close_pipes()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def let_go(self) -> None:
        """Leave it running without this process."""
        self._close_pipes()
        self._process.returncode = 0  # else Python warns of a process that it should not know

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
