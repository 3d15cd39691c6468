"""The workflows and the template as files: what no runner on this machine would show."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.spec.keys import MOST_STAGES

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def list_groups(workflow: Path) -> list[dict[str, Any]]:
    """Return the concurrency groups of a workflow and of its jobs."""
    document = yaml.safe_load(workflow.read_text())
    found = [document, *document["jobs"].values()]
    return [each["concurrency"] for each in found if "concurrency" in each]


@pytest.mark.parametrize("name", ["apply-stage", "moves"])
def test_every_run_that_writes_waits_for_its_turn(name: str) -> None:
    (group,) = list_groups(ROOT / ".github" / "workflows" / f"{name}.yml")
    assert (group["cancel-in-progress"], group["queue"]) == (False, "max")


def test_the_workflow_has_a_job_for_every_stage_that_an_estate_may_have() -> None:
    """And each waits for all before it: a stage without changes has no result to wait for."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "apply.yml").read_text())["jobs"]
    names = [f"stage-{number}" for number in range(1, MOST_STAGES + 1)]
    assert [name for name in jobs if name.startswith("stage-")] == names
    for number, name in enumerate(names):
        assert jobs[name]["needs"] == ["stages", *names[:number]]
        assert f"[{number}]" in jobs[name]["if"]
        assert f"[{number}]" in jobs[name]["with"]["clusters"]
    assert jobs["stopped"]["needs"] == ["stages", *names]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_queue_is_one_that_github_accepts(workflow: Path) -> None:
    """The linters ignore the key, and GitHub refuses a workflow with another value."""
    for group in list_groups(workflow):
        assert group.get("queue", "single") in {"single", "max"}
        assert not (group.get("queue") == "max" and group.get("cancel-in-progress"))


class Template(yaml.SafeLoader):
    """Reads the template: `!reference` is a list."""


Template.add_constructor("!reference", lambda loader, node: loader.construct_sequence(node))


def read_job(name: str) -> dict[str, Any]:
    """Return a job of the template for GitLab."""
    _, jobs = yaml.load_all((ROOT / ".ci" / "gitlab-ci.yml").read_text(), Template)
    job: dict[str, Any] = jobs[f"{name} $[[ inputs.cluster ]]"]
    return job


def run_lines(lines: list[str], directory: Path, **variables: str) -> list[str]:
    """Run lines of a job with a command that records its arguments. Returns these."""
    command = directory / "reconciler"
    command.write_text('#!/bin/sh\necho "$@" >> "$ASKED"\n')
    command.chmod(0o755)
    asked = directory / "asked"
    asked.touch()
    known = {"PATH": f"{directory}{os.pathsep}/usr/bin:/bin", "ASKED": str(asked), "CLUSTER": "lab"}
    script = "\n".join(lines)
    subprocess.run(
        ["/bin/bash", "-eo", "pipefail", "-c", script],
        cwd=directory,
        env=known | variables,
        check=True,
    )
    return asked.read_text().splitlines()


@pytest.mark.parametrize("has_journal", [False, True])
def test_a_night_that_applies_notifies_of_drift_and_of_the_apply(
    has_journal: bool, tmp_path: Path
) -> None:
    if has_journal:
        (tmp_path / "journal-lab.jsonl").touch()
    lines = read_job("apply drift")["after_script"]
    asked = run_lines(lines, tmp_path, RECONCILER_WEBHOOK="http://127.0.0.1:9", ESTATE="topics")
    about = ["drift", "apply"] if has_journal else ["drift"]
    assert [line.split()[2] for line in asked if " notify " in line] == about
    assert run_lines(lines, tmp_path, ESTATE="topics")[len(asked) :] == asked[:1]


@pytest.mark.parametrize(
    ("event", "since", "notes"), [("merged_result", "main", 1), ("merge_train", "1a2b3c4", 0)]
)
def test_a_merge_train_plans_since_the_request_before_and_writes_no_note(
    event: str, since: str, notes: int, tmp_path: Path
) -> None:
    lines = [line for line in read_job("plan")["script"] if isinstance(line, str)]
    begin = next(number for number, line in enumerate(lines) if line.startswith("git fetch"))
    asked = run_lines(
        ["since=main", *lines[begin + 1 :], 'echo "$since" >> "$ASKED"'],
        tmp_path,
        CI_MERGE_REQUEST_EVENT_TYPE=event,
        CI_MERGE_REQUEST_TARGET_BRANCH_SHA="1a2b3c4",
        code="0",
        also="0",
    )
    assert [line.split()[:2] for line in asked[:-1]] == [["report", "plan"]] * notes
    assert asked[-1] == since


def install(directory: Path, *found: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run what each job of GitLab runs first, with a pip that only prints, and what is `found`."""
    script = "\n".join(read_job(".reconciler")["before_script"])
    for name in ("pip", *found):
        (directory / name).write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
        (directory / name).chmod(0o755)
    empty = {"PACKAGE": "", "CONSTRAINTS": "", "PATH": f"{directory}{os.pathsep}/usr/bin:/bin"}
    return subprocess.run(
        ["/bin/bash", "-eu", "-o", "pipefail", "-c", script],
        env=empty | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_image_without_reconciler_and_without_a_package_is_an_error(tmp_path: Path) -> None:
    done = install(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: the image has no reconciler; set the input package, or image to one that has it\n"
    )


def test_an_image_with_reconciler_installs_nothing(tmp_path: Path) -> None:
    done = install(tmp_path, "reconciler", PACKAGE="git+https://a.example/r")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/reconciler\n")


def test_a_package_is_installed_with_its_constraints(tmp_path: Path) -> None:
    done = install(tmp_path, PACKAGE="git+https://a.example/r@1", CONSTRAINTS="c d.txt")
    assert done.returncode == 0
    assert done.stdout.endswith("<--constraint><c d.txt><git+https://a.example/r@1>")
    assert "--constraint" not in install(tmp_path, PACKAGE="r").stdout
