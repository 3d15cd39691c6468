"""Our own child processes of Python: nothing of the working directory is imported."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import reconciler

ROOT = Path(reconciler.__file__).parent
CHILD = """\
import subprocess
from reconciler.sandbox.paths import isolated_python
subprocess.run([*isolated_python(), "-c", "import numbers; print(numbers.__file__)"], check=True)
"""


@pytest.mark.parametrize("flag", ["-P", "-I"])
def test_a_child_does_not_import_from_the_working_directory(flag: str, tmp_path: Path) -> None:
    """Isolated, it does not import from PYTHONPATH either."""
    (tmp_path / "numbers.py").write_text("")
    path = {"PYTHONPATH": str(tmp_path if flag == "-I" else ROOT.parent)}
    command = [sys.executable, flag, "-c", CHILD]
    done = subprocess.run(
        command, cwd=tmp_path, env=path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) not in done.stdout


def test_every_child_begins_like_that() -> None:
    """Spark starts the others: `isolated_workers` and its settings are for them.

    The line of uv is only shown: a person runs it.
    """
    used = [
        (path.name, line.strip())
        for path in sorted(ROOT.rglob("*.py"))
        for line in path.read_text().splitlines()
        if re.search(r"sys\.executable|_executable\b", line)
    ]
    assert used == [
        ("errors.py", 'command = ["uv", "pip", "install", "--python", sys.executable]'),
        ("runtime.py", 'os.environ.setdefault("PYSPARK_PYTHON", sys.executable)'),
        ("standalone.py", '"PYSPARK_PYTHON": sys.executable,'),
        ("paths.py", 'return [sys.executable, "-I" if sys.flags.isolated else "-P"]'),
    ]
