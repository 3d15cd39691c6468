"""The package as Python reads it, parsed once for all tests that look into it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import reconciler

PACKAGE = Path(reconciler.__file__).parent


@cache
def parse_modules() -> dict[str, ast.Module]:
    """Return the modules of the package, by their path inside it."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def list_calls() -> tuple[tuple[str, ast.Call], ...]:
    """Return every call of the package, each with the path of its module inside it."""
    return tuple(
        (path, node)
        for path, module in parse_modules().items()
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
    )
