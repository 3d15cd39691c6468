"""What a tool is to the comparison: found on this machine, then asked to plan and apply."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the files describe it, whatever the tool. `config` holds (key, value) pairs."""

    name: str
    partitions: int
    replication: int = 3
    config: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tool works: a directory of its own, and the cluster."""

    directory: Path
    servers: str
    cluster_id: str


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a tool. A `plan` looks, an `apply` acts and is not run after a failed plan.

    `pending` is the exit code by which a plan says, where asked, that there is something to do.
    """

    kind: str
    command: tuple[str, ...]
    pending: int = 0


class Tool(Protocol):
    """A tool under comparison."""

    name: str

    def version(self) -> str:
        """Return the tool's version. Errors: Missing where it is not installed."""
        ...

    def environment(self, place: Place) -> dict[str, str]:
        """Return what its processes need in the environment."""
        ...

    def steps(
        self, before: Sequence[Topic], wanted: Sequence[Topic], place: Place
    ) -> Sequence[Step]:
        """Write the files that describe `wanted`, and return what a careful user then runs."""
        ...


class Missing(Exception):  # noqa: N818 - it is an answer, not a failure
    """A tool that is not on this machine; the message says what was looked for."""


def find(name: str, variable: str) -> str:
    """Return a program's path: from an environment variable, or from PATH. Errors: Missing."""
    path = os.environ.get(variable) or shutil.which(name)
    if path is None or not Path(path).is_file():
        raise Missing(f"{name} is neither in PATH nor named by {variable}")
    return str(Path(path).resolve())
