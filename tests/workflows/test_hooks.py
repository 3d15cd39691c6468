"""Linters of workflows, and the hook of pre-commit, run as their users run them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from runner_clone import ROOT, TIMEOUT_S


def run(*words: str, cwd: Path = ROOT, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program; what it says on stderr stands behind what it says on stdout."""
    return subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )


def test_actionlint_finds_nothing(find_tool: Callable[[str], str]) -> None:
    done = run(find_tool("actionlint"), *map(str, (ROOT / ".github/workflows").glob("*.yml")))
    assert (done.returncode, done.stdout) == (0, "")


def test_zizmor_finds_nothing(find_tool: Callable[[str], str]) -> None:
    done = run(find_tool("zizmor"), "--offline", "--no-progress", ".github")
    assert done.returncode == 0, done.stdout
    assert "No findings to report" in done.stdout


def test_hadolint_finds_nothing(find_tool: Callable[[str], str]) -> None:
    done = run(find_tool("hadolint"), ".ci/Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.fixture
def estate(tmp_path: Path) -> Path:
    """A repository that has nothing but specs."""
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text(
        "version: 1\nclusters: {lab: {}}\n"
        "policy: {rules: {small: {check: spec.partitions <= 12, message: too many partitions}}}\n"
    )
    (tmp_path / "topics" / "orders.yaml").write_text("topic: orders\npartitions: 3\n")
    run("git", "init", "--quiet", cwd=tmp_path)
    run("git", "add", "--all", cwd=tmp_path)
    return tmp_path


def test_the_hook_holds_a_commit_with_a_mistake(
    find_tool: Callable[[str], str], estate: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """From this tree, as `rev:` would bring it: pre-commit installs it in truth."""
    program = find_tool("pre-commit")
    home = str(tmp_path_factory.mktemp("pre-commit"))
    words = (program, "try-repo", str(ROOT), "reconciler-validate", "--all-files", "--verbose")
    good = run(*words, cwd=estate, PRE_COMMIT_HOME=home)
    assert good.returncode == 0, good.stdout
    assert "1 topic in 1 file, 1 cluster: all good" in good.stdout
    (estate / "topics" / "orders.yaml").write_text("topic: orders\npartition: 3\n")
    bad = run(*words, cwd=estate, PRE_COMMIT_HOME=home)
    assert bad.returncode == 1
    assert "topics/orders.yaml:2:1: error:" in bad.stdout
    (estate / "topics" / "orders.yaml").write_text("topic: orders\npartitions: 13\n")
    ruled = run(*words, cwd=estate, PRE_COMMIT_HOME=home)
    assert ruled.returncode == 1
    assert "breaks the rule small: too many partitions" in ruled.stdout
