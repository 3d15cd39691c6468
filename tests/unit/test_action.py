"""The steps of the action: what they start, compare a plan with, and notify of in a night."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from repository import Repository, start_repository

from reconciler.spec.syntax import load_text
from reconciler.spec.values import YamlMap, YamlValue

ACTION = Path(__file__).parents[2] / ".github" / "actions" / "reconciler" / "action.yml"
RECORDS = '#!/bin/sh\necho "$@" >> "$RUNNER_TEMP/asked"\n'


def read_step(name: str) -> YamlMap:
    """Return a step of the action by its name."""
    (document,) = load_text(ACTION.read_bytes(), "action.yml").documents
    assert isinstance(document, YamlMap)
    steps: list[YamlValue] = document["runs"]["steps"]
    (step,) = (each for each in steps if isinstance(each, YamlMap) and each["name"] == name)
    return step


def run_step(name: str, work: Path, **variables: str) -> list[str]:
    """Run a step with a command that records its arguments. Returns these."""
    command = work / "reconciler"
    command.write_text(RECORDS)
    command.chmod(0o755)
    names = map(str, read_step(name).get("env", ()))
    environment = dict.fromkeys(names, "") | {
        "PATH": f"{work}:/usr/bin:/bin",
        "RUNNER_TEMP": str(work),
        "GITHUB_OUTPUT": str(work / "outputs"),
        "ESTATE": "topics",
        "CLUSTER": "prod",
        **variables,
    }
    script = str(read_step(name)["run"])
    (work / "asked").touch()
    subprocess.run(["bash", "-eo", "pipefail", "-c", script], env=environment, check=True)
    return (work / "asked").read_text().splitlines()


SHOWS = """\
#!/usr/bin/env python3
import os, sys
if "numbers" in sys.argv:
    import numbers
