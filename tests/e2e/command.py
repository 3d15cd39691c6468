"""The command line as a job runs it: a process of its own, nobody at the terminal."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

RECONCILER = (sys.executable, "-m", "reconciler")
TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


def run_reconciler(directory: Path, servers: str, *arguments: str) -> Ran:
    """Run the command line in a directory, before these brokers."""
    done = subprocess.run(
        [*RECONCILER, *arguments, "--bootstrap-servers", servers],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
