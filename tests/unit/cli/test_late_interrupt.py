"""Signals while Python shuts down: the run is over, and so is its exit code decided."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import atexit, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(lambda: os.kill(os.getpid(), int(sys.argv[1])))
from reconciler.cli import main
main(["schema", "plan"])
"""


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_signal_after_the_end_changes_nothing(number: signal.Signals) -> None:
    program = [sys.executable, "-c", PROGRAM, str(int(number))]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
