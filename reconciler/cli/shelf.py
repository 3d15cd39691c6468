"""Where plans are saved: a file for one cluster, a directory for several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler import api
from reconciler.cli.terminal import print_note
from reconciler.errors import UsageError
from reconciler.files import write_file

if TYPE_CHECKING:
    from pathlib import Path

    from reconciler.model import Plan


@dataclass(frozen=True, slots=True)
class Shelf:
    """The path to save to, and whether it is a directory, a plan file for each cluster in it."""

    out: Path
    is_many: bool

    def check(self) -> None:
        """Refuse a path of the other kind, before anything is read. Errors: UsageError."""
        if not self.out.exists() or self.out.is_dir() == self.is_many:
            return
        if self.is_many:
            raise UsageError(f"{self.out} is a file; for several clusters name a directory")
        raise UsageError(f"{self.out} is a directory; for one cluster name a file")

    def place(self, cluster: str) -> Path:
        """Return where the plan of a cluster is kept."""
        return self.out / f"{cluster}.json" if self.is_many else self.out

    def save(self, plan: Plan) -> None:
        """Write a plan file: whole, or not at all."""
        self.keep(plan.cluster, api.render_plan(plan, "json"))

    def keep(self, cluster: str, text: str) -> None:
        """Write a plan file of this text."""
        path = self.place(cluster)
        if self.is_many:
            _make_directory(self.out)
        write_whole(path, text)
        print_note(f"saved to {path}; apply it with: reconciler apply {path}")

    def clear(self, cluster: str) -> None:
        """Take away the plan of an earlier run, where this one has none to put in its place."""
        path = self.place(cluster)
        if path.exists():
            path.unlink()
            print_note(f"took {path} away: it was made by an earlier run")


def write_whole(path: Path, text: str) -> None:
    """Write a file: whole, or not at all. Errors: UsageError."""
    try:
        write_file(path, text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be made: {error.strerror}") from error
