"""The pages about placement and its modules name each other, and what they name exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from reconciler import placement

PACKAGE = Path(placement.__file__).parent
EXPLANATION = PACKAGE.parents[1] / "docs" / "explanation"
PAGES = {
    page: (EXPLANATION / f"{page}.md").read_text(encoding="utf-8")
    for page in ("placement", "placement-proofs", "placement-moves")
}
SECTIONS = {
    (page, section)
    for page, text in PAGES.items()
    for section in re.findall(r"^## (.+)$", text, re.MULTILINE)
}
NO_SOLVERS = {"__init__", "check", "loss", "measure", "problem", "strategies"}
MODULES = sorted(str(path.relative_to(PACKAGE).with_suffix("")) for path in PACKAGE.rglob("*.py"))


def list_sections(module: str) -> list[tuple[str, str]]:
    """Return the pages and their sections that the docstrings of a module name."""
    tree = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = (ast.get_docstring(n) for n in ast.walk(tree) if isinstance(n, documented))
    text = " ".join(" ".join(filter(None, docstrings)).split())
    named = re.findall(r'docs/explanation/(placement[a-z-]*)\.md, "([^"]+)"', text)
    assert len(named) == text.count("docs/explanation/placement"), f"{module}: name a section"
    return named


@pytest.mark.parametrize("module", MODULES)
def test_sections_that_a_module_names_exist(module: str) -> None:
    assert set(list_sections(module)) <= SECTIONS


@pytest.mark.parametrize("module", [m for m in MODULES if Path(m).name not in NO_SOLVERS])
def test_every_solver_names_the_section_with_its_argument(module: str) -> None:
    assert list_sections(module)


def test_modules_that_the_pages_name_exist() -> None:
    named = set(re.findall(r"`((?!tests/|benchmarks/)[a-z_/]+)\.py`", "".join(PAGES.values())))
    assert named
    assert named <= set(MODULES)
