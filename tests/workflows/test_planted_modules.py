"""Nothing that a request brings is imported by a job with secrets, and no secret is there early.

A module of every name is at the root of the request, beside its specs and in the home. Each
workflow installs by its own script, with the releases already there: test_installs.py downloads.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from act import Act
from code_host import TOKEN, serve
from code_hosts import WebhookHost
from gitlab_local import GitLabLocal
from hostile_modules import Planted, list_user_sites
from runner_clone import SECRETS, copy_source

if TYPE_CHECKING:
    from code_hosts import GitHubHost, GitLabHost
    from runner_clone import Repository

PYTHON = """\
#!/bin/sh
# Python, which writes down the environment of each installation: its own and that of the shells
# above it, in one piece, since two jobs may install at once. A new venv has what pip would
# download, so that pip only looks, and builds our package.
for last; do :; done
case " $* " in *" -m venv "*)
  above=$(cut -d " " -f 4 /proc/$PPID/stat)
  for process in $$ $PPID $above; do
    echo "# $process" && tr '\\0' '\\n' < /proc/$process/environ
  done > {environments}.$$
  cat {environments}.$$ >> {environments}
  {python} "$@" --without-pip || exit
  exec cp --archive --link --force {seed}/. "$last"
esac
exec {python} "$@"
"""


@pytest.fixture
def seed(installed: Path, tmp_path: Path) -> Path:
    """A venv without what differs from one venv to another."""
    directory = tmp_path / "seed"
    copy = ("cp", "--archive", "--link", installed / "venv", directory)
    subprocess.run(copy, check=True)
    (directory / "pyvenv.cfg").unlink()
    shutil.rmtree(directory / "bin")
    return directory


@dataclass(frozen=True)
class Watched:
    """The modules, and what the environments of the installations were."""

    planted: Planted
    environments: Path
    secrets: tuple[str, ...]

    def check(self, installations: int, shells: int) -> None:
        """No module was imported, and nothing is secret in an installation and shells above it."""
        assert self.planted.list_imported() == []
        _, *texts = self.environments.read_text().split("# ")
        self.environments.unlink()
        assert len(texts) == 3 * installations
        for number, text in enumerate(texts):
            if number % 3 <= shells:
                assert not [secret for secret in self.secrets if secret in text], text
        assert "PATH=" in texts[0]


@pytest.fixture
def watched(
    repository: Repository, bare: dict[str, str], tmp_path: Path, seed: Path
) -> Iterator[Watched]:
    """Plant them into the request and into the home, and merge them."""
    home = tmp_path / "home"
    root = repository.directory
    places = [root, root / "topics", home, *list_user_sites(home)]
    planted = Planted(tmp_path / "imported", places)
    environments = tmp_path / "environments"
    (tmp_path / "programs").mkdir()
    program = tmp_path / "programs" / "python3"
    python = shutil.which("python3", path=bare["PATH"])
    program.write_text(PYTHON.format(python=python, environments=environments, seed=seed))
    program.chmod(0o755)
    bare["PATH"] = f"{program.parent}:{bare['PATH']}"
    repository.allow_moves()
    repository.commit()
    repository.merge()
    with serve(WebhookHost()) as webhook:
        assert isinstance(webhook, WebhookHost)
        secrets = (TOKEN, *SECRETS.values(), webhook.address)
        yield Watched(planted, environments, secrets)


def test_no_workflow_of_github_imports_what_a_request_brings(
    repository: Repository,
    github: GitHubHost,
    bare: dict[str, str],
    watched: Watched,
    find_tool: Callable[[str], str],
) -> None:
    act = Act(find_tool("act"), repository, github, bare)
    del act.variables["RECONCILER_INSTALL"]
    act.variables |= {"RECONCILER_MOVES": '["lab"]', "RECONCILER_APPLY_DRIFT": '["lab"]'}
    act.secrets["RECONCILER_WEBHOOK"] = watched.secrets[-1]
    repository.wish("orders", 2)
    request = github.open_request(12, repository.commit())
    planned = act.pull()
    watched.check(installations=2, shells=2)
    assert (planned.code, planned.jobs) == (0, {"validate", "plan (lab)", "planned"})
    assert "1 to create" in request.comments[0]["body"]

    request.merged_as = request.head
    merged = act.push()
    watched.check(installations=3, shells=2)
    assert (merged.code, merged.jobs) == (0, {"stages", "plan (lab)", "apply (lab)"})
    assert repository.partitions() == {"orders": 2}
    repository.merge()

    repository.wish("orders", 2, replication_factor="3")
    request = github.open_request(13, repository.commit())
    assert act.pull(13).code == 0
    watched.check(installations=2, shells=2)
    request.merged_as = request.head
    moved = act.move()
    watched.check(installations=1, shells=2)
    assert (moved.code, moved.jobs) == (0, {"moves (lab)"})
    assert repository.replicas("orders") == [3, 3]
    repository.merge()

    # Its apply never ran, so the night makes the change.
    repository.wish("clicks", 2)
    request = github.open_request(14, repository.commit())
    assert act.pull(14).code == 0
    watched.check(installations=2, shells=2)
    request.merged_as = request.head
    repository.merge()
    night = act.night()
    watched.check(installations=3, shells=2)
    assert night.code == 0, night.text
    assert repository.partitions() == {"orders": 2, "clicks": 2}


def test_no_job_of_gitlab_imports_what_a_request_brings(
    repository: Repository,
    gitlab: GitLabHost,
    bare: dict[str, str],
    watched: Watched,
    find_tool: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """Above its script, the shell of a job has the secrets of the job, as GitLab gives them."""
    find_tool("rsync")
    source = copy_source(tmp_path / "source")
    program = find_tool("gitlab-ci-local")
    inputs = {"source": source.directory.as_uri(), "commit": source.commit(), "moves": True}
    pipeline = GitLabLocal(program, repository, gitlab, bare, **inputs)
    pipeline.include([{"cluster": "lab", **inputs}])  # each include has the job that validates
    pipeline.variables["RECONCILER_WEBHOOK"] = watched.secrets[-1]
    repository.wish("orders", 2)
    request = gitlab.open_request(12, repository.commit())
    for run in (pipeline.validate, lambda: pipeline.plan(12)):
        done = run()
        watched.check(installations=1, shells=1)
        assert done.code == 0, done.text
    assert "1 to create" in request.comments[0]["body"]

    request.merged_as = request.head
    merged = pipeline.apply()
    watched.check(installations=1, shells=1)
    assert merged.code == 0, merged.text
    assert "### Kafka apply on `lab`: done" in request.comments[1]["body"]  # by after_script
    pipeline.publish()

    repository.wish("orders", 2, replication_factor="3")
    request = gitlab.open_request(13, repository.commit())
    assert pipeline.plan(13).code == 0
    watched.check(installations=1, shells=1)
    request.merged_as = request.head
    moved = pipeline.move()
    watched.check(installations=1, shells=1)
    assert moved.code == 0, moved.text
    assert repository.replicas("orders") == [3, 3]
    pipeline.publish()

    # Its apply never ran, so the night makes the change.
    repository.wish("clicks", 2)
    pipeline.include([{"cluster": "lab", **inputs, "apply_drift": True}])
    request = gitlab.open_request(14, repository.commit())
    assert pipeline.plan(14).code == 0
    watched.check(installations=1, shells=1)
    request.merged_as = request.head
    pipeline.publish()
    night = pipeline.apply_drift()
    watched.check(installations=1, shells=1)
    assert night.code == 0, night.text
    assert repository.partitions() == {"orders": 2, "clicks": 2}
