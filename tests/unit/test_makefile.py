"""What a target installs first, and how the parts of the gate run beside each other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run_make(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run make as a user does: with nothing from the make that may run these tests."""
    return subprocess.run(
        ["make", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], **env},
    )


def list_extras(target: str, venv: Path) -> tuple[list[str], str]:
    """Return the extras that a target would install, and all it would run."""
    done = run_make("--dry-run", target, f"VENV={venv}")
    assert done.returncode == 0, done.stderr
    return re.findall(r"pip install .*'\.\[(\w+)\]'", done.stdout), done.stdout


@pytest.mark.parametrize(
    ("target", "extras"),
    [("demo", ["sandbox"]), ("demo-fleet", ["sandbox", "fleet"]), ("lint", ["dev"])],
)
def test_a_target_installs_what_it_needs_and_shows_it(
    target: str, extras: list[str], tmp_path: Path
) -> None:
    found, run = list_extras(target, tmp_path / "venv")
    assert found == extras
    assert "--quiet" not in run.partition(extras[-1])[0]


def test_where_developers_have_it_all_nothing_is_installed(tmp_path: Path) -> None:
    (tmp_path / ".ready").touch()
    assert list_extras("demo", tmp_path)[0] == list_extras("demo-fleet", tmp_path)[0] == []


def write_python(directory: Path, name: str, version: str, lacks: str = "nothing") -> None:
    """Write a Python of another version: this one, which says that it is that."""
    major, minor = version.split(".")
    path = directory / name
    path.write_text(
        f"#!{sys.executable} -IS\nimport sys\nsys.version_info = ({major}, {minor}, 0)\n"
        f"sys.modules['{lacks}'] = None\nexec(sys.argv[sys.argv.index('-c') + 1])\n"
    )
    path.chmod(0o755)


def find_python(directory: Path, *named: str) -> subprocess.CompletedProcess[str]:
    """Ask for a Python where the PATH has this directory and the tools of a shell."""
    for tool in ("sh", "head"):
        if not (directory / tool).exists():
            (directory / tool).symlink_to(shutil.which(tool) or "")
    return subprocess.run(
        [str(directory / "sh"), ROOT / ".ci" / "find_python.sh", *named],
        env={"PATH": str(directory)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("there", "found"),
    [
        ({"python3": "3.11", "python3.14": "3.14"}, "python3"),
        ({"python3": "3.9", "python3.12": "3.12", "python3.11": "3.11"}, "python3.12"),
        ({"python3.14": "3.14"}, "python3.14"),
    ],
)
def test_python3_is_taken_or_else_the_newest_by_name(
    there: dict[str, str], found: str, tmp_path: Path
) -> None:
    for name, version in there.items():
        write_python(tmp_path, name, version)
    done = find_python(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path / found}\n", "")


def test_one_that_is_named_is_taken_and_no_other(tmp_path: Path) -> None:
    write_python(tmp_path, "python3", "3.13")
    write_python(tmp_path, "python3.11", "3.11")
    write_python(tmp_path, "python3.9", "3.9")
    assert find_python(tmp_path, "python3.11").stdout == f"{tmp_path / 'python3.11'}\n"
    done = find_python(tmp_path, "python3.9")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"  {tmp_path / 'python3.9'} is 3.9\n" in done.stderr
    assert "  python3.12: there is no such program\n" in find_python(tmp_path, "python3.12").stderr


def test_what_is_wrong_with_each_python_is_said(tmp_path: Path) -> None:
    """A shim of pyenv runs nothing, and Debian has venv in a package of its own."""
    write_python(tmp_path, "python3", "3.9")
    write_python(tmp_path, "python3.12", "3.12", lacks="ensurepip")
    (tmp_path / "python3.13").write_text("#!/bin/sh\necho 'pyenv: not found' >&2\nexit 127\n")
    (tmp_path / "python3.13").chmod(0o755)
    done = find_python(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[:5] == [
        "error: this needs Python 3.11 or newer, with venv. Nothing was downloaded or installed.",
        "What was found:",
        f"  {tmp_path / 'python3'} is 3.9",
        f"  {tmp_path / 'python3.13'} does not run: pyenv: not found",
        f"  {tmp_path / 'python3.12'} is 3.12 without venv; on Debian and Ubuntu, install "
        "python3.12-venv",
    ]
    assert "make PYTHON=/path/to/python3.11" in done.stderr


def test_a_target_stops_before_it_installs_where_there_is_no_python(tmp_path: Path) -> None:
    write_python(tmp_path, "python3.9", "3.9")
    done = run_make("demo", f"VENV={tmp_path / 'venv'}", f"PYTHON={tmp_path / 'python3.9'}")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: this needs Python 3.11 or newer")
    assert not (tmp_path / "venv").exists()


@pytest.fixture
def gate(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return how to run `make test` on tools that only print, and fail where they are told to."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tmp_path / ".ready").touch()
    tool = '#!/bin/sh\necho "begin ${0##*/} $*"; sleep 0.2; echo "end ${0##*/} $*"\n'
    fail = 'case "${0##*/} $*" in *$FAILING*) exit 1;; esac\n'
    for name in ("ruff", "mypy", "lint-imports", "zizmor", "python", "pytest"):
        (tools / name).write_text(tool + fail)
        (tools / name).chmod(0o755)

    def run(failing: str = "nothing") -> subprocess.CompletedProcess[str]:
        return run_make("test", f"VENV={tmp_path}", FAILING=failing)

    return run


def test_the_gate_shows_each_part_without_lines_of_another(
    gate: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = gate()
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    assert [begin for begin, _, _ in lines] == ["begin", "end"] * (len(lines) // 2)
    assert [begun for _, _, begun in lines[::2]] == [ended for _, _, ended in lines[1::2]]
    parts = re.findall(r"end pytest .* --part (\w+)", done.stdout)
    assert sorted(parts) == ["fleet", "kafka", "laws", "unit"]
    assert parts[-1] == "fleet"


@pytest.mark.parametrize("part", ["mypy", "--part unit", "--part kafka", "--part fleet"])
def test_a_part_that_fails_fails_the_gate(
    gate: Callable[..., subprocess.CompletedProcess[str]], part: str
) -> None:
    done = gate(part)
    assert done.returncode != 0
    assert "Error 1" in done.stderr
    assert part in done.stdout
