"""The Docker engine: found, or missed with a way out; and its errors in our words."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from reconciler.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator


def find_docker() -> Any:
    """Return a client of the Docker engine that the environment names.

    Errors: SandboxError when none answers, or testcontainers is not installed.
    """
    try:
        from testcontainers.core.config import testcontainers_config
        from testcontainers.core.docker_client import DockerClient
    except ImportError as error:
        raise SandboxError(
            "the container engine needs testcontainers, which is not installed;"
            " pip install 'reconciler[sandbox]'"
        ) from error
    from docker.errors import DockerException

    # Its reaper is a second, privileged image; what is left behind is our own business.
    testcontainers_config.ryuk_disabled = True
    try:
        client = DockerClient().client
        client.ping()
    except (DockerException, OSError) as error:
        raise SandboxError(
            f"no Docker engine answers ({error}); start one, or leave --engine container out"
        ) from error
    return client


@contextmanager
def speaking_docker(what: str) -> Iterator[None]:
    """Turn what Docker complains of into a SandboxError that says what was tried."""
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
