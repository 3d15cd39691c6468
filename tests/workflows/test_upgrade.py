"""The workflows of an earlier commit, brought to those of this tree as docs/ci.md says."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest
from act import Act
from runner_clone import ROOT, drop_queues

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from code_host import Talk
    from code_hosts import GitHubHost
    from runner_clone import Repository

EARLIER = "866e0e1c90c98748668a4a8e8eceb4d303d509e1"
"""The last commit whose nights applied whatever was merged."""
PARTS = (".github", ".ci", "reconciler")
SETS_UP_EARLIER = """\
#!/bin/sh
# Sets up in no time what `python3 -m venv` and pip of the earlier action take half a minute for.
mkdir -p "$3/bin" && printf '#!/bin/sh\\n' > "$3/bin/pip" && chmod +x "$3/bin/pip"
ln -s "$(command -v reconciler)" "$3/bin/reconciler"
"""
MARK = "<!-- reconciler:applied cluster=lab -->"


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """The tree of the earlier commit; a shallow clone does not have it."""
    packed = subprocess.run(
        ["git", "archive", EARLIER, *PARTS], cwd=ROOT, capture_output=True, check=False
    )
    if packed.returncode:
        pytest.skip(f"the commit {EARLIER} is not in this clone")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(tmp_path / "earlier", filter="data")
    return tmp_path / "earlier"


class Upgrade:
    """A repository whose workflows are those of one tree or of another."""

    def __init__(self, repository: Repository, bin_: Path, earlier: Path) -> None:
        self._repository, self._bin, self._earlier = repository, bin_, earlier
        self._python = bin_.parent / "set-up" / "python3"
        self._sets_up = self._python.read_text()

    def use(self, tree: Path) -> None:
        """Copy the workflows of a tree, and install its reconciler on the runner."""
        for part in (".github", ".ci"):
            shutil.rmtree(self._repository.directory / part)
            shutil.copytree(tree / part, self._repository.directory / part)
        drop_queues(self._repository.directory)
        command = f'exec {sys.executable} -c "from reconciler.cli import main; main()" "$@"'
        (self._bin / "reconciler").write_text(f"#!/bin/sh\nPYTHONPATH={tree} {command}\n")
        self._python.write_text(SETS_UP_EARLIER if tree == self._earlier else self._sets_up)

    def upgrade(self) -> None:
        """Bring them to this tree, in a commit that changes nothing else."""
        self.use(ROOT)
        self._repository.commit()
        self._repository.merge()


@pytest.fixture
def act(
    repository: Repository,
    github: GitHubHost,
    environment: dict[str, str],
    find_tool: Callable[[str], str],
) -> Act:
    return Act(find_tool("act"), repository, github, environment)


@pytest.fixture
def upgrade(repository: Repository, tmp_path: Path, earlier: Path, act: Act) -> Upgrade:
    made = Upgrade(repository, tmp_path / "bin", earlier)
    made.use(earlier)
    repository.commit()
    repository.merge()
    return made


def read_result(request: Talk) -> str:
    (text,) = (note["body"] for note in request.comments if note["body"].startswith(MARK))
    return str(text)


def test_approvals_are_worth_the_same_before_and_after_an_upgrade(
    repository: Repository, github: GitHubHost, act: Act, upgrade: Upgrade
) -> None:
    done = open_request(repository, github, act, 12, "done", 3)
    done.review("alice")
    assert merge(repository, act, done) == 0
    refused = open_request(repository, github, act, 13, "refused", 3)
    refused.review("alice")
    repository.wish("refused", 4)  # pushed after the approval
    refused.head = repository.commit()
    assert act.pull(13).code == 0
    assert merge(repository, act, refused) == 1
    open_ = open_request(repository, github, act, 14, "open", 3)
    open_.review("alice")
    assert repository.partitions() == {"done": 3}
    assert "reconciler:progress" not in read_result(done)

    # The open request is approved; its branch is brought up to date with the upgrade.
    repository.git("switch", "--quiet", "main")
    upgrade.upgrade()
    repository.git("switch", "--quiet", "request-14")
    repository.git("rebase", "--quiet", "main")
    open_.head = repository.git("rev-parse", "HEAD")
    assert act.pull(14).code == 0
    assert merge(repository, act, open_) == 0
    assert repository.partitions() == {"done": 3, "open": 3}

    # The first night brings results up to date; the second one applies what was accepted.
    repository.alter("done", "segment.ms", "100000000")
    assert act.night().code == 0
    act.variables["RECONCILER_APPLY_DRIFT"] = '["lab"]'
    night = act.night()
    assert night.code == 1
    assert repository.partitions() == {"done": 3, "open": 3}
    assert repository.config("done", "segment.ms") != "100000000"
    (issue,) = (talk for talk in github.issues.values() if talk.open)
    assert "refused` | alice approved request 13" in issue.body
    assert "reconciler:progress" in read_result(done)


def open_request(
    repository: Repository, host: GitHubHost, act: Act, number: int, name: str, partitions: int
) -> Talk:
    repository.git("switch", "--quiet", "--create", f"request-{number}", "main")
    repository.wish(name, partitions)
    request = host.open_request(number, repository.commit())
    planned = act.pull(number)
    assert planned.code == 0, planned.text
    return request


def merge(repository: Repository, act: Act, request: Talk) -> int:
    branch = repository.git("branch", "--show-current")
    repository.git("switch", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-ff", "--message", f"Merge {branch}", branch)
    request.merged_as = repository.git("rev-parse", "HEAD")
    code = act.push().code
    repository.merge()
    return code
