"""The import contracts, on a copy of the package in which each of them is broken."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import reconciler

PACKAGE = Path(reconciler.__file__).parent

SABOTAGE = [
    ("diff.fields", "import os", "os"),
    ("diff.fields", "import tempfile", "tempfile"),
    ("placement.levels", "import random", "random"),
    ("show.text", "import socket", "socket"),
    ("spec.names", "from urllib.request import urlopen", "urllib"),
    ("apply.engine", "import time", "time"),
    ("moves.running.interventions", "import time", "time"),
    ("policy.policy", "import subprocess", "subprocess"),
    ("simulate.cluster", "from confluent_kafka.admin import AdminClient", "confluent_kafka"),
    ("spec.names", "from reconciler.planfile.codec import encode_plan", "planfile.codec"),
    ("placement.bounds", "from reconciler.kafka.connection import connect", "kafka.connection"),
    ("fleet.jobs", "from reconciler.kafka.writer import KafkaWriter", "kafka.writer"),
    ("codehost.github", "from reconciler.kafka.writer import KafkaWriter", "kafka.writer"),
    ("api.planning", "from reconciler.kafka.mover import KafkaMover", "kafka.mover"),
    ("changes.build", "from reconciler.moves.plan import plan_moves", "moves.plan"),
    ("moves.plan", "from reconciler.changes.plan import plan_cluster", "changes.plan"),
    ("apply.engine", "from reconciler.moves.running.rows import Rows", "running.rows"),
    ("kafka.views", "from reconciler.apply.engine import run_plan", "apply.engine"),
    ("placement.striped", "from reconciler.placement.optimal import place_optimal", "optimal"),
]
"""A module, a line that its contract forbids, and the end of the name of what it imports."""

BORROWED = ("cli.show", "from reconciler.cli.plans import Plan", "reconciler.cli.plans.Plan")
"""The same for a name that is imported from a module which does not define it."""

DOORS = {
    "adopt": "baseline clusters convert desired draft formatting leftovers live spelling",
    "apply": "engine kinds",
    "changes": "deletions due gradual outdated plan topics",
    "cli": "",
    "codehost": """approvals comments due gradual notices progress requests results runs setup
        targets webhook""",
    "fleet": """audit.audit audit.rules generator.job generator.shapes generator.troubles globs jobs
        lake.attempts lake.inventory lake.lake lake.maintenance lake.storage lake.stores metrics
        page.gather page.html session source.kafka_metadata source.spec_tree tables tracing
        trouble""",
    "inventory": "brokers configs description groups inventory topics",
    "kafka": "audit connection grants lock mover moves reader writer",
    "moves": """asked by_load compare decisions differences directories elections load_table
        needs plan progress reassignments rebalance running.cancel running.interventions
        running.run throttles""",
    "placement": """bounds given_rows kafka_placement loads.check loads.problem loads.search
        loads.shares loss measure moving.check moving.moves moving.problem problem strategies
        weigh""",
    "sandbox": "cluster control jars launch paths record request",
    "scaffold": "adoption answers checks repository tasks",
    "show": """choices description explain.matrix explain.picture explain.text fields github gradual
        grants health history inventory markdown.marks markdown.page moves_in_flight text view
        wording""",
}
"""The modules of a package that other packages may import. The others are private to it."""

THROUGH_THE_WINDOW = ("cli.show", "from reconciler.placement.levels import measure_levels")
"""A module, and a line that imports what is private to another package."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package that has every forbidden line."""
    copy = tmp_path_factory.mktemp("sabotaged")
    shutil.copytree(PACKAGE, copy / "reconciler", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PACKAGE.with_name("pyproject.toml"), copy)
    for module, line, *_ in (*SABOTAGE, BORROWED, THROUGH_THE_WINDOW):
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


def read_modules(root: Path) -> dict[str, ast.Module]:
    return {
        ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
            file.read_text(encoding="utf-8")
        )
        for file in sorted((root / "reconciler").rglob("*.py"))
    }


def find_private(root: Path) -> set[tuple[str, str]]:
    """Return the imports of what is private to another package: who imports, and what."""
    trees = read_modules(root)
    imports = (
        (module, name if name in trees else node.module)
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in trees
        for name in (f"{node.module}.{alias.name}" for alias in node.names)
    )
    found = set()
    for module, imported in imports:
        _, package, inside = [*imported.split(".", 2), "", ""][:3]
        own = f"{module}.".startswith(f"reconciler.{package}.")
        if inside and package in DOORS and not own and inside not in DOORS[package].split():
            found.add((module, imported))
    return found


def find_borrowed(root: Path) -> set[str]:
    """Return the names that are imported from a module which does not define them."""
    trees = read_modules(root)
    defined = {module: set(list_defined(tree.body)) for module, tree in trees.items()}
    return {
        f"{node.module}.{name.name}"
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in trees
        for name in node.names
        if name.name not in defined[node.module] and f"{node.module}.{name.name}" not in trees
    }


def list_defined(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names that the statements of a module bind, but for those that it imports."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Assign(targets=targets):
                bound = (name for target in targets for name in ast.walk(target))
                yield from (name.id for name in bound if isinstance(name, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.If() | ast.Try():
                yield from list_defined([*node.body, *node.orelse])


def test_every_name_comes_from_the_module_that_defines_it() -> None:
    assert find_borrowed(PACKAGE.parent) == set()


def test_a_name_from_another_module_is_found(copy: Path) -> None:
    assert BORROWED[2] in find_borrowed(copy)


def test_a_package_is_entered_by_its_doors() -> None:
    assert find_private(PACKAGE.parent) == set()


def test_what_enters_elsewhere_is_found(copy: Path) -> None:
    assert ("reconciler.cli.show", "reconciler.placement.levels") in find_private(copy)


LATER = {"changes", "moves", "planfile", "show", "apply"}


@pytest.mark.parametrize(
    ("module", "not_loaded"),
    [
        ("kafka.reader", LATER | {"placement", "rehearse", "simulate"}),
        ("cli.app", LATER | {"api", "placement", "spec", "diff", "kafka"}),
        ("placement.strategies", LATER | {"spec", "diff", "kafka"}),
        ("fleet.source.kafka_metadata", LATER | {"placement", "diff", "api"}),
        ("sandbox.cluster", LATER - {"planfile"} | {"api", "placement", "spec", "diff"}),
    ],
)
def test_a_module_loads_nothing_that_it_does_not_need(module: str, not_loaded: set[str]) -> None:
    program = f"import sys, reconciler.{module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[1] for name in done.stdout.split() if name.startswith("reconciler.")}
    assert loaded & not_loaded == set()
