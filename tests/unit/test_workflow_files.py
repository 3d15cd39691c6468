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


def install(directory: Path, *found: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run what each job of GitLab runs first, with a pip that only prints, and what is `found`."""
    _, jobs = yaml.load_all((ROOT / ".ci" / "gitlab-ci.yml").read_text(), Template)
    script = "\n".join(jobs[".reconciler $[[ inputs.cluster ]]"]["before_script"])
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
