"""The import contracts, on a copy of the package in which each of them is broken."""

from __future__ import annotations

import importlib
import json
import pkgutil
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
    ("simulate.cluster", "from confluent_kafka.admin import AdminClient", "confluent_kafka"),
    ("spec.names", "from reconciler.plan import steps_of", "plan"),
    ("placement.bounds", "from reconciler.kafka import connect", "kafka"),
    ("fleet.jobs", "from reconciler.kafka.writer import KafkaWriter", "kafka.writer"),
    ("codehost.github", "from reconciler.kafka.writer import KafkaWriter", "kafka.writer"),
    ("api.planning", "from reconciler.kafka.mover import KafkaMover", "kafka.mover"),
    ("kafka.views", "from reconciler.apply import end_run", "apply"),
    ("placement.striped", "from reconciler.placement.optimal import place_optimal", "optimal"),
]
"""A module, a line that its contract forbids, and the end of the name of what it imports."""

INTERNAL = ("cli.sandbox", "from reconciler.sandbox.jars import Jar", "sandbox.jars")
"""Of the same kind, for what import-linter has no contract for: another package's internals."""

OWN_DOORS = {"kafka.writer", "kafka.mover"}
"""Modules that their package does not hand out, since a contract names who may import them."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package that has every forbidden line."""
    copy = tmp_path_factory.mktemp("sabotaged")
    shutil.copytree(PACKAGE, copy / "reconciler", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PACKAGE.with_name("pyproject.toml"), copy)
    for module, line, _ in (*SABOTAGE, INTERNAL):
        file = copy / "reconciler" / f"{module.replace('.', '/')}.py"
        file.write_text(f"{file.read_text()}\n{line}\n")
    return copy


@pytest.fixture(scope="module")
def complaints(copy: Path) -> str:
    """Return what import-linter says about the copy."""
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


def find_internals(root: Path) -> set[tuple[str, str]]:
    """Return which packages reach past another one's `__init__`, and to which of its modules."""
    program = """
import grimp, json
graph = grimp.build_graph("reconciler", cache_dir=None)
pairs = ((a, b) for a in graph.modules for b in graph.find_modules_directly_imported_by(a))
apart = [pair for pair in pairs if pair[0].split(".")[1:2] != pair[1].split(".")[1:2]]
print(json.dumps([[name.removeprefix("reconciler.") for name in pair] for pair in apart]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env={"PYTHONPATH": str(root)},
    )
    pairs = {(importer, imported) for importer, imported in json.loads(done.stdout)}
    return {
        (importer.split(".")[0], imported)
        for importer, imported in pairs
        if "." in imported and imported not in OWN_DOORS
    }


def test_no_package_imports_the_internals_of_another() -> None:
    assert find_internals(PACKAGE.parent) == set()


def test_an_import_of_internals_is_found(copy: Path) -> None:
    module, _, imported = INTERNAL
    assert (module.split(".")[0], imported) in find_internals(copy)


@pytest.mark.parametrize(
    "package", [found.name for found in pkgutil.iter_modules([str(PACKAGE)]) if found.ispkg]
)
def test_a_package_has_what_it_hands_out(package: str) -> None:
    module = importlib.import_module(f"reconciler.{package}")
    for name in getattr(module, "__all__", ()):
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError):
        module.no_such_name  # noqa: B018


@pytest.mark.parametrize(
    ("package", "not_loaded"),
    [
        ("reconciler.kafka", {"apply", "plan", "placement", "rehearse", "simulate"}),
        ("reconciler.cli", {"api", "apply", "plan", "placement", "spec", "diff", "kafka"}),
        ("reconciler.placement", {"spec", "diff", "plan", "apply", "kafka"}),
        ("reconciler.fleet", {"api", "apply", "plan", "placement", "spec", "diff", "kafka"}),
        ("reconciler.sandbox", {"api", "apply", "plan", "placement", "spec", "diff", "kafka"}),
    ],
)
def test_a_package_loads_nothing_that_it_does_not_need(package: str, not_loaded: set[str]) -> None:
    program = f"import sys, {package}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[1] for name in done.stdout.split() if name.startswith("reconciler.")}
    assert loaded & not_loaded == set()
