"""A host process from the view of its parent: requests, answers, state, end."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reconciler.errors import SandboxError
from reconciler.sandbox.paths import isolated_python
from reconciler.units import count

PROGRAM = Path(__file__).with_name("host.py")
TAIL_BYTES = 1 << 16


class HostProcess:
    """A running host.py. `name` is for messages; `log` gets its output and that of its brokers.

    `steps` counts the finished steps of its nodes.
    """

    def __init__(self, name: str, launch: Mapping[str, Any], log: Path) -> None:
        self.name = name
        self.log = log
        self._control, other_end = socket.socketpair()
        self._received = b""
        self._asked = 0
        self.steps = 0
        with other_end, log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - this very Python, our own program
                [*isolated_python(), str(PROGRAM), str(other_end.fileno())],
                pass_fds=[other_end.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,  # Ctrl-C is for the parent, which then ends its hosts
            )
        # The kernel speaks of the parent's thread: one that ends early must not end the host.
        lasting = threading.current_thread() is threading.main_thread()
        self.send({**launch, "die_with_parent": lasting})

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still exists."""
        return self._process.poll() is None

    @property
    def frozen(self) -> bool:
        """Whether somebody stopped it with SIGSTOP, and nobody resumed it."""
        stopped = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.pid, stopped) is not None

    def send(self, command: Mapping[str, Any]) -> None:
        """Ask for something; its answer comes through `wait_for_answers`."""
        self._asked += 1
        try:
            self._control.sendall(json.dumps({**command, "number": self._asked}).encode() + b"\n")
        except OSError as error:
            raise SandboxError(self.describe_death()) from error

    def fileno(self) -> int:
        """Let selectors watch the control socket."""
        return self._control.fileno()

    def receive(self) -> Mapping[str, Any] | None:
        """Read once; return the answer to the last question, or None while there is none.

        Errors: SandboxError when the process has died.
        """
        try:
            chunk = self._control.recv(TAIL_BYTES)
        except ConnectionError:
            chunk = b""
        if not chunk:
            raise SandboxError(self.describe_death())
        *lines, self._received = (self._received + chunk).split(b"\n")
        for answer in map(json.loads, lines):
            if "step" in answer:
                self.steps += 1
                continue
            # An answer to a question that was given up is of no interest any more.
            if answer["number"] == self._asked:
                return dict(answer)
        return None

    def finish(self, timeout_s: float) -> None:
        """Let the process end by itself, its brokers being shut down. Errors: SandboxError."""
        self.send({"do": "finish"})
        wait_for_answers([self], timeout_s)

    def kill(self) -> None:
        """End the process at once (SIGKILL) and wait until it is gone."""
        if self.alive:
            self._process.kill()
        self._process.wait()
        self._control.close()

    def describe_death(self) -> str:
        """Return how the process ended and what its log says of the reason."""
        try:
            # Its end of the socket closes a moment before the system has its exit code.
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return f"{self.name} stopped answering; its log: {self.log}"
        return describe_exit(self.name, code, self.log)


def describe_exit(name: str, code: int, log: Path) -> str:
    """Return how a process ended: by a signal (its number, negated), or by itself with a code."""
    if code in {-signal.SIGKILL, -signal.SIGTERM}:  # from outside: its log knows nothing
        return f"{name} was ended by {signal.Signals(-code).name}; its log: {log}"
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    reason = last_trouble(log)
    return f"{name} {how}{f': {reason}' if reason else ''}; its log: {log}"


def last_trouble(log: Path) -> str:
    """Return the last error of a log with its innermost cause, or just the last line.

    An error that follows from another one has no cause of its own: then that of the other counts.
    """
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    trouble, cause, is_error = "", "", True
    for line in lines:
        if line.startswith("["):  # an entry; what follows it up to the next is its exception
            is_error = any(level in line for level in (" ERROR ", " FATAL "))
            trouble = line if is_error else trouble
        elif _is_cause(line, is_error=is_error):
            cause = line.removeprefix("Caused by: ").strip()
    spoken = [line.strip() for line in lines if line.strip()]
    return ": ".join(filter(None, (trouble.strip(), cause))) or (spoken or [""])[-1]


def _is_cause(line: str, *, is_error: bool) -> bool:
    """Return whether a line names an exception that ends something; no warning does."""
    fatal = line.startswith("Exception in thread") or "OutOfMemory" in line
    told = "Exception" in line or "Error:" in line
    return not line.startswith(("\t", " ")) and (fatal or (is_error and told))


def wait_for_answers(hosts: Sequence[HostProcess], timeout_s: float) -> None:
    """Wait until every host has answered; the first bad answer, or death, ends the wait.

    In: `timeout_s`, the longest time without progress on any host.
    Errors: SandboxError with the reason, in the broker's own words if it gave one.
    """
    deadline = time.monotonic() + timeout_s
    with selectors.DefaultSelector() as selector:
        for host in hosts:
            selector.register(host, selectors.EVENT_READ, host)
        while waiting := selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                names = ", ".join(key.data.name for key in waiting.values())
                done = count(sum(host.steps for host in hosts), "step")
                raise SandboxError(
                    f"{names} made no progress for {timeout_s:g} s ({done} done);"
                    f" the log: {hosts[0].log}"
                )
            deadline = time.monotonic() + timeout_s
            for key, _ in ready:
                if _take_answer(key.data):
                    selector.unregister(key.fileobj)


def _take_answer(host: HostProcess) -> bool:
    """Return whether a host's answer is complete. Errors: SandboxError when it is a refusal."""
    answer = host.receive()
    if answer is not None and answer["error"] is not None:
        raise SandboxError(f"{host.name}: {answer['error']}; its log: {host.log}")
    return answer is not None
