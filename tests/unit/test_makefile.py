"""What a target installs first, and how the parts of the gate run beside each other."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def list_extras(target: str, venv: Path) -> tuple[list[str], str]:
    """Return the extras that a target would install, and all it would run."""
    make = ["make", "--dry-run", target, f"VENV={venv}"]
    run = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return re.findall(r"pip install .*'\.\[(\w+)\]'", run), run


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
        return subprocess.run(
            ["make", "test", f"VENV={tmp_path}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": os.environ["PATH"], "FAILING": failing},
        )

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
