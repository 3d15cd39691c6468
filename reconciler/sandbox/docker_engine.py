"""The Docker engine: found or reported as missing, its errors, and containers that are left over.

Containers do not die with the process that started them. A watcher removes them: a small process
that waits for end-of-file on a pipe. Containers that are still left are found by their label, and
removed at the next start.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reconciler.errors import SandboxError, say_install
from reconciler.sandbox.paths import has_ended, isolated_python


def find_docker() -> Any:
    """Return a client of the Docker engine that the environment names.

    Errors: SandboxError when none answers, or testcontainers is not installed.
    """
    try:
        from testcontainers.core.config import testcontainers_config
        from testcontainers.core.docker_client import DockerClient
    except ImportError as error:
        raise SandboxError(
            "the container engine needs testcontainers, which is not installed; "
            + say_install("sandbox")
        ) from error
    # Its reaper is a second, privileged image; what is left behind is our own business.
    testcontainers_config.ryuk_disabled = True
    if (reason := _reason_for_silence()) is not None:
        raise SandboxError(
            f"no Docker engine answers ({reason}); start one, or leave --engine container out"
        )
    return DockerClient().client


def _reason_for_silence() -> str | None:
    """Return why no Docker engine answers, or None when one does."""
    from docker.errors import DockerException
    from testcontainers.core.docker_client import DockerClient

    with warnings.catch_warnings():
        # The client forgets to close a socket that could not connect.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            client = DockerClient().client
            client.ping()
            client.close()
        except (DockerException, OSError) as error:
            reason = str(error)
        else:
            return None
        gc.collect()  # here, where the warning about that socket is ignored
    return reason


@contextmanager
def speaking_docker(what: str) -> Iterator[None]:
    """Translate an error of Docker to a SandboxError with the attempted action."""
    from docker.errors import DockerException, ImageNotFound

    try:
        yield
    except ImageNotFound as error:
        raise SandboxError(
            f"cannot {what}: {error.explanation}; --image names another, such as one of a"
            " registry that this machine reaches"
        ) from error
    except (DockerException, OSError) as error:
        raise SandboxError(f"cannot {what}: {error}") from error


RUN_LABEL = "reconciler.sandbox.run"


def label_run(directory: Path) -> dict[str, str]:
    """Return the labels by which a run's containers and network are found again."""
    return {RUN_LABEL: str(directory)}


def sweep_containers(client: Any) -> None:
    """Remove the leftovers of ended runs."""
    for thing in _labelled(client, RUN_LABEL):
        # A network has its labels at the top of its attributes, a container in its configuration.
        labels = thing.attrs.get("Labels") or thing.attrs["Config"]["Labels"]
        if has_ended(Path(labels[RUN_LABEL])):
            _remove(thing)


def remove_run(client: Any, directory: str) -> None:
    """Remove a run's containers and network."""
    for thing in _labelled(client, f"{RUN_LABEL}={directory}"):
        _remove(thing)


@contextmanager
def watch_over(directory: Path) -> Iterator[None]:
    """Remove a run's containers if this process dies within the block."""
    watcher = subprocess.Popen(  # noqa: S603 - this very Python, our own program
        [*isolated_python(), "-m", "reconciler.sandbox.docker_engine", str(directory)],
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
        if error.status_code not in {404, 409}:  # gone, or already being removed
            raise


def main(directory: str) -> None:
    """Wait until the process that started this has ended, then remove its containers."""
    sys.stdin.buffer.read()
    remove_run(find_docker(), directory)


if __name__ == "__main__":
    main(sys.argv[1])
