"""The end of the process: it must not crash, whatever a thread of a client still waits for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.run.ending import end_run

PROGRAM = """
import _thread, ctypes, time
from confluent_kafka.admin import AdminClient
from reconciler.cli import app

libc = ctypes.CDLL(None)
libc.on_exit(libc.sleep, None)  # for as many seconds as the exit code, after Python's own end

def ask():
    client = AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    client.describe_cluster(request_timeout=1).result()

def run(arguments):
    _thread.start_new_thread(ask, ())
    time.sleep(0.3)
    print("work")
    return 2

app.run = run
app.main()
"""
REPORT = """
import sys
from reconciler.run.ending import end_run
from reconciler.cli.apply import print_ending

print_ending(end_run())
print("more")
sys.exit(2)
"""
INTERRUPTED_AT = """
import signal, sys
from importlib.abc import MetaPathFinder

class Interrupter(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupter())
from reconciler.cli import main
main(["validate", "topics"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs on_exit of the GNU C library")
def test_an_answer_that_comes_after_the_end_crashes_nothing() -> None:
    """The client's own thread reports it: here a timeout, a second after the question."""
    program = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "work\n", "")


@pytest.mark.parametrize("words", ["schema plan", "validate topics"])
def test_output_that_the_caller_closed_does_not_change_the_exit_code(words: str) -> None:
    command = ["sh", "-c", f'exec "$0" -m reconciler {words} >&-', sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_output_for_which_there_is_no_space_is_told_in_one_line() -> None:
    command = [sys.executable, "-m", "reconciler", "schema", "plan"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the output is incomplete: No space left on device; ")
    assert done.stderr.count("\n") == 1


def test_a_report_of_a_run_for_which_there_is_no_space_keeps_its_result() -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-c", REPORT]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    error, last = done.stderr.splitlines()
    assert error.startswith("error: the output is incomplete: No space left on device; ")
    assert last == end_run().last_line


@pytest.mark.parametrize("words", [">/dev/full 2>&1", "2>&1 | true"])
def test_a_report_whose_errors_go_the_same_way_keeps_its_exit_code(words: str) -> None:
    """The exit code of a pipe's first command is told on a descriptor of its own."""
    program = f"import time; time.sleep(0.5)\n{REPORT}"
    script = f'exec 3>&1; {{ "$0" -c "$1"; echo $? >&3; }} {words}'
    command = ["sh", "-c", script, sys.executable, program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2\n", "")


@pytest.mark.parametrize("module", ["click", "reconciler.errors", "reconciler.cli.validate"])
def test_an_interrupt_while_the_command_starts_is_told_in_one_line(module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED_AT, module]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.strip() == "error: interrupted"
