"""A team's repository: an estate under git, and the command line run in it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

RECONCILER = (sys.executable, "-c", "from reconciler.cli import main; main()")
GIT = ("git", "-c", "user.name=team", "-c", "user.email=team@example.invalid")
TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


class Repository:
    """A directory with git in it, and `topics/` as its estate."""

    def __init__(self, directory: Path, servers: str) -> None:
        self.directory = directory
        self.servers = servers
        (directory / "topics").mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def write(self, name: str, text: str) -> None:
        (self.directory / "topics" / name).write_text(text, encoding="utf-8")

    def commit(self, subject: str) -> None:
        self.git("add", "topics")
        self.git("commit", "--quiet", "--message", subject)

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            [*GIT, *arguments], cwd=self.directory, capture_output=True, text=True, check=True
        )
        return done.stdout

    def reconciler(self, *arguments: str) -> Ran:
        """Run the command line as a job would: nobody at the terminal."""
        done = subprocess.run(
            [*RECONCILER, *arguments, "--bootstrap-servers", self.servers],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        return Ran(done.returncode, done.stdout, done.stderr)
