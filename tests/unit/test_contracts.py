"""The import contracts, on a copy of the package in which each of them is broken."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import reconciler

PACKAGE = Path(reconciler.__file__).parent

SABOTAGE = [
    ("diff.fields", "import os", "os"),
    ("diff.fields", "import tempfile", "tempfile"),
    ("placement.levels", "import random", "random"),
    ("plan.text", "import socket", "socket"),
    ("spec.names", "from urllib.request import urlopen", "urllib"),
    ("apply.engine", "import time", "time"),
    ("policy.policy", "import subprocess", "subprocess"),
    ("simulate.world", "from confluent_kafka.admin import AdminClient", "confluent_kafka"),
    ("spec.names", "from reconciler.plan import steps_of", "plan"),
    ("placement.bounds", "from reconciler.kafka import connect", "kafka"),
    ("fleet.jobs", "from reconciler.kafka.writer import KafkaWriter", "kafka.writer"),
    ("forge.github", "from reconciler.kafka.writer import KafkaWriter", "kafka.writer"),
    ("kafka.views", "from reconciler.apply import end_run", "apply"),
    ("placement.striped", "from reconciler.placement.optimal import place_optimal", "optimal"),
]
"""A module, a line that its contract forbids, and the end of the name of what it imports."""


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what is said about a copy of the package that has every forbidden line."""
    copy = tmp_path_factory.mktemp("sabotaged")
    shutil.copytree(PACKAGE, copy / "reconciler", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PACKAGE.with_name("pyproject.toml"), copy)
    for module, line, _ in SABOTAGE:
        file = copy / "reconciler" / f"{module.replace('.', '/')}.py"
        file.write_text(f"{file.read_text()}\n{line}\n")
    command = [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"]
    done = subprocess.run(
        command,
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(copy), "COLUMNS": "200"},
    )
    assert done.returncode == 1
    return done.stdout


@pytest.mark.parametrize(("module", "line", "imported"), SABOTAGE)
def test_a_forbidden_import_breaks_its_contract(
    module: str, line: str, imported: str, complaints: str
) -> None:
    found = re.findall(rf"reconciler\.{re.escape(module)} -> (\S+) \(l", complaints)
    assert any(name.endswith(imported) for name in found), line


def test_every_contract_is_broken(complaints: str) -> None:
    assert re.search(r"Contracts: 0 kept, [5-9] broken", complaints)


@pytest.mark.parametrize(
    ("package", "not_loaded"),
    [
        ("reconciler.kafka", {"apply", "plan", "placement", "rehearse", "simulate"}),
        ("reconciler.cli", {"api", "apply", "plan", "placement", "spec", "diff", "kafka"}),
        ("reconciler.placement", {"spec", "diff", "plan", "apply", "kafka"}),
    ],
)
def test_a_package_loads_nothing_that_it_does_not_need(package: str, not_loaded: set[str]) -> None:
    program = f"import sys, {package}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[1] for name in done.stdout.split() if name.startswith("reconciler.")}
    assert loaded & not_loaded == set()
