"""The steps of the action: which commit a plan compares with, and what a night notifies of."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconciler.spec import YamlMap, load_text

if TYPE_CHECKING:
    from reconciler.spec import YamlValue

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
    names = map(str, read_step(name)["env"])
    environment = dict.fromkeys(names, "") | {
        "PATH": "/usr/bin:/bin",
        "RECONCILER": str(command),
        "RUNNER_TEMP": str(work),
        "GITHUB_OUTPUT": str(work / "outputs"),
        "ESTATE": "topics",
        "CLUSTER": "prod",
        **variables,
    }
    script = str(read_step(name)["run"])
    subprocess.run(["bash", "-eo", "pipefail", "-c", script], env=environment, check=True)
    return (work / "asked").read_text().splitlines()


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
    for name in ("Apply", "Close the issue", "Gradual changes"):
        assert wanted in str(read_step(name)["if"])


@pytest.mark.parametrize(
    ("verb", "has_journal", "about"),
    [
        ("drift", False, ["drift"]),
        ("drift", True, ["drift", "apply"]),
        ("apply", True, ["apply"]),
        ("pending", False, ["apply"]),
    ],
)
def test_a_night_that_applies_notifies_of_drift_and_of_the_apply(
    verb: str, has_journal: bool, about: list[str], tmp_path: Path
) -> None:
    """The command itself is silent about an apply that is done."""
    if has_journal:
        (tmp_path / "journal.jsonl").touch()
    asked = run_step("Notify", tmp_path, VERB=verb, DIRECTORY=str(tmp_path), FORMAT="json")
    assert [line.split()[:3] for line in asked] == [["report", "notify", each] for each in about]
    for line in asked:
        assert ("--journal" in line) == (" apply " in line)
