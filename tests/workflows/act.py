"""The workflows of GitHub, run by act on this machine: what a run said, and what it kept."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from code_host import TOKEN
from runner_clone import ORIGIN, SECRETS, TIMEOUT_S

if TYPE_CHECKING:
    from code_hosts import GitHubHost
    from runner_clone import Clone

UPLOAD = "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f"
DOWNLOAD = "actions/download-artifact@37930b1c2abaa49bbe596cd826c3c89aef350131"
APP = "actions/create-github-app-token@1b10c78c7865c340bc4f6099eb2f838309f1e8c3"
UPLOADS = """\
name: upload-artifact
inputs: {name: {required: true}, path: {required: true}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {NAME: "${{ inputs.name }}", FILES: "${{ inputs.path }}"}
      run: |
        mkdir -p "$ARTIFACTS/$NAME"
        while read -r file; do
          [ -z "$file" ] || [ ! -f "$file" ] || cp "$file" "$ARTIFACTS/$NAME/"
        done <<< "$FILES"
"""
DOWNLOADS = """\
name: download-artifact
inputs: {name: {required: true}, path: {required: true}, run-id: {}, github-token: {}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {NAME: "${{ inputs.name }}", TARGET: "${{ inputs.path }}"}
      run: |
        mkdir -p "$TARGET"
        cp "$ARTIFACTS/$NAME/"* "$TARGET/"
"""
APPS = """\
name: create-github-app-token
inputs:
  client-id: {required: true}
  private-key: {required: true}
  permission-contents: {}
  permission-pull-requests: {}
outputs: {token: {value: "${{ steps.app.outputs.token }}"}}
runs:
  using: composite
  steps:
    - id: app
      shell: bash
      env: {KEY: "${{ inputs.private-key }}"}
      run: echo "token=$KEY" >> "$GITHUB_OUTPUT"
"""


@dataclass(frozen=True)
class Ran:
    """A run: its exit code, and the lines of its log, each a JSON object."""

    code: int
    log: list[dict[str, Any]]
    artifacts: Path

    @property
    def jobs(self) -> set[str]:
        """Return the names of the jobs that ran; of a called workflow also its cluster."""
        return {_name_job(line["job"]) for line in self.log if "step" in line}

    @property
    def text(self) -> str:
        return "\n".join(str(line.get("msg", "")) for line in self.log)

    @property
    def summary(self) -> str:
        return "".join(line["content"] for line in self.log if line.get("command") == "summary")

    def annotations(self, command: str) -> list[tuple[str, str]]:
        """Return the annotations of a kind: file:line, and text."""
        found = [line for line in self.log if line.get("command") == command]
        places = [line.get("kvPairs", {}) for line in found]
        return [
            (f"{place.get('file')}:{place.get('line')}", line["arg"])
            for place, line in zip(places, found, strict=True)
        ]

    def outputs(self) -> dict[str, str]:
        """Return what steps handed on; where several did, the last."""
        found = [line for line in self.log if line.get("command") == "set-output"]
        return {line["name"]: line["arg"] for line in found}


def _name_job(path: str) -> str:
    """Name a job by its path: workflow/job, or below a job with a matrix, job/workflow/job."""
    *above, _, job = (part.strip() for part in path.split("/"))
    return f"{job} ({re.sub('-[0-9]+$', '', above[-1])})" if above else job


class Act:
    """Runs workflows of a repository as GitHub would, against a code host on loopback."""

    def __init__(
        self, program: str, repository: Clone, host: GitHubHost, environment: dict[str, str]
    ) -> None:
        self._program = program
        self._repository = repository
        self._host = host
        self._environment = environment
        self._scratch = repository.directory.parent
        self._origin = self._scratch / "origin.git"
        repository.git("clone", "--quiet", "--bare", ".", str(self._origin))
        address = f'[url "{self._origin.as_uri()}"]\n\tinsteadOf = {ORIGIN}\n'
        (Path(environment["HOME"]) / ".gitconfig").write_text(address)
        self.variables = {"RECONCILER_CLUSTERS": '["lab"]', "RECONCILER_INSTALL": "none"}
        self.secrets = {"GITHUB_TOKEN": TOKEN, **SECRETS}
        names = {UPLOAD: "upload", DOWNLOAD: "download", APP: "app"}
        self.stand_ins = {action: self._scratch / name for action, name in names.items()}
        written = (UPLOADS, DOWNLOADS, APPS)
        for directory, text in zip(self.stand_ins.values(), written, strict=True):
            directory.mkdir()
            (directory / "action.yml").write_text(text)

    def pull(self, number: int = 12, fork: bool = False, user: str = "alice") -> Ran:
        """Run plan.yml for a pull request."""
        full_name = "mallory/topics" if fork else "shop/topics"
        head = {"sha": self._host.talks[number].head, "repo": {"full_name": full_name}}
        pull = {"number": number, "head": head, "base": {"ref": "main"}, "user": {"login": user}}
        return self.run("pull_request", "plan.yml", {"pull_request": pull})

    def queue(self, number: int = 12) -> Ran:
        """Run plan.yml for what a merge queue is about to merge: everything not merged yet."""
        base = self._repository.git("rev-parse", "refs/remotes/origin/main")
        group = {"base_sha": base, "head_ref": f"refs/heads/gh-readonly-queue/main/pr-{number}"}
        return self.run("merge_group", "plan.yml", {"merge_group": group})

    def push(self) -> Ran:
        """Run apply.yml for a push to main of everything that is not merged yet."""
        return self.run("push", "apply.yml", self._push())

    def repeat(self, commit: str, before: str, workflow: str = "apply.yml") -> Ran:
        """Run a workflow again for an earlier push to main, which has gone on since then.

        The checkout of such a run has its own commit as main of the code host, as actions/checkout.
        """
        main = self._repository.git("rev-parse", "HEAD")
        self._repository.git("switch", "--quiet", "--detach", commit)
        self._repository.git("update-ref", "refs/remotes/origin/main", commit)
        try:
            return self.run("push", workflow, {"ref": "refs/heads/main", "before": before})
        finally:
            self._repository.git("switch", "--quiet", "main")
            self._repository.git("update-ref", "refs/remotes/origin/main", main)

    def publish(self) -> None:
        """Let what is committed be main at the code host; the clone does not know it yet."""
        self._repository.git("push", "--quiet", "--force", str(self._origin), "HEAD:main")

    def _push(self) -> dict[str, str]:
        self.publish()
        before = self._repository.git("rev-parse", "refs/remotes/origin/main")
        return {"ref": "refs/heads/main", "before": before}

    def dispatch(self, fingerprint: str, since: str = "", cluster: str = "lab") -> Ran:
        """Run apply.yml by hand."""
        inputs = {"cluster": cluster, "fingerprint": fingerprint, "since": since}
        event = {"ref": "refs/heads/main", "inputs": inputs}
        self.publish()
        return self.run("workflow_dispatch", "apply.yml", event)

    def move(self) -> Ran:
        """Run moves.yml for a push to main."""
        return self.run("push", "moves.yml", self._push())

    def go_on(self, fingerprint: str) -> Ran:
        """Run moves.yml by hand, with the plan of an earlier run."""
        inputs = {"cluster": "lab", "fingerprint": fingerprint, "run": "7"}
        event = {"ref": "refs/heads/main", "inputs": inputs}
        self.publish()
        return self.run("workflow_dispatch", "moves.yml", event)

    def night(self) -> Ran:
        """Run drift.yml by its schedule."""
        self.publish()
        return self.run("schedule", "drift.yml", {})

    def rebalance(self) -> Ran:
        """Run rebalance.yml by its schedule, with the key of an app."""
        self.publish()
        app = {"RECONCILER_APP_ID": "Iv1.reconciler", "RECONCILER_APP_KEY": TOKEN}
        self.secrets |= app
        try:
            return self.run("schedule", "rebalance.yml", {})
        finally:
            self.secrets = {name: self.secrets[name] for name in self.secrets if name not in app}

    def run(self, event: str, workflow: str, payload: dict[str, Any]) -> Ran:
        repository = {"full_name": "shop/topics", "default_branch": "main"}
        file = self._scratch / "event.json"
        # The event of a schedule does not describe the repository.
        known = {} if event == "schedule" else {"repository": repository}
        file.write_text(json.dumps({**known, **payload}))
        artifacts = self._scratch / "artifacts"
        pairs: dict[str, dict[str, Any]] = {
            "--secret": self.secrets,
            "--var": self.variables,
            "--env": {"GITHUB_API_URL": self._host.url, "ARTIFACTS": str(artifacts)},
            "--local-repository": self.stand_ins,
            "--platform": {"ubuntu-latest": "-self-hosted"},
        }
        options = [
            word
            for option, values in pairs.items()
            for name, value in values.items()
            for word in (option, f"{name}={value}")
        ]
        workflow = f".github/workflows/{workflow}"
        command = [self._program, event, "--workflows", workflow, "--eventpath", str(file)]
        command += ["--defaultbranch", "main"]  # act describes it where the event does not
        done = subprocess.run(
            [*command, "--json", *options],
            cwd=self._repository.directory,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        return Ran(done.returncode, [json.loads(line) for line in lines], artifacts)
