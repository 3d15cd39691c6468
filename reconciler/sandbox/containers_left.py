"""Containers that nobody holds any more: found by their label, and removed.

Containers do not die with the process that started them. A watcher does it for them: a small
process that waits for end-of-file on a pipe. What escapes even that is swept at the next start.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.sandbox.docker_engine import find_docker
from reconciler.sandbox.runs import has_ended

if TYPE_CHECKING:
    from collections.abc import Iterator

RUN_LABEL = "reconciler.sandbox.run"


def label_run(directory: Path) -> dict[str, str]:
    """Return the labels by which a run's containers and network are found again."""
    return {RUN_LABEL: str(directory)}


def sweep_containers(client: Any) -> None:
    """Remove what runs have left behind that are no more."""
    for thing in _labelled(client, RUN_LABEL):
        if has_ended(Path(_labels(thing)[RUN_LABEL])):
            _remove(thing)


def remove_run(client: Any, directory: str) -> None:
    """Remove a run's containers and network."""
    for thing in _labelled(client, f"{RUN_LABEL}={directory}"):
        _remove(thing)


@contextmanager
def watch_over(directory: Path) -> Iterator[None]:
    """Have a run's containers removed should this process die within the block."""
    watcher = subprocess.Popen(  # noqa: S603 - this very Python, our own program
        [sys.executable, "-P", "-m", "reconciler.sandbox.containers_left", str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        watcher.kill()
        watcher.communicate()


def _labelled(client: Any, label: str) -> list[Any]:
    """Return containers first, for a network in use cannot be removed."""
    wanted = {"label": label}
    return [
        *client.containers.list(all=True, filters=wanted),
        *client.networks.list(filters=wanted),
    ]


def _labels(thing: Any) -> dict[str, str]:
    attributes = thing.attrs
    labels: dict[str, str] = attributes.get("Labels") or attributes["Config"]["Labels"]
    return labels


def _remove(thing: Any) -> None:
    """Remove a container or a network, unless somebody else is just doing it."""
    from docker.errors import APIError
    from docker.models.containers import Container

    try:
        if isinstance(thing, Container):
            thing.remove(force=True, v=True)
        else:
            thing.remove()
    except APIError as error:
        if error.status_code not in {404, 409}:
            raise


def main(directory: str) -> None:
    """Wait until whoever started this is gone, then remove what it leaves behind."""
    sys.stdin.buffer.read()
    remove_run(find_docker(), directory)


if __name__ == "__main__":
    main(sys.argv[1])
