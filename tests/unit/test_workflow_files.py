"""The workflows and the template as files: what no runner on this machine would show."""

from __future__ import annotations

import os
import re
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


@pytest.mark.parametrize("job", ["drift", "stages"])
def test_a_night_looks_at_the_default_branch_only(job: str) -> None:
    """The event of a schedule, which is of that branch, names no repository on GitHub.

    act adds one to every event, so no run on this machine shows a comparison with nothing.
    """
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "drift.yml").read_text())["jobs"]
    branch = (
        "(github.event_name == 'schedule' "
        "|| github.ref_name == github.event.repository.default_branch)"
    )
    assert branch in jobs[job]["if"]
    (rule,) = read_job("drift")["rules"]
    assert rule == {
        "if": '$CI_PIPELINE_SOURCE == "schedule" && $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH'
    }


def test_no_job_has_both_the_secrets_of_a_cluster_and_a_token_that_may_push() -> None:
    """And both are of the default branch, on each host."""
    path = ROOT / ".github" / "workflows" / "rebalance.yml"
    jobs = yaml.safe_load(path.read_text())["jobs"]
    look, request = (yaml.safe_dump(jobs[name]) for name in ("look", "request"))
    assert "secrets.KAFKA_PASSWORD" in look
    assert "RECONCILER_APP_KEY" in request
    assert "APP" not in look
    assert "KAFKA" not in request
    assert jobs["look"]["environment"] == "${{ matrix.cluster }}-plan"
    assert jobs["request"]["environment"] == "reconciler-requests"
    assert jobs["look"]["permissions"] == {"contents": "read", "pull-requests": "read"}
    assert jobs["request"]["permissions"] == {"contents": "read"}
    for name in jobs:
        assert "github.ref_name == github.event.repository.default_branch" in jobs[name]["if"]
        (rule,) = read_job(name)["rules"]
        assert rule["if"].endswith("$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH")
    names = [read_job(name)["environment"]["name"] for name in jobs]
    assert names == ["$[[ inputs.cluster ]]-plan", "reconciler-requests"]


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


def test_a_night_checks_what_apply_needs_before_it_plans(tmp_path: Path) -> None:
    """Also if nothing differs: only this job of the default branch has the account that writes."""
    lines = follow(read_job("apply drift")["script"])
    asked = run_lines(lines[:-1], tmp_path, ESTATE="topics")
    assert asked[:1] == ["apply topics --cluster lab --check"]
    assert asked[1].startswith("plan topics --cluster lab ")


@pytest.mark.parametrize("has_journal", [False, True])
def test_a_night_that_applies_looks_again_and_notifies_of_the_apply(
    has_journal: bool, tmp_path: Path
) -> None:
    if has_journal:
        (tmp_path / "journal-lab.jsonl").touch()
    lines = follow(read_job("apply drift")["after_script"])
    asked = run_lines(lines, tmp_path, RECONCILER_WEBHOOK="http://127.0.0.1:9", ESTATE="topics")
    about = ["apply"] if has_journal else []
    assert [line.split()[2] for line in asked if " notify " in line] == about
    reports = ["plan", "drift", *(["result"] if has_journal else []), "gradual"]
    shown = asked[: len(reports)]
    assert [line.removeprefix("report ").split()[0] for line in shown] == reports
    assert run_lines(lines, tmp_path, ESTATE="topics")[len(asked) :] == shown


def follow(lines: list[Any]) -> list[str]:
    """Return the lines of a job, with those of other jobs where it refers to them."""
    _, jobs = yaml.load_all((ROOT / ".ci" / "gitlab-ci.yml").read_text(), Template)
    found: list[str] = []
    for line in lines:
        found += [line] if isinstance(line, str) else jobs[line[0]][line[1]]
    return found


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


USES = "./.github/actions/"


