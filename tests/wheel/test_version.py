"""The version of what is built: that of git, of an archive of git, or unknown."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILDS = (".gitattributes", ".git_archival.txt", "LICENSE", "README.md", "pyproject.toml")
UNKNOWN = "0.0"


def git(directory: Path, *words: str) -> str:
    names = ("-c", "user.name=Alice", "-c", "user.email=alice@shop.example")
    done = subprocess.run(
        ("git", *names, *words), cwd=directory, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(directory: Path) -> str:
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--allow-empty", "--message", "Change it")
    return git(directory, "rev-parse", "HEAD")


def read_version(directory: Path, **variables: str) -> str:
    """Return the version that a build of a directory has."""
    done = subprocess.run(
        [sys.executable, "-I", "-m", "hatchling", "version"],
        cwd=directory,
        env=os.environ | variables,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def make_tree(directory: Path) -> Path:
    """Make a directory with what says how the package is built."""
    (directory / "reconciler").mkdir(parents=True)
    for name in BUILDS:
        shutil.copy(ROOT / name, directory)
    return directory


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with one commit and no tag."""
    directory = make_tree(tmp_path / "clone")
    git(directory, "init", "--quiet")
    commit(directory)
    return directory


def unpack_archive(clone: Path, directory: Path) -> Path:
    """Return a directory with what `git archive` gives of a clone, as code hosts do."""
    directory.mkdir()
    archive = subprocess.run(
        ("git", "archive", "HEAD"), cwd=clone, check=True, capture_output=True
    ).stdout
    subprocess.run(("tar", "x"), cwd=directory, input=archive, check=True)
    return directory


def test_a_tag_is_the_version_and_commits_after_it_lead_to_the_next(clone: Path) -> None:
    git(clone, "tag", "v1.2.3")
    assert read_version(clone) == "1.2.3"
    after = commit(clone)
    (version, _, node) = read_version(clone).partition("+")
    assert version == "1.2.4.dev1"
    assert after.startswith(node.removeprefix("g"))
    (clone / "LICENSE").write_text("edited")
    assert re.fullmatch(r"1\.2\.4\.dev1\+g[0-9a-f]+\.d[0-9]{8}", read_version(clone))


def test_a_clone_without_tags_comes_before_the_first_release(clone: Path, tmp_path: Path) -> None:
    """A runner clones one commit and no tag."""
    git(clone, "tag", "v1.2.3")
    head = commit(clone)
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", "--no-tags", clone.as_uri(), str(shallow))
    version, _, node = read_version(shallow).partition("+g")
    assert version == "0.1.dev1"
    assert head.startswith(node)


def test_an_archive_has_the_version_of_its_commit(clone: Path, tmp_path: Path) -> None:
    git(clone, "tag", "v1.2.3")
    released = unpack_archive(clone, tmp_path / "released")
    assert read_version(released) == "1.2.3"
    head = commit(clone)
    later = unpack_archive(clone, tmp_path / "later")
    version, _, node = read_version(later).partition("+g")
    assert version == "1.2.4.dev1"
    assert head.startswith(node)
    assert read_version(later, PATH="/nowhere") == f"{version}+g{node}"  # without a git


def test_a_directory_without_git_is_of_an_unknown_version(tmp_path: Path) -> None:
    """Also within the repository of something else, as the action on a runner."""
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "--quiet")
    commit(outer)
    git(outer, "tag", "v9.0.0")
    assert read_version(make_tree(outer / "copied")) == UNKNOWN
    assert read_version(make_tree(tmp_path / "copied"), PATH="/nowhere") == UNKNOWN


def test_an_archive_from_before_the_first_tag_is_of_an_unknown_version(
    clone: Path, tmp_path: Path
) -> None:
    assert read_version(unpack_archive(clone, tmp_path / "archive")) == UNKNOWN
