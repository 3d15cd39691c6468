"""docs/placement.md and the modules of placement name each other, and what they name exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from reconciler import placement

PACKAGE = Path(placement.__file__).parent
PAGE = (PACKAGE.parents[1] / "docs" / "placement.md").read_text(encoding="utf-8")
SECTIONS = frozenset(re.findall(r"^## (.+)$", PAGE, re.MULTILINE))
NO_SOLVERS = {"__init__", "check", "loss", "measure", "problem", "strategies"}
MODULES = sorted(str(path.relative_to(PACKAGE).with_suffix("")) for path in PACKAGE.rglob("*.py"))


def list_sections(module: str) -> list[str]:
    """Return the sections of the page that the docstrings of a module name."""
    tree = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = (ast.get_docstring(n) for n in ast.walk(tree) if isinstance(n, documented))
    text = " ".join(" ".join(filter(None, docstrings)).split())
    named = re.findall(r'docs/placement\.md, "([^"]+)"', text)
    assert len(named) == text.count("docs/placement.md"), f"{module}: name a section"
    return named


@pytest.mark.parametrize("module", MODULES)
def test_sections_that_a_module_names_exist(module: str) -> None:
    assert set(list_sections(module)) <= SECTIONS


@pytest.mark.parametrize("module", [m for m in MODULES if Path(m).name not in NO_SOLVERS])
def test_every_solver_names_the_section_with_its_argument(module: str) -> None:
    assert list_sections(module)


def test_modules_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`((?!tests/|benchmarks/)[a-z_/]+)\.py`", PAGE))
    assert named
    assert named <= set(MODULES)
