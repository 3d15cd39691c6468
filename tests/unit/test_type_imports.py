"""Imports for types alone: only what a module must not load, or loads when it is needed.

That is a client, Spark or another library, a module that imports this one, and in the rooms of LATE
and where a function imports it, whatever is not loaded anyway.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import reconciler

PACKAGE = Path(reconciler.__file__).parent

NO_REASON = {"reconciler", "pydantic", "pydantic_core", "yaml", "yamlcore"}
"""What reads documents may load these; unit/cli/test_start says which command does not."""

HAND_OUT = {"reconciler", "reconciler.cli"}
"""These two load what they hand out when it is first asked for."""

LATE = ("reconciler.api.", "reconciler.cli.", "reconciler.policy.")
"""In these rooms, functions import what a command needs, so that others start faster."""

CHEAP = {"collections.abc", "contextlib", "pathlib", "types"}
"""Modules of Python that are loaded with it, or with click."""

NEEDLESS = ("diff/fields.py", "reconciler.model.plan.TopicImage")


class Imports:
    """What each module of a package imports when it is loaded, and for types alone."""

    def __init__(self, root: Path) -> None:
        files = sorted((root / "reconciler").rglob("*.py"))
        names = {file: ".".join(file.relative_to(root).with_suffix("").parts) for file in files}
        self.modules = {name.removesuffix(".__init__"): file for file, name in names.items()}
        self.loaded: dict[str, set[str]] = {}
        self.typed: dict[str, set[str]] = {}
        self.needed: dict[str, set[str]] = {}
        for module, file in self.modules.items():
            tree = ast.parse(file.read_text(encoding="utf-8"))
            body = tree.body
            self.loaded[module] = {
                name.rpartition(".")[0] for name in self._find(body, types=False)
            }
            self.typed[module] = set(self._find(body, types=True))
            self.needed[module] = {
                name.rpartition(".")[0]
                for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef)
                for statement in ast.walk(node)
                if isinstance(statement, ast.stmt)
                for name in self._find([statement], types=False)
            }
        self.loads = {module: self._load(module) for module in self.modules}

    def _find(self, body: list[ast.stmt], *, types: bool) -> Iterator[str]:
        """Yield the imported names, with the modules that own them."""
        for node in body:
            for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            match node:
                case ast.Import(names=names) if not types:
                    yield from (f"{name.name}.*" for name in names)
                case ast.ImportFrom(module=module, names=names) if not types:
                    yield from (f"{self._own(f'{module}.{name.name}')}" for name in names)
                case ast.If() if for_types and types:
                    yield from self._find(node.body, types=False)
                case ast.If() | ast.Try() if not for_types:
                    yield from self._find(node.body, types=types)

    def _own(self, name: str) -> str:
        return f"{name}.*" if name in self.modules else name

    def _load(self, module: str) -> set[str]:
        """Return every module that a module loads, with itself, and the roots of libraries."""
        found: set[str] = set()
        left = [module]
        while left:
            name = left.pop()
            if name in found:
                continue
            found.add(name)
            left.extend(self.loaded.get(name, ()))
        return found

    def needs(self, name: str, module: str) -> bool:
        """Return whether a module must import a name for types alone."""
        owner = name.rpartition(".")[0]
        before = self.loads[module]
        load = self.loads.get(owner, {owner})
        if module in load or list_libraries(load) - list_libraries(before):
            return True
        late = module.startswith(LATE) or owner in self.needed[module]
        return late and bool(load - before - CHEAP)


def list_libraries(modules: set[str]) -> set[str]:
    roots = {name.partition(".")[0] for name in modules}
    return roots - NO_REASON - sys.stdlib_module_names


def find_needless(root: Path) -> Mapping[str, set[str]]:
    """Return the names that a module imports for types alone and could as well import."""
    imports = Imports(root)
    found = {
        module: {name for name in names if not imports.needs(name, module)}
        for module, names in imports.typed.items()
        if module not in HAND_OUT
    }
    return {module: names for module, names in found.items() if names}


def test_every_module_can_be_loaded() -> None:
    """A name that is defined for types alone cannot be imported from another module."""
    program = (
        "import importlib, pkgutil, reconciler\n"
        "for found in pkgutil.walk_packages(reconciler.__path__, 'reconciler.'):\n"
        "    if not found.name.endswith('__main__'):\n"
        "        importlib.import_module(found.name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_import_for_types_alone_has_a_reason() -> None:
    assert find_needless(PACKAGE.parent) == {}


def test_a_needless_import_for_types_is_found(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "reconciler", ignore=shutil.ignore_patterns("__pycache__"))
    file, name = NEEDLESS
    owner, _, what = name.rpartition(".")
    sabotaged = tmp_path / "reconciler" / file
    line = f"if TYPE_CHECKING:\n    from {owner} import {what}\n"
    sabotaged.write_text(f"{sabotaged.read_text()}\n{line}")
    assert find_needless(tmp_path) == {"reconciler.diff.fields": {name}}
