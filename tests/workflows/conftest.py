"""A repository with the workflows of this one, an estate for a real cluster, and a code host."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from code_host import serve
from code_hosts import GitHubHost, GitLabHost
from runner_clone import ROOT, Repository
from written import Written

from reconciler.sandbox.cluster import Cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.workflows)


@pytest.fixture(scope="session")
def find_tool() -> Callable[[str], str]:
    """Return a tool's path, or skip by its name; `make test-workflows` installs them all."""

    def find(name: str) -> str:
        path = shutil.which(name) or shutil.which(name, path=Path(sys.executable).parent)
        if path is None:
            pytest.skip(f"{name} is not installed")
        return path

    return find


@pytest.fixture
def repository(tmp_path: Path, cluster3: Cluster, topic_prefix: str) -> Repository:
    directory = tmp_path / "repository"
    directory.mkdir()
    return Repository(directory, cluster3, topic_prefix)


CACHE = str(Path.home() / ".cache" / "pip")
"""Wheels that were downloaded before; pip checks their hashes again."""
SETS_UP = """\
#!/bin/sh
# Sets up in no time what the venv and pip of .ci/install.sh take half a minute for.
[ "$3" = venv ] || exit 0
mkdir -p "$5/bin"
cat > "$5/bin/python" <<'PYTHON'
#!/bin/sh
[ "$3" = reconciler ] || exit 0
shift 3
exec {reconciler} "$@"
PYTHON
chmod +x "$5/bin/python"
"""


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path / "written")


@pytest.fixture
def environment(tmp_path: Path, written: Written) -> dict[str, str]:
    """What a runner has: a PATH with this reconciler, and nothing else of this machine."""
    reconciler, python = tmp_path / "bin" / "reconciler", tmp_path / "set-up" / "python3"
    for program in (reconciler, python):
        program.parent.mkdir()
    written.make_program(reconciler, ROOT)
    python.write_text(SETS_UP.format(reconciler=reconciler))
    python.chmod(0o755)
    home = tmp_path / "home"
    (home / ".config" / "act").mkdir(parents=True)
    (home / ".config" / "act" / "actrc").touch()
    path = os.pathsep.join([str(tmp_path / "set-up"), str(tmp_path / "bin"), os.environ["PATH"]])
    return {"HOME": str(home), "PATH": path, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the script of this tree has installed reconciler, in truth."""
    directory = tmp_path_factory.mktemp("installed")
    subprocess.run([ROOT / ".ci" / "install.sh", directory, "cel msk"], check=True)
    return directory


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """What a new runner has: Python with the settings of pip, and no reconciler."""
    home = tmp_path / "home"
    (home / ".config" / "act").mkdir(parents=True)
    (home / ".config" / "act" / "actrc").touch()
    beside = Path(sys.executable).parent
    path = [part for part in os.environ["PATH"].split(os.pathsep) if Path(part) != beside]
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    pip.setdefault("PIP_CACHE_DIR", CACHE)
    shown = {"NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    return {"HOME": str(home), "PATH": os.pathsep.join(path), **shown, **pip}


@pytest.fixture
def github() -> Iterator[GitHubHost]:
    with serve(GitHubHost()) as host:
        yield host


@pytest.fixture
def gitlab() -> Iterator[GitLabHost]:
    with serve(GitLabHost()) as host:
        yield host
