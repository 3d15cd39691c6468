"""What users install, with pip and from this tree: it evaluates policies and reaches a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from act import Act
from runner_clone import ROOT, SECRETS, TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from code_hosts import GitHubHost
    from runner_clone import Repository

RULE = "A topic has 12 partitions at most. Ask #platform for more"
POLICY = f"""\
policy:
  rules:
    small-topics:
      check: spec.partitions <= 12
      message: "{RULE}"
"""


@pytest.fixture
def ruled(repository: Repository) -> Repository:
    """An estate with a rule that needs CEL, and a topic that it allows."""
    with (repository.directory / "topics" / "clusters.yaml").open("a") as file:
        file.write(POLICY)
    repository.wish("orders", 2)
    return repository


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """What a new runner has: Python with the settings of pip, and no reconciler."""
    home = tmp_path / "home"
    (home / ".config" / "act").mkdir(parents=True)
    (home / ".config" / "act" / "actrc").touch()
    beside = Path(sys.executable).parent
    path = [part for part in os.environ["PATH"].split(os.pathsep) if Path(part) != beside]
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    shown = {"NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    return {"HOME": str(home), "PATH": os.pathsep.join(path), **shown, **pip}


def test_the_action_evaluates_the_rules_of_a_request(
    ruled: Repository,
    github: GitHubHost,
    bare: dict[str, str],
    find_tool: Callable[[str], str],
) -> None:
    act = Act(find_tool("act"), ruled, github, bare)
    github.open_request(12, ruled.commit())
    good = act.pull(fork=True)  # only validation, which installs whatever the runner has
    assert (good.code, good.jobs) == (0, {"validate", "planned"})
    assert "1 topic in 1 file, 1 cluster: all good" in good.text
    ruled.wish("orders", 13)
    github.talks[12].head = ruled.commit()
    bad = act.pull(fork=True)
    assert bad.code == 1
    ((place, text),) = bad.annotations("error")
    assert place == "topics/orders.yaml:2"
    assert RULE in text


def test_the_wheel_runs_with_the_constraints_that_ci_pins(
    ruled: Repository, bare: dict[str, str], tmp_path: Path
) -> None:
    """Nothing of the tests' own environment is there, and pip takes nothing that is not pinned."""

    def run(*words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=ruled.directory,
            env={**bare, **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )

    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path)
    built = run(*pip, ruled.directory)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    programs = tmp_path / "venv" / "bin"
    run(sys.executable, "-m", "venv", programs.parent)
    constraints = ROOT / ".ci" / "constraints.txt"
    done = run(programs / "pip", "install", "--constraint", constraints, f"{wheel}[cel]")
    assert done.returncode == 0, done.stderr
    installed = run(programs / "pip", "freeze", "--exclude", "kafka-reconciler").stdout.split()
    assert set(installed) <= set(constraints.read_text().splitlines())
    assert "cel-expr-python" in {name.partition("==")[0] for name in installed}

    reconciler = programs / "reconciler"
    assert run(reconciler, "validate", "topics").returncode == 0
    planned = run(
        reconciler, "plan", "topics", "--cluster", "lab", "--detailed-exitcode", **SECRETS
    )
    assert planned.returncode == 2, planned.stderr
    assert f"+ create    {ruled.prefix}orders" in planned.stdout
    ruled.wish("orders", 13)
    refused = run(reconciler, "validate", "topics")
    assert refused.returncode == 1
    assert RULE in refused.stdout
