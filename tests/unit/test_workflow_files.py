"""The workflows as files: what no runner on this machine would show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def list_groups(workflow: Path) -> list[dict[str, Any]]:
    """Return the concurrency groups of a workflow and of its jobs."""
    document = yaml.safe_load(workflow.read_text())
    found = [document, *document["jobs"].values()]
    return [each["concurrency"] for each in found if "concurrency" in each]


@pytest.mark.parametrize("name", ["apply", "moves"])
def test_every_run_that_writes_waits_for_its_turn(name: str) -> None:
    (group,) = list_groups(ROOT / ".github" / "workflows" / f"{name}.yml")
    assert (group["cancel-in-progress"], group["queue"]) == (False, "max")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_queue_is_one_that_github_accepts(workflow: Path) -> None:
    """The linters ignore the key, and GitHub refuses a workflow with another value."""
    for group in list_groups(workflow):
        assert group.get("queue", "single") in {"single", "max"}
        assert not (group.get("queue") == "max" and group.get("cancel-in-progress"))
