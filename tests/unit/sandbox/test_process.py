"""Waiting for hosts: as long as one of them gets on, and no longer."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.errors import SandboxError
from reconciler.sandbox.process import HostProcess, wait_for_answers

PAUSE_S, PATIENCE_S = 0.3, 1.2


class Host(HostProcess):
    """A host without a process: the test speaks for it."""

    def __init__(self) -> None:
        self.name, self.log = "brokers", Path("brokers.log")
        self.steps, self._asked, self._received = 0, 1, b""
        self._control, self.other_end = socket.socketpair()

    def say(self, **line: object) -> None:
        self.other_end.sendall(json.dumps({"number": 1, **line}).encode() + b"\n")


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made._control.close()
    made.other_end.close()


def test_a_wait_goes_on_while_brokers_get_on(host: Host) -> None:
    def get_on() -> None:
        for _ in range(round(2 * PATIENCE_S / PAUSE_S)):
            time.sleep(PAUSE_S)
            host.say(step="a")
        host.say(error=None)

    speaker = threading.Thread(target=get_on)
    speaker.start()
    wait_for_answers([host], PATIENCE_S)
    speaker.join()
    assert host.steps == 8


def test_a_wait_ends_where_nobody_gets_on(host: Host) -> None:
    host.say(step="a")
    with pytest.raises(
        SandboxError, match=r"^brokers made no progress for 0\.1 s \(1 step done\);"
    ):
        wait_for_answers([host], 0.1)
