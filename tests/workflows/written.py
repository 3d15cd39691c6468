"""What our processes wrote in the jobs of a run: a host masks secrets in its log only."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

PROGRAM = '''\
#!{python} -I
"""This reconciler, which keeps its streams, and every file that it is given or asked for."""
import os, shutil, subprocess, sys, threading

environment = os.environ | {{"PYTHONPATH": {root!r}}}
command = [{python!r}, "-c", "from reconciler.cli import main; main()", *sys.argv[1:]]
pipes = {{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}}
process = subprocess.Popen(command, env=environment, **pipes)
kept = os.path.join({directory!r}, str(process.pid))


def copy(source, target, name):
    with open(kept + name, "wb") as file:
        while chunk := os.read(source.fileno(), 1 << 16):
            file.write(chunk)
            target.write(chunk)
            target.flush()


streams = ((process.stdout, sys.stdout, "-out"), (process.stderr, sys.stderr, "-err"))
threads = [threading.Thread(target=copy, args=(a, b.buffer, name)) for a, b, name in streams]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
code = process.wait()
asked = [*sys.argv[1:], *map(os.environ.get, ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"))]
for number, name in enumerate(asked):
    if name and os.path.isfile(name):
        shutil.copy(name, f"{{kept}}-{{number}}")
sys.exit(code if code >= 0 else 128 - code)
'''


class Written:
    """A directory with all that was written."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._directory = directory

    def make_program(self, path: Path, root: Path) -> None:
        """Make a `reconciler` of the source at `root` that keeps what it writes."""
        text = PROGRAM.format(python=sys.executable, root=str(root), directory=str(self._directory))
        path.write_text(text)
        path.chmod(0o755)

    def find(self, secrets: Iterable[str], *texts: str) -> list[tuple[str, str]]:
        """Return which secret is where: in a file, or in one of some other texts."""
        files = {path.name: path.read_bytes() for path in sorted(self._directory.iterdir())}
        assert any(name.endswith("-out") for name in files), "nothing of ours ran"
        shown = files | {text[:80]: text.encode() for text in texts}
        wanted = tuple(secrets)
        return [
            (name, one) for name, text in shown.items() for one in wanted if one.encode() in text
        ]
