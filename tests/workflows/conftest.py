"""A repository with the workflows of this one, an estate for a real cluster, and a code host."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from code_host import serve
from code_hosts import GitHubHost, GitLabHost
from runner_clone import ROOT, Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reconciler.sandbox import Cluster


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


SETS_UP = """\
#!/bin/sh
# Sets up in no time what `python3 -m venv` and pip take half a minute for.
mkdir -p "$3/bin" && printf '#!/bin/sh\\n' > "$3/bin/pip" && chmod +x "$3/bin/pip"
ln -s "$(command -v reconciler)" "$3/bin/reconciler"
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What a runner has: a PATH with this reconciler, and nothing else of this machine."""
    command = f'exec {sys.executable} -c "from reconciler.cli import main; main()" "$@"'
    script = f"#!/bin/sh\nPYTHONPATH={ROOT} {command}\n"
    for directory, name, text in (("bin", "reconciler", script), ("set-up", "python3", SETS_UP)):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / name).write_text(text)
        (tmp_path / directory / name).chmod(0o755)
    home = tmp_path / "home"
    (home / ".config" / "act").mkdir(parents=True)
    (home / ".config" / "act" / "actrc").touch()
    path = os.pathsep.join([str(tmp_path / "set-up"), str(tmp_path / "bin"), os.environ["PATH"]])
    return {"HOME": str(home), "PATH": path, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}


@pytest.fixture
def github() -> Iterator[GitHubHost]:
    with serve(GitHubHost()) as host:
        yield host


@pytest.fixture
def gitlab() -> Iterator[GitLabHost]:
    with serve(GitLabHost()) as host:
        yield host
