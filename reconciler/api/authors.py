"""The author of a run: a person at a machine, or a job and the person who started it."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

ACTORS = ("GITHUB_ACTOR", "GITLAB_USER_LOGIN", "BUILD_REQUESTEDFOR", "BUILDKITE_BUILD_CREATOR")
RUNS = ("CI_JOB_URL", "BUILDKITE_BUILD_URL", "BUILD_URL")


@dataclass(frozen=True, slots=True)
class Author:
    """The user and the host of a run. `run_url` is the address of the job, if there is one."""

    user: str
    host: str
    pid: int
    run_url: str | None = None


def find_author(environment: Mapping[str, str] = os.environ) -> Author:
    """Find out who started this run: the variables of a CI override the name of the account."""
    # In CI the account is the same for everyone, such as `runner`.
    actor = next((environment[name] for name in ACTORS if environment.get(name)), "")
    try:
        user = actor or getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in many containers
        user = str(os.getuid())
    return Author(user, socket.gethostname(), os.getpid(), _find_run(environment))


def _find_run(environment: Mapping[str, str]) -> str | None:
    parts = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    if all(environment.get(name) for name in parts):
        server, repository, run = (environment[name] for name in parts)
        return f"{server}/{repository}/actions/runs/{run}"
    return next((environment[name] for name in RUNS if environment.get(name)), None)
