"""The workflow of a release: its build job, run by act, and what it made, installed."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from act import UPLOAD
from runner_clone import ROOT, TIMEOUT_S, Clone, copy_source

VERSION = "7.8.9"
SETUP_PYTHON = "actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97"
UPLOADS = """\
name: upload-artifact
inputs: {name: {required: true}, path: {required: true}, if-no-files-found: {}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {NAME: "${{ inputs.name }}", FROM: "${{ inputs.path }}"}
      run: |
        mkdir -p "$ARTIFACTS/$NAME"
        cp -r "$FROM." "$ARTIFACTS/$NAME/"
"""
SETS_UP = """\
name: setup-python
inputs: {python-version: {}}
runs: {using: composite, steps: [{shell: bash, run: python3 --version}]}
"""
NOTES = (
    f"## Unreleased\n\n## {VERSION} (2026-12-01)\n\n- [`plan`](plan.md) is faster.\n\n## 0.1.0\n"
)


@pytest.fixture
def source(tmp_path: Path) -> Clone:
    """This project with a section for the release in its changelog; main is what is merged."""
    directory = tmp_path / "source"
    clone = copy_source(directory)
    (directory / "docs").mkdir()
    (directory / "docs" / "changelog.md").write_text(f"# Changelog\n\n{NOTES}")
    clone.commit()
    clone.merge()
    return clone


@pytest.fixture
def build(
    source: Clone, bare: dict[str, str], tmp_path: Path, find_tool: Callable[[str], str]
) -> Callable[[str], tuple[int, str]]:
    """Return how to run the build job for a tag. It returns the exit code and the log."""
    program = find_tool("act")
    options = ["--env", f"ARTIFACTS={tmp_path / 'artifacts'}"]
    options += ["--platform", "ubuntu-latest=-self-hosted"]
    for action, name, text in ((UPLOAD, "up", UPLOADS), (SETUP_PYTHON, "python", SETS_UP)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "action.yml").write_text(text)
        options += ["--local-repository", f"{action}={tmp_path / name}"]

    def build(tag: str) -> tuple[int, str]:
        repository = {"full_name": "shop/reconciler", "default_branch": "main"}
        event = {"ref": f"refs/tags/{tag}", "repository": repository}
        (tmp_path / "event.json").write_text(json.dumps(event))
        command = [program, "push", "--workflows", ".github/workflows/release.yml"]
        command += ["--job", "build", "--eventpath", str(tmp_path / "event.json")]
        done = subprocess.run(
            [*command, "--defaultbranch", "main", *options],
            cwd=source.directory,
            env=bare,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        return done.returncode, done.stdout

    return build


def test_a_tag_is_built_once_and_what_is_made_installs(
    source: Clone, build: Callable[[str], tuple[int, str]], tmp_path: Path
) -> None:
    source.git("tag", f"v{VERSION}")
    code, log = build(f"v{VERSION}")
    assert code == 0, log
    made = {
        folder.name: {path.name for path in folder.iterdir()}
        for folder in (tmp_path / "artifacts").iterdir()
    }
    wheel, sdist = (
        f"kafka_reconciler-{VERSION}-py3-none-any.whl",
        f"kafka_reconciler-{VERSION}.tar.gz",
    )
    assert made == {
        "dist": {wheel, sdist},
        "about": {wheel, sdist, "notes.md", "sbom.cdx.json", "SHA256SUMS"},
        "image": {wheel, "Dockerfile", "image.txt"},
    }
    about = tmp_path / "artifacts" / "about"
    assert (about / "notes.md").read_text() == (
        "- [`plan`](https://github.com/kafka-reconciler/reconciler"
        f"/blob/v{VERSION}/docs/plan.md) is faster.\n"
    )
    check_sums(about, {wheel, sdist, "sbom.cdx.json"})
    listed = json.loads((about / "sbom.cdx.json").read_text())
    assert listed["metadata"]["component"]["version"] == VERSION
    assert "confluent-kafka" in {component["name"] for component in listed["components"]}
    for name in (wheel, sdist):
        check_install(tmp_path / "artifacts" / "dist" / name, tmp_path / f"venv-{name[-4:]}")


def check_sums(directory: Path, names: set[str]) -> None:
    lines = (directory / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    assert sums == {
        name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in names
    }


def check_install(artefact: Path, venv: Path) -> None:
    """Install what the job made where nothing else is, and ask for the version."""
    uv = Path(sys.executable).with_name("uv")
    install = ("pip", "install", "--quiet", "--constraint", ROOT / ".ci" / "constraints.txt")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, venv], check=True)
    subprocess.run([uv, *install, "--python", venv / "bin" / "python", artefact], check=True)
    command = (venv / "bin" / "reconciler", "--version")
    shown = subprocess.run(command, check=True, capture_output=True, text=True, cwd=venv)
    assert shown.stdout == f"reconciler, version {VERSION}\n"


def test_a_tag_without_a_section_is_not_built(
    source: Clone, build: Callable[[str], tuple[int, str]], tmp_path: Path
) -> None:
    source.git("tag", "v7.9.0")
    code, log = build("v7.9.0")
    assert code == 1
    assert "docs/changelog.md has no section for v7.9.0; add the heading ## 7.9.0" in log
    assert not (tmp_path / "artifacts").exists()


def test_a_tag_of_a_commit_that_is_not_merged_is_not_built(
    source: Clone, build: Callable[[str], tuple[int, str]], tmp_path: Path
) -> None:
    source.commit()
    source.git("tag", f"v{VERSION}")
    code, log = build(f"v{VERSION}")
    assert code == 1
    assert f"v{VERSION} is not on main; tag a commit that is merged" in log
    assert not (tmp_path / "artifacts").exists()


def test_a_tag_of_another_commit_is_not_published(
    source: Clone, build: Callable[[str], tuple[int, str]], tmp_path: Path
) -> None:
    """The version of what is built is that of its commit, whatever a run is called."""
    code, log = build(f"v{VERSION}")
    assert code == 1
    assert f"the tag is v{VERSION}; tag the commit that is built" in log
    assert not (tmp_path / "artifacts").exists()
