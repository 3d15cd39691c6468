"""A real git repository with an estate, and what people do in it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

AUTHOR = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at `root`, whose branch is `main`."""

    root: Path

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), *AUTHOR, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def write(self, **files: str) -> None:
        """Write files of the estate; `a__b` is a file `b` in a directory `a`."""
        for name, text in files.items():
            path = self.root / "topics" / f"{name.replace('__', '/')}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, **files: str) -> str:
        """Write files of the estate, and commit whatever there is. Returns the commit."""
        self.write(**files)
        self.git("add", "-A")
        self.git("commit", "-qm", "A change", "--allow-empty")
        return self.git("rev-parse", "HEAD")


def start_repository(root: Path) -> Repository:
    """Start a repository, at first without a commit."""
    root.mkdir(parents=True, exist_ok=True)
    repository = Repository(root)
    repository.git("init", "-q", "-b", "main")
    return repository
