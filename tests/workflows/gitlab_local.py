"""The template of GitLab CI, run by gitlab-ci-local on this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from code_host import TOKEN
from runner_clone import SECRETS, TIMEOUT_S

if TYPE_CHECKING:
    from code_hosts import GitLabHost
    from runner_clone import Repository

NO_TAGS = "--ignore-schema-paths=#/definitions/tags/minItems"
"""GitLab takes an empty list of tags; its schema, which gitlab-ci-local has, does not."""

ROOT_FILE = """\
include:
  - local: .ci/gitlab-ci.yml
    inputs: {cluster: lab, moves: MOVES, apply_drift: APPLY_DRIFT}
  - local: .ci/gitlab-ci.yml
    inputs: {cluster: other}
"""


class Ran(NamedTuple):
    """A pipeline: its exit code, and everything that was printed."""

    code: int
    text: str


class GitLabLocal:
    """Runs pipelines of a repository as GitLab would, against a code host on loopback."""

    def __init__(
        self,
        program: str,
        repository: Repository,
        host: GitLabHost,
        environment: dict[str, str],
        *,
        moves: bool = False,
        apply_drift: bool = False,
    ) -> None:
        self._program = program
        self._repository = repository
        self._host = host
        self._environment = environment
        inputs = {"MOVES": moves, "APPLY_DRIFT": apply_drift}
        text = ROOT_FILE
        for name, value in inputs.items():
            text = text.replace(name, str(value).lower())
        (repository.directory / ".gitlab-ci.yml").write_text(text)
        (repository.directory / ".gitignore").write_text(".gitlab-ci-local/\n")
        repository.git("remote", "set-url", "origin", "git@gitlab.example:shop/topics.git")
        repository.commit()
        host_side = repository.directory.parent / "origin.git"
        repository.git("clone", "--quiet", "--bare", ".", str(host_side))
        self.before = repository.git("rev-parse", "HEAD")
        config = f'[url "{host_side.as_uri()}"]\n\tinsteadOf = git@gitlab.example:shop/topics.git\n'
        (Path(environment["HOME"]) / ".gitconfig").write_text(config)

    def list_merge_request(self, fork: bool = False) -> list[str]:
        return self._list(self._merge_request(12, fork=fork))

    def list_push(self) -> list[str]:
        self._forget()
        return self._list({})

    def list_night(self) -> list[str]:
        return self._list({"CI_PIPELINE_SOURCE": "schedule"})

    def plan(self, number: int) -> Ran:
        return self._run("plan lab", self._merge_request(number))

    def validate(self) -> Ran:
        return self._run("validate topics", self._merge_request(12))

    def apply(self, **more: str) -> Ran:
        return self._run("apply lab", self._push(**more))

    def move(self, **more: str) -> Ran:
        return self._run("moves lab", self._push(**more))

    def drift(self, **more: str) -> Ran:
        return self._run("drift lab", {"CI_PIPELINE_SOURCE": "schedule", **more})

    def apply_drift(self) -> Ran:
        return self._run("apply drift lab", {"CI_PIPELINE_SOURCE": "schedule"})

    def _push(self, **more: str) -> dict[str, str]:
        """Push what is committed, since `before`: by default everything since the clone."""
        self._forget()
        return {"CI_COMMIT_BEFORE_SHA": self.before, **more}

    def _forget(self) -> None:
        """Let the newest commit be what was just pushed, since rules look at what changed."""
        self._repository.git("update-ref", "refs/remotes/origin/main", "HEAD~1")

    def _merge_request(self, number: int, fork: bool = False) -> dict[str, str]:
        return {
            "CI_PIPELINE_SOURCE": "merge_request_event",
            "CI_MERGE_REQUEST_IID": str(number),
            "CI_MERGE_REQUEST_PROJECT_ID": "1217",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "99" if fork else "1217",
        }

    def _list(self, variables: dict[str, str]) -> list[str]:
        lines = self._call(["--list-csv"], variables).text.splitlines()
        jobs = [line.split(";")[0].strip('"') for line in lines if line.count(";") > 3]
        return [job for job in jobs if job != "name"]

    def _run(self, job: str, variables: dict[str, str]) -> Ran:
        return self._call([job], variables)

    def _call(self, words: list[str], variables: dict[str, str]) -> Ran:
        known = {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": self._host.url,
            "CI_PROJECT_ID": "1217",
            "CI_JOB_URL": "https://gitlab.example/shop/topics/-/jobs/7",
            "RECONCILER_TOKEN": TOKEN,
            **SECRETS,
            **variables,
        }
        options = [
            word for name, value in known.items() for word in ("--variable", f"{name}={value}")
        ]
        done = subprocess.run(
            [self._program, *words, "--force-shell-executor", NO_TAGS, *options],
            cwd=self._repository.directory,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        return Ran(done.returncode, done.stdout)
