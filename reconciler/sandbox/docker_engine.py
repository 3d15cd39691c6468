"""The Docker engine: found, or missed with a way out; and its errors in our words."""

from __future__ import annotations

import gc
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from reconciler.errors import SandboxError, say_install

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
        gc.collect()
    return reason


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