flags = ("safe_path", "no_user_site")
print(*(getattr(sys.flags, flag) for flag in flags), os.environ.get("PYTHONPATH"), sys.argv[1:])
"""


def find_reconciler(work: Path, path: str) -> subprocess.CompletedProcess[str]:
    """Run the step that finds the command of a runner, in a directory with a planted module."""
    (work / "checkout").mkdir()
    (work / "checkout" / "numbers.py").write_text("print('planted')")
    environment = {"PATH": path, "RUNNER_TEMP": str(work), "GITHUB_PATH": str(work / "path")}
    script = str(read_step("Find reconciler")["run"])
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_of_a_runner_imports_nothing_from_the_checkout_or_the_home(
    tmp_path: Path,
) -> None:
    """Of the directories of the runner's PATH, one has a space in its name."""
    programs = tmp_path / "own programs"
    programs.mkdir()
    command = programs / "reconciler"
    command.write_text(SHOWS)
    command.chmod(0o755)
    path = f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin"
    assert find_reconciler(tmp_path, path).returncode == 0
    found = Path((tmp_path / "path").read_text().strip()) / "reconciler"

    def run(program: Path) -> str:
        environment = {"PATH": path, "PYTHONPATH": "."}
        return subprocess.run(
            [program, "numbers", "a b"],
            cwd=tmp_path / "checkout",
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert run(command) == "planted\nFalse 0 . ['numbers', 'a b']\n"
    assert run(found) == "True 1 None ['numbers', 'a b']\n"


def test_a_runner_without_the_command_is_an_error_that_names_the_missing_step(
    tmp_path: Path,
) -> None:
    done = find_reconciler(tmp_path, "/usr/bin:/bin")
    assert done.returncode == 1
    assert done.stdout == (
        "::error title=reconciler::the PATH has no reconciler; add a step with the action install"
        " of the same commit before this one, or install reconciler on the runner\n"
    )


def run_plan(work: Path, **variables: str) -> tuple[list[str], str]:
    """Run the step that plans. Returns what it asked for, and its outputs."""
    return run_step("Plan", work, **variables), (work / "outputs").read_text()


@pytest.mark.parametrize("verb", ["plan", "apply", "moves"])
def test_a_request_and_its_merge_are_planned_since_their_base(verb: str, tmp_path: Path) -> None:
    asked, outputs = run_plan(tmp_path, VERB=verb, SINCE="1a2b3c4", MOVES="true")
    assert len(asked) == (2 if verb == "plan" else 1)
    assert all(" --changed-since 1a2b3c4 " in line for line in asked)
    assert "since=1a2b3c4\n" in outputs


@pytest.mark.parametrize("variables", [{"VERB": "drift", "SINCE": "1a2b3c4"}, {"VERB": "apply"}])
def test_the_nightly_check_and_a_run_by_hand_plan_everything(
    variables: dict[str, str], tmp_path: Path
) -> None:
    (asked,), outputs = run_plan(tmp_path, **variables)
    assert "--changed-since" not in asked
    assert "since=" not in outputs


def test_the_nightly_check_applies_nothing_by_default() -> None:
    (document,) = load_text(ACTION.read_bytes(), "action.yml").documents
    assert isinstance(document, YamlMap)
    assert str(document["inputs"]["apply"]["default"]) == "false"
    wanted = "inputs.verb == 'drift' && inputs.apply == 'true'"
    for name in ("What apply needs", "Accepted", "Gradual changes"):
        assert wanted in str(read_step(name)["if"])
    for name in ("Default branch", "Apply", "Look again", "Waiting"):
        needed = str(read_step(name)["if"])
        assert "steps.accepted." in needed
        assert "drift" not in needed


def test_a_night_checks_what_apply_needs_before_anything_differs() -> None:
    """Only this job of the default branch has the account that writes, without a reviewer."""
    step = read_step("What apply needs")
    assert step["if"] == "inputs.verb == 'drift' && inputs.apply == 'true'"
    assert str(step["run"]).strip() == 'reconciler apply "$ESTATE" --cluster "$CLUSTER" --check'


@pytest.mark.parametrize(
    ("waits", "planned", "again", "code", "written"),
    [
        ("0", "2", "0", 0, ["waits=0", "code=2"]),
        ("2", "2", "0", 0, ["waits=2", "code=2"]),
        ("2", "0", "0", 0, ["waits=2", "code=0"]),
        ("1", "2", "0", 1, ["waits=1"]),
        ("0", "1", "0", 1, ["waits=0", "code=1"]),
        ("0", "2", "2", 2, ["waits=0", "code=2"]),
    ],
)
def test_a_night_plans_what_was_accepted_and_stops_at_an_error(
    waits: str, planned: str, again: str, code: int, written: list[str], tmp_path: Path
) -> None:
    """The plan to apply is judged again: the cluster may have changed since the first one."""
    output = tmp_path / "output"
    (tmp_path / "reconciler").write_text(
        f'#!/bin/sh\n[ "$1" = plan ] && exit {planned}\n'
        f'case "$*" in *drift.json*) exit {again} ;; *) exit {waits} ;; esac\n'
    )
    (tmp_path / "reconciler").chmod(0o755)
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", str(read_step("Accepted")["run"])],
        env={
            "PATH": f"{tmp_path}:/usr/bin:/bin",
            "GITHUB_OUTPUT": str(output),
            "DIRECTORY": str(tmp_path),
        },
        check=False,
    )
    assert (done.returncode, output.read_text().split()) == (code, written)


@pytest.mark.parametrize(
    ("verb", "applies", "has_journal", "about"),
    [
        ("drift", "false", False, ["drift"]),
        ("drift", "true", False, []),
        ("drift", "true", True, ["apply"]),
        ("apply", "false", True, ["apply"]),
        ("pending", "false", False, ["apply"]),
    ],
)
def test_a_night_that_applies_notifies_of_the_apply_since_the_check_notified_of_the_drift(
    verb: str, applies: str, has_journal: bool, about: list[str], tmp_path: Path
) -> None:
    """The command itself is silent about an apply that is done."""
    if has_journal:
        (tmp_path / "journal.jsonl").touch()
    known = {"VERB": verb, "APPLY": applies, "DIRECTORY": str(tmp_path), "FORMAT": "json"}
    asked = run_step("Notify", tmp_path, **known)
    assert [line.split()[:3] for line in asked] == [["report", "notify", each] for each in about]
    for line in asked:
        assert ("--journal" in line) == (" apply " in line)


