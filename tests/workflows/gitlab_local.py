"""The template of GitLab CI, run by gitlab-ci-local on this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from code_host import TOKEN
from runner_clone import SECRETS, TIMEOUT_S

if TYPE_CHECKING:
    from code_hosts import GitLabHost
    from runner_clone import Clone

NO_TAGS = "--ignore-schema-paths=#/definitions/tags/minItems"
"""GitLab takes an empty list of tags; its schema, which gitlab-ci-local has, does not."""

ORIGIN = "git@gitlab.example:shop/topics.git"
LEFT_BEHIND = (".gitlab-ci-local/", "*.json", "*.jsonl", "*.txt", "validate.xml", "__pycache__/")
"""What a pipeline leaves in the repository: its jobs run in it, one after the other."""


class Ran(NamedTuple):
    """A pipeline: its exit code, and everything that was printed."""

    code: int
    text: str


class GitLabLocal:
    """Runs pipelines of a repository as GitLab would, against a code host on loopback."""

    def __init__(
        self,
        program: str,
        repository: Clone,
        host: GitLabHost,
        environment: dict[str, str],
        **inputs: bool | str,
    ) -> None:
        """Take the `inputs` of the cluster lab."""
        self._program = program
        self._repository = repository
        self._host = host
        self._environment = environment
        self.variables: dict[str, str] = {}
        self.include([{"cluster": "lab", **inputs}, {"cluster": "other"}])
        exclude = repository.directory / ".git" / "info" / "exclude"
        exclude.write_text("".join(f"{pattern}\n" for pattern in LEFT_BEHIND))
        repository.git("remote", "set-url", "origin", ORIGIN)
        repository.commit()
        self._origin = repository.directory.parent / "origin.git"
        repository.git("clone", "--quiet", "--bare", ".", str(self._origin))
        self.before = repository.git("rev-parse", "HEAD")
        self.serve(ORIGIN, self._origin)

    def include(self, clusters: Iterable[Mapping[str, Any]], stages: Iterable[str] = ()) -> None:
        """Write a .gitlab-ci.yml that includes the template once for each cluster."""
        wanted: dict[str, Any] = {"stages": list(stages)} if stages else {}
        included = [{"local": ".ci/gitlab-ci.yml", "inputs": dict(each)} for each in clusters]
        text = yaml.safe_dump(wanted | {"include": included}, sort_keys=False)
        (self._repository.directory / ".gitlab-ci.yml").write_text(text)

    def serve(self, address: str, repository: Path) -> None:
        """Let git find a repository of this machine at an address."""
        with (Path(self._environment["HOME"]) / ".gitconfig").open("a") as file:
            file.write(f'[url "{repository.as_uri()}"]\n\tinsteadOf = {address}\n')

    def publish(self) -> None:
        """Let what is committed be on main at the code host."""
        self._send()
        self._repository.merge()
        self.before = self._repository.git("rev-parse", "HEAD")

    def _send(self) -> None:
        self._repository.git("push", "--quiet", "--force", str(self._origin), "HEAD:main")

    def run_pipeline(self, variables: Mapping[str, str], *by_hand: str) -> Ran:
        """Run all jobs of an event, one after the other, and start those that people start."""
        words = [word for job in by_hand for word in ("--manual", job)]
        return self._call([*words, "--concurrency", "1"], {**variables})

    def list_merge_request(self, fork: bool = False) -> list[str]:
        return self._list(self.merge_request(12, fork=fork))

    def list_push(self) -> list[str]:
        self.forget()
        return self._list({})

    def list_night(self) -> list[str]:
        return self._list({"CI_PIPELINE_SOURCE": "schedule"})

    def plan(self, number: int) -> Ran:
        return self.run_job("plan lab", self.merge_request(number))

    def ride(self, number: int, target: str) -> Ran:
        return self.run_job("plan lab", self.train(number, target))

    def validate(self) -> Ran:
        return self.run_job("validate topics", self.merge_request(12))

    def apply(self, **more: str) -> Ran:
        return self.run_job("apply lab", self._push(**more))

    def move(self, **more: str) -> Ran:
        return self.run_job("moves lab", self._push(**more))

    def repeat(self, job: str, commit: str, before: str) -> Ran:
        """Run a job again of the pipeline of an earlier push to main, which has gone on since."""
        self._repository.git("switch", "--quiet", "--detach", commit)
        self._repository.git("update-ref", "refs/remotes/origin/main", before)
        try:
            event = {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BEFORE_SHA": before}
            return self.run_job(job, event)
        finally:
            self._repository.git("switch", "--quiet", "main")

    def drift(self, **more: str) -> Ran:
        return self.run_job("drift lab", {"CI_PIPELINE_SOURCE": "schedule", **more})

    def rebalance(self) -> Ran:
        """Run what the schedule starts for a cluster that changes by itself."""
        night = {"CI_PIPELINE_SOURCE": "schedule"}
        looked = self.run_job("look lab", night)
        if looked.code:
            return looked
        asked = self.run_job("request lab", {**night, "RECONCILER_REQUEST_TOKEN": TOKEN})
        return Ran(asked.code, looked.text + asked.text)

    def apply_drift(self) -> Ran:
        self._send()
        return self.run_job("apply drift lab", {"CI_PIPELINE_SOURCE": "schedule"})

    def _push(self, **more: str) -> dict[str, str]:
        self.forget()
        return self.push() | more

    def push(self) -> dict[str, str]:
        """Return the variables of a push to main of everything that is not published."""
        self._send()
        return {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BEFORE_SHA": self.before}

    def forget(self) -> None:
        """Let the newest commit be what was just pushed, since rules look at what changed."""
        self._repository.git("update-ref", "refs/remotes/origin/main", "HEAD~1")

    def merge_request(self, number: int, fork: bool = False) -> dict[str, str]:
        return {
            "CI_PIPELINE_SOURCE": "merge_request_event",
            "CI_MERGE_REQUEST_IID": str(number),
            "CI_MERGE_REQUEST_PROJECT_ID": "1217",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "99" if fork else "1217",
        }

    def train(self, number: int, target: str = "") -> dict[str, str]:
        """Return the variables of a merge train, whose last commit before the request is `target`.

        By default, the request is the first of the train.
        """
        return self.merge_request(number) | {
            "CI_MERGE_REQUEST_EVENT_TYPE": "merge_train",
            "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": target or self.before,
        }

    def _list(self, variables: dict[str, str]) -> list[str]:
        lines = self._call(["--list-csv"], variables).text.splitlines()
        jobs = [line.split(";")[0].strip('"') for line in lines if line.count(";") > 3]
        return [job for job in jobs if job != "name"]

    def run_job(self, job: str, variables: dict[str, str]) -> Ran:
        return self._call([job], variables)

    def _call(self, words: list[str], variables: dict[str, str]) -> Ran:
        known = {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": self._host.url,
            "CI_PROJECT_ID": "1217",
            "CI_JOB_URL": "https://gitlab.example/shop/topics/-/jobs/7",
            "RECONCILER_TOKEN": TOKEN,
            **SECRETS,
            **self.variables,
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
