"""What a demonstration installs first: what it needs, and nothing where all is there."""

from __future__ import annotations

import re
import subprocess
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
