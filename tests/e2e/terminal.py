"""A program on a terminal of its own, as a person has it: what is shown, Ctrl-C, and a hangup."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

PATIENCE_S = 180
"""How long a test waits before it gives up; nothing depends on how long it took."""

PLAIN = {"TERM": "xterm-256color", "FORCE_HYPERLINK": "0"}
"""Whatever terminal the tests run in, what they look for is not cut by links."""

HIDDEN, SHOWN = b"\x1b[?25l", b"\x1b[?25h"


class Terminal:
    """A shell that runs one command and then waits for the next, on a terminal of this size.

    Everything that it starts inherits a mark in its environment, and is found by it.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        columns: int = 80,
        directory: Path | None = None,
    ) -> None:
        self.output = b""
        self._mark = f"TERMINAL_OF_A_TEST={uuid.uuid4()}".encode()
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        name, _, value = self._mark.decode().partition("=")
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", 'trap : INT; "$@"; exec cat', "sh", *command],
            env={**os.environ, **PLAIN, **environment, name: value},
            cwd=directory,
            pass_fds=[slave],
            preexec_fn=lambda: os.login_tty(slave),  # noqa: PLW1509 - nothing runs in between
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, 9)
        self._shell.kill()
        self._shell.wait()
        self.close()

    def press(self, key: bytes) -> None:
        """Press a key."""
        os.write(self._master, key)

    def close(self) -> None:
        """Close the terminal, as its window is closed: what runs on it is hung up."""
        if self._master >= 0:
            os.close(self._master)
        self._master = -1

    def wait_for(self, *texts: bytes) -> None:
        """Wait until the texts have been shown, one after the other."""
        start, deadline = 0, time.monotonic() + PATIENCE_S
        for text in texts:
            while (found := self.output.find(text, start)) < 0:
                read = self._read() and time.monotonic() < deadline  # bars are drawn for ever
                assert read, f"ended without {text!r}; {self._tail}"
            start = found + len(text)

    def wait_for_end(self) -> None:
        """Wait until nothing that the shell has started is left."""
        deadline = time.monotonic() + PATIENCE_S
        while self.processes():
            left = [_command_of(pid) for pid in self.processes()]
            assert time.monotonic() < deadline, f"still there: {left}; {self._tail}"
            if not self._read(0.1):
                time.sleep(0.1)
        while self._read(0.1):  # what was shown last
            pass

    def processes(self, *words: str) -> list[int]:
        """Return what the shell has started, or those with these words in their command."""
        found = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
        return [
            pid
            for pid in found
            if pid != self._shell.pid
            and self._mark in _read_file(pid, "environ").split(b"\0")
            and all(word in _command_of(pid) for word in words)
        ]

    @property
    def shows_cursor(self) -> bool:
        """Whether the last word about the cursor is that it is shown."""
        return self.output.rfind(HIDDEN) <= self.output.rfind(SHOWN)

    @property
    def _tail(self) -> str:
        return f"shown last: {self.output[-2000:].decode(errors='replace')}"

    def _read(self, patience_s: float = PATIENCE_S) -> bool:
        """Read what is shown next; tell whether there was anything."""
        if self._master < 0 or not select.select([self._master], [], [], patience_s)[0]:
            return False
        try:
            shown = os.read(self._master, 1 << 16)
        except OSError:  # nobody holds the other side any more
            return False
        self.output += shown
        return bool(shown)


def _read_file(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _command_of(pid: int) -> str:
    return _read_file(pid, "cmdline").replace(b"\0", b" ").decode()