# The default branch, before an apply.


def fetch(clone: Repository, **variables: str) -> int:
    """Run the step that fetches the default branch, in a clone. Returns its exit code."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(clone.root.parent),
        "ESTATE": "topics",
        "DEFAULT_BRANCH": "refs/remotes/origin/main",
        "GITHUB_TOKEN": "token-of-the-job",
        "GITHUB_SERVER_URL": "https://github.example",
        "GIT_TERMINAL_PROMPT": "0",
        **variables,
    }
    command = ["bash", "-eo", "pipefail", "-c", str(read_step("Default branch")["run"])]
    return subprocess.run(command, env=environment, cwd=clone.root, check=False).returncode


@pytest.fixture
def clone(tmp_path: Path) -> Repository:
    """Return a clone, whose origin has gone on since."""
    origin = start_repository(tmp_path / "origin")
    origin.commit(a="topic: a")
    origin.git("clone", "-q", ".", str(tmp_path / "clone"))
    origin.commit(a="topic: a\npartitions: 2")
    return Repository(tmp_path / "clone")


def test_an_apply_knows_the_default_branch_as_it_is_now(clone: Repository, tmp_path: Path) -> None:
    before = clone.git("rev-parse", "HEAD")
    assert fetch(clone, DEFAULT_BRANCH=before) == 0
    assert clone.git("rev-parse", "origin/main") == before
    assert fetch(clone) == 0
    now = Repository(tmp_path / "origin").git("rev-parse", "main")
    assert clone.git("rev-parse", "origin/main") == now != before
    assert clone.git("rev-parse", "HEAD") == before
    assert fetch(clone, DEFAULT_BRANCH="refs/remotes/origin/nosuch") != 0


@contextmanager
def listen() -> Iterator[tuple[str, list[list[str]]]]:
    """Serve a host that refuses everybody. Yields its address, and what each request sent."""
    heard: list[list[str]] = []

    class Refuses(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.headers.get_all("Authorization") or [])
            self.send_error(403)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", heard
        server.shutdown()


def test_the_token_goes_to_the_host_of_the_workflow_only_and_once(clone: Repository) -> None:
    """A checkout can have left credentials of its own in the settings of the clone."""
    sent = base64.b64encode(b"x-access-token:token-of-the-job").decode()
    with listen() as (host, heard), listen() as (other, overheard):
        clone.git("config", f"http.{host}/.extraheader", "AUTHORIZATION: basic other")
        clone.git("remote", "set-url", "origin", f"{host}/shop/topics")
        assert fetch(clone, GITHUB_SERVER_URL=host) != 0
        clone.git("remote", "set-url", "origin", f"{other}/shop/topics")
        assert fetch(clone, GITHUB_SERVER_URL=host) != 0
    assert heard == [[f"basic {sent}"]]
    assert overheard == [[]]


def test_the_default_branch_is_fetched_with_the_token_of_the_job() -> None:
    """A token that only writes comments, such as one of an app, may not read the repository."""
    environment = read_step("Default branch")["env"]
    assert isinstance(environment, YamlMap)
    assert environment["GITHUB_TOKEN"] == "${{ github.token }}"


def test_no_files_of_a_request_decide_where_the_default_branch_is(clone: Repository) -> None:
    """Files that git takes for a repository have an origin, and programs that it runs."""
    made = clone.root / "topics"
    for name in ("objects", "refs"):
        (made / name).mkdir()
    (made / "HEAD").write_text("ref: refs/heads/main\n")
    (made / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n"
        f"\tsshCommand = touch {clone.root}/ran; false\n"
        '[remote "origin"]\n\turl = ssh://git@127.0.0.1/shop/topics\n'
    )
    assert fetch(clone) != 0
    assert not (clone.root / "ran").exists()
