"""The command line as a job runs it, nobody at the terminal: in a process of its own, or here."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from reconciler.cli.app import run

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


def run_here(directory: Path, servers: str, *arguments: str) -> Ran:
    """Run the command line in this process, which spares half a second of imports."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(directory), redirect_stdout(out), redirect_stderr(err):
        code = run([*arguments, "--bootstrap-servers", servers])
    return Ran(code, out.getvalue(), err.getvalue())
