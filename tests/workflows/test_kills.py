"""Applies that are killed, and reports: what the merged request says afterwards is true.

Each request creates, expands and configures topics. Its apply is killed with SIGKILL at a moment of
its own, and for every other one nothing is reported either, as if the runner had died. After each
run, the comment is compared with the cluster, as another client reads it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pytest
from act import Act
from gitlab_local import GitLabLocal
from runner_clone import ROOT

if TYPE_CHECKING:
    from code_host import CodeHost, Talk
    from code_hosts import GitHubHost, GitLabHost
    from runner_clone import Repository

MOMENTS = 20
KINDS = ("created", "grown", "configured")
MARK = "<!-- reconciler:applied cluster=lab -->"
KILLS = """\
#!/bin/sh
real() {{
  PYTHONPATH={root} exec {python} -c "from reconciler.cli import main; main()" "$@"
}}
if [ "$1 $2" = "report result" ] && [ -e {directory}/mute ]; then exit 137; fi
if [ "$1" != apply ]; then real "$@"; fi
date +%s.%N > {directory}/began
real "$@" &
if [ -s {directory}/moment ]; then
  sleep "$(cat {directory}/moment)"
  kill -9 $!
fi
wait $!
code=$?
date +%s.%N > {directory}/ended
exit $code
"""


class Killer(NamedTuple):
    """Kills applies of the jobs, and their reports."""

    directory: Path

    def set(self, moment_s: float | None, *, mute: bool = False) -> None:
        """Kill the next applies at a moment after their start, and every report of a result."""
        (self.directory / "moment").write_text("" if moment_s is None else f"{moment_s:.3f}")
        (self.directory / "mute").unlink(missing_ok=True)
        if mute:
            (self.directory / "mute").touch()

    def measure(self) -> float:
        """Return how long the last apply took. Units: seconds."""
        began, ended = (float((self.directory / n).read_text()) for n in ("began", "ended"))
        return ended - began


class Jobs(Protocol):
    """The jobs of a host: of a request, of its merge, and the approval of a plan by hand."""

    def plan(self, number: int) -> object: ...
    def push(self) -> object: ...
    def approve(self, fingerprint: str) -> object: ...
    def publish(self) -> None: ...


class OnGitHub(NamedTuple):
    act: Act
    repository: Repository

    def plan(self, number: int) -> object:
        return self.act.pull(number)

    def push(self) -> object:
        return self.act.push()

    def approve(self, fingerprint: str) -> object:
        return self.act.dispatch(fingerprint)

    def publish(self) -> None:
        self.repository.merge()


class OnGitLab(NamedTuple):
    local: GitLabLocal

    def plan(self, number: int) -> object:
        return self.local.plan(number)

    def push(self) -> object:
        return self.local.apply()

    def approve(self, fingerprint: str) -> object:
        return self.local.apply(FINGERPRINT=fingerprint)

    def publish(self) -> None:
        self.local.publish()


@pytest.fixture
def killer(tmp_path: Path, environment: dict[str, str]) -> Killer:
    assert str(tmp_path / "bin") in environment["PATH"]
    script = KILLS.format(python=sys.executable, root=ROOT, directory=tmp_path)
    (tmp_path / "bin" / "reconciler").write_text(script)
    return Killer(tmp_path)


@pytest.fixture
def on_github(
    repository: Repository,
    github: GitHubHost,
    environment: dict[str, str],
    find_tool: Callable[[str], str],
) -> Jobs:
    return OnGitHub(Act(find_tool("act"), repository, github, environment), repository)


@pytest.fixture
def on_gitlab(
    repository: Repository,
    gitlab: GitLabHost,
    environment: dict[str, str],
    find_tool: Callable[[str], str],
) -> Jobs:
    find_tool("rsync")
    program = find_tool("gitlab-ci-local")
    return OnGitLab(GitLabLocal(program, repository, gitlab, environment))


class Requests:
    """Requests of three topics, one after the other."""

    def __init__(self, repository: Repository, host: CodeHost, jobs: Jobs) -> None:
        self._repository, self._host, self._jobs = repository, host, jobs
        self._numbers = count(12)

    def merge(self) -> Talk:
        """Open a request, plan it, and merge it; its apply has not begun yet."""
        number = next(self._numbers)
        self._repository.wish(f"created-{number}", 2)
        self._repository.wish("grown", number, acknowledge="[ordering]")
        self._repository.wish("configured", 2, config=f"{{segment.ms: {number}d}}")
        request = self._host.open_request(number, self._repository.commit())
        self._jobs.plan(number)
        request.review("alice")
        request.merged_as = request.head
        return request

    def list_done(self, number: int) -> set[str]:
        """Return which topics of a request are on the cluster as it asks for."""
        sizes = self._repository.partitions()
        done = {
            "created": f"created-{number}" in sizes,
            "grown": sizes.get("grown") == number,
            "configured": "configured" in sizes
            and self._repository.config("configured", "segment.ms") == str(number * 86_400_000),
        }
        return {kind for kind, is_done in done.items() if is_done}


def read_comment(request: Talk, prefix: str) -> tuple[str, set[str], set[str]]:
    """Return what the comment says: its title, and the topics that are done, and that are not."""
    (text,) = (note["body"] for note in request.comments if note["body"].startswith(MARK))
    title = text.splitlines()[1].rpartition(": ")[2]

    def list_topics(said: str) -> set[str]:
        lines = [line for line in text.splitlines() if re.search(said, line)]
        found = re.findall(rf"`{re.escape(prefix)}([a-z]+)[-0-9]*`", "".join(lines))
        return set(found)

    done = list_topics(r"(are|is) as (planned|specified).*: `")
    return title, done, list_topics(r"^\d+ topics? (are|is) not: `")


def check(requests: Requests, number: int, request: Talk, prefix: str) -> set[str]:
    """Compare the comment with the cluster. Returns the topics that are done."""
    done = requests.list_done(number)
    title, said_done, said_left = read_comment(request, prefix)
    assert said_done == done, (number, title)
    assert said_left in (set(), set(KINDS) - done), (number, title)
    assert (title == "done") == (done == set(KINDS)), (number, title)
    return done


def try_kills(
    repository: Repository, host: CodeHost, jobs: Jobs, killer: Killer, moments: int
) -> list[int]:
    """Kill one apply at each moment. Returns how many topics each of them had done."""
    requests, prefix = Requests(repository, host, jobs), repository.prefix
    killer.set(None)
    first = requests.merge()
    jobs.push()
    jobs.publish()
    assert check(requests, 12, first, prefix) == set(KINDS)
    whole_s = killer.measure()
    reached = []
    for moment in range(moments):
        request = requests.merge()
        number = 13 + moment
        # Every other time, the runner dies with the apply.
        killer.set(whole_s * (moment + 1) / moments, mute=moment % 2 == 1)
        jobs.push()
        reached.append(len(requests.list_done(number)))
        if moment % 2 == 0:
            check(requests, number, request, prefix)
        killer.set(None)
        jobs.push()
        if check(requests, number, request, prefix) != set(KINDS):
            # The rest is a plan of its own, which a person approves.
            (text,) = (n["body"] for n in request.comments if n["body"].startswith(MARK))
            found = re.search("[0-9a-f]{64}", text.partition("**Next:**")[2])
            assert found, text
            jobs.approve(found[0])
            assert check(requests, number, request, prefix) == set(KINDS)
        jobs.publish()
    return reached


def check_a_kill_between_the_apply_and_its_report(
    repository: Repository, host: CodeHost, jobs: Jobs, killer: Killer, number: int
) -> None:
    requests = Requests(repository, host, jobs)
    requests._numbers = count(number)
    killer.set(None, mute=True)
    request = requests.merge()
    jobs.push()
    assert requests.list_done(number) == set(KINDS)
    assert not any(note["body"].startswith(MARK) for note in request.comments)
    killer.set(None)
    jobs.push()
    assert check(requests, number, request, repository.prefix) == set(KINDS)


def test_killed_applies_on_github(
    repository: Repository, github: GitHubHost, on_github: Jobs, killer: Killer
) -> None:
    reached = try_kills(repository, github, on_github, killer, MOMENTS)
    # Some kills came before anything was done, and some after.
    assert reached[0] < len(KINDS)
    assert len(set(reached)) > 1, reached
    number = 13 + MOMENTS
    check_a_kill_between_the_apply_and_its_report(repository, github, on_github, killer, number)


def test_killed_applies_on_gitlab(
    repository: Repository, gitlab: GitLabHost, on_gitlab: Jobs, killer: Killer
) -> None:
    moments = 4
    try_kills(repository, gitlab, on_gitlab, killer, moments)
    number = 13 + moments
    check_a_kill_between_the_apply_and_its_report(repository, gitlab, on_gitlab, killer, number)