def list_steps() -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the jobs that use the action, and their steps."""
    jobs = [
        (f"{workflow.stem}: {name}", job.get("steps", []))
        for workflow in WORKFLOWS
        for name, job in yaml.safe_load(workflow.read_text())["jobs"].items()
    ]
    return [job for job in jobs if any(step.get("uses") == f"{USES}reconciler" for step in job[1])]


EXTRAS = "${{ vars.RECONCILER_EXTRAS || 'cel' }}"
"""What a job that connects installs with reconciler; others need the rules of a policy only."""


def test_each_job_installs_before_it_has_secrets() -> None:
    """The step that installs gets nothing, and neither the job nor the workflow has secrets."""
    jobs = list_steps()
    assert len(jobs) == 11
    for name, steps in jobs:
        uses = [step.get("uses") for step in steps]
        place = uses.index(f"{USES}install")
        assert place < uses.index(f"{USES}reconciler"), name
        assert set(steps[place]) <= {"if", "uses", "with"}, name
        connects = any("env" in step for step in steps[place:])
        wanted = {"extras": EXTRAS} if connects else {}
        assert steps[place].get("with", {}) == wanted, name
        assert steps[place].get("if", "vars.RECONCILER_INSTALL != 'none'") == (
            "vars.RECONCILER_INSTALL != 'none'"
        )
        assert not [step for step in steps[:place] if "env" in step], name
    for workflow in WORKFLOWS:
        document = yaml.safe_load(workflow.read_text())
        assert not [each for each in (document, *document["jobs"].values()) if "env" in each]


def install(directory: Path, *found: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run what each job of GitLab runs first, with the commands of the system and what is `found`.

    It prints the PATH that the job has afterwards.
    """
    script = "\n".join([*read_job(".reconciler")["before_script"], 'echo "$PATH"'])
    for name in found:
        (directory / name).write_text("#!/bin/sh\n")
        (directory / name).chmod(0o755)
    project = directory / "project"
    (project / ".git").mkdir(parents=True, exist_ok=True)
    known = {
        "RECONCILER_SOURCE": "",
        "RECONCILER_COMMIT": "",
        "RECONCILER_EXTRAS": "cel",
        "CLUSTER": "lab",
        "PATH": f"{directory}{os.pathsep}/usr/bin:/bin",
    }
    return subprocess.run(
        ["/bin/bash", "-eu", "-o", "pipefail", "-c", script],
        cwd=project,
        env=known | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_image_without_reconciler_and_without_a_source_is_an_error(tmp_path: Path) -> None:
    done = install(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: the image has no reconciler; set the inputs source and commit, or image to one"
        " that has it\n"
    )


def test_the_python_of_an_image_imports_only_from_its_own_directories() -> None:
    variables = read_job(".reconciler")["variables"]
    wanted = {"PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1", "PYTHONPATH": ""}
    assert variables | wanted == variables


def test_an_image_with_reconciler_installs_nothing(tmp_path: Path) -> None:
    done = install(tmp_path, "reconciler")
    assert (done.returncode, done.stdout) == (
        0,
        f"{tmp_path}/reconciler\n{tmp_path}{os.pathsep}/usr/bin:/bin\n",
    )


def test_no_file_of_a_commit_is_read_as_one_of_a_job_even_if_its_first_step_fails(
    tmp_path: Path,
) -> None:
    """A directory makes `rm -f` fail, and after_script then read what a link leads to."""
    text = (ROOT / ".ci" / "gitlab-ci.yml").read_text()
    found = re.findall(r"(?<![$a-z-])[a-z-]+-\$CLUSTER\.\w+", text)
    names = {name.replace("$CLUSTER", "lab") for name in found}
    # That is what an earlier job of the default branch hands on, and no link is read.
    names.remove("need-lab.json")
    assert '[ ! -L "need-$CLUSTER.json" ]' in " ".join(read_job("request")["script"])
    assert {"errors-lab.txt", "plan-lab.json", "journal-lab.jsonl", "why-lab.txt"} < names
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "secret").touch()
    for name in names:
        place = tmp_path / "project" / name
        if name.startswith("why"):
            place.mkdir()
            (place / "file").touch()
        else:
            place.symlink_to(tmp_path / "secret")
    assert install(tmp_path, "reconciler").returncode == 0
    assert [each.name for each in (tmp_path / "project").iterdir()] == [".git"]
    assert (tmp_path / "secret").exists()


PRINTS = """\
#!/bin/sh
echo "$PWD $*"
tr '\\0' '\\n' < /proc/self/environ
"""


@pytest.fixture
def source(tmp_path: Path) -> tuple[Path, str]:
    """A repository whose script prints, and its commit."""
    source = tmp_path / "source"
    (source / ".ci").mkdir(parents=True)
    (source / ".ci" / "install.sh").write_text(PRINTS)
    (source / ".ci" / "install.sh").chmod(0o755)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b.example", "-C", str(source))
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "One")):
        subprocess.run((*git, *words), check=True)
    head = subprocess.run((*git, "rev-parse", "HEAD"), check=True, capture_output=True, text=True)
    return source, head.stdout.strip()


def test_a_source_is_installed_at_its_commit_outside_the_checkout(
    tmp_path: Path, source: tuple[Path, str]
) -> None:
    """What an earlier job left is gone, and the checkout has no part in it."""
    address, commit = source
    place = tmp_path / "project" / ".git" / "reconciler"
    (place / "command").mkdir(parents=True)
    (tmp_path / "project" / ".ci").mkdir()
    (tmp_path / "project" / ".ci" / "install.sh").symlink_to("/bin/false")
    given = {"RECONCILER_SOURCE": address.as_uri(), "RECONCILER_COMMIT": commit}
    done = install(tmp_path, "reconciler", **given, RECONCILER_EXTRAS="cel msk")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"{tmp_path / 'project'} {place} cel msk"
    assert done.stdout.splitlines()[-1].startswith(f"{place}/command{os.pathsep}")
    assert not (place / "command").exists()


@pytest.mark.parametrize("named", ["HEAD", "main", "abbreviated"])
def test_a_commit_that_is_not_a_full_id_is_an_error(
    named: str, tmp_path: Path, source: tuple[Path, str]
) -> None:
    address, commit = source
    subprocess.run(("git", "-C", str(address), "branch", "-M", "main"), check=True)
    given = commit[:12] if named == "abbreviated" else named
    done = install(tmp_path, RECONCILER_SOURCE=address.as_uri(), RECONCILER_COMMIT=given)
    assert done.returncode != 0
    assert str(tmp_path / "project" / ".git") not in done.stdout
    if named != "abbreviated":  # which git itself does not find
        assert done.stderr == (
            f"error: the input commit must be the full id of a commit of source, and is: {given}\n"
        )
