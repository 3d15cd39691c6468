"""Ctrl-C while Python shuts down: the run is over, and so is its exit code decided."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import atexit, os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
from reconciler.cli import main
main(["schema", "plan"])
"""


def test_an_interrupt_after_the_end_changes_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
